<?php
// Stores a session in redis; an error 500, where redis refuses.
$redis = stream_socket_client('tcp://127.0.0.1:6379', $code, $message, 1);
$session = str_repeat('s', 4000);
fwrite($redis, "*5\r\n$3\r\nSET\r\n$14\r\nsession:" . sprintf('%06d', mt_rand(0, 999999)) . "\r\n$4000\r\n$session\r\n$2\r\nEX\r\n$2\r\n60\r\n");
$reply = fgets($redis);
if ($reply[0] !== '+') {
    http_response_code(500);
}
echo $reply;
