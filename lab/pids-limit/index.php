<?php
// Has a program make the preview, and waits for it.
exec('sleep 0.05', $output, $status);
if ($status !== 0) {
    http_response_code(500);
    exit("no preview\n");
}
echo "Hello World!\n";
