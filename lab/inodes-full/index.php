<?php
// Stores a small file, as an upload.
$f = fopen("{{.dir}}/store/" . bin2hex(random_bytes(12)), "x");
if ($f === false) {
    http_response_code(500);
    error_log("cannot store: " . error_get_last()["message"]);
    exit("not stored\n");
}
fwrite($f, "hello\n");
fclose($f);
echo "stored\n";
