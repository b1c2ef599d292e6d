<?php
// Looks for sessions in redis in the way its manual warns of: KEYS.
$redis = @stream_socket_client('tcp://127.0.0.1:6379', $code, $message, 1);
if ($redis === false) {
    http_response_code(503);
    exit("no connection to redis: $message ($code)\n");
}
fwrite($redis, "KEYS session:*\r\nQUIT\r\n");
while (!feof($redis)) {
    fread($redis, 512);
}
echo "Hello World!\n";
