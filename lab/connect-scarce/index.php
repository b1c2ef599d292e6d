<?php
// Counts the visit in redis, over a connection of its own. redis is asked to
// close it (QUIT), so that no port of this side is left in TIME_WAIT.
$redis = @stream_socket_client('tcp://127.0.0.1:6379', $code, $message, 1);
if ($redis === false) {
    http_response_code(503);
    exit("no connection to redis: $message ($code)\n");
}
fwrite($redis, "INCR visits\r\nQUIT\r\n");
while (!feof($redis)) {
    fread($redis, 512);
}
echo "Hello World!\n";
