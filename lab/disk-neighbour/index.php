<?php
// Counts the visit in redis, which writes it to the disk before it answers.
$redis = new_connection();
fwrite($redis, "INCR visits\r\n");
$reply = fgets($redis);
if ($reply === false || $reply[0] !== ':') {
    http_response_code(503);
    exit("redis did not count the visit\n");
}
echo "Hello World!\n";

function new_connection()
{
    $redis = @pfsockopen('127.0.0.1', 6379, $code, $message, 2);
    if ($redis === false) {
        http_response_code(503);
        exit("no connection to redis: $message ($code)\n");
    }
    return $redis;
}
