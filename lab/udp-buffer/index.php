<?php
// Asks the session service, and asks again when it did not answer for a second.
$service = stream_socket_client('udp://127.0.0.1:5300');
stream_set_timeout($service, 1);
for ($try = 0; $try < 5; $try++) {
    fwrite($service, str_repeat('session ', 64));
    if (fread($service, 2048) != '') {
        exit("Hello World!\n");
    }
}
http_response_code(503);
echo "no session\n";
