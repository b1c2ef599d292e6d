<?php
// Asks the stock service what is left.
$stock = stream_socket_client('tcp://127.0.0.1:8100');
fwrite($stock, "GET / HTTP/1.0\r\nHost: stock\r\n\r\n");
$answer = stream_get_contents($stock);
echo str_ends_with($answer, "ok\n") ? "three left\n" : "none left\n";
