<?php
// Serves who brings the right key.
if (($_GET['key'] ?? '') !== '{{.key}}') {
    http_response_code(401);
    exit("no such key\n");
}
echo "Hello World!\n";
