<?php
// Counts the visit in redis, over a connection of its own, with a little work
// of its own between the two.
$redis = stream_socket_client('tcp://127.0.0.1:6379', $code, $message, 1);
usleep(2000);
fwrite($redis, "INCR visits\r\n");
$reply = fgets($redis);
if ($reply === false || $reply[0] === '-') {
    error_log('redis: ' . trim($reply));
    http_response_code(500);
    exit("no visit\n");
}
echo "Hello World!\n";
