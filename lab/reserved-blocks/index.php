<?php
// Stores an upload of 10 KB, and deletes it again when it has been looked at.
$name = "{{.dir}}/store/" . bin2hex(random_bytes(12));
$stored = @file_put_contents($name, random_bytes(10240));
@unlink($name);
if ($stored !== 10240) {
    http_response_code(500);
    error_log("cannot store: " . (error_get_last()["message"] ?? "short write"));
    exit("not stored\n");
}
echo "stored\n";
