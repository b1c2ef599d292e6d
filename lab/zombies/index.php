<?php
// Asks a helper program for each visitor.
exec('uname -r', $output, $status);
if ($status !== 0 || $output === []) {
    http_response_code(500);
    exit("the helper could not be started\n");
}
echo "Hello World!\n";
