<?php
// Rendered by the lab. An upload: it is kept, and forgotten again.
$name = '{{.dir}}/uploads/' . getmypid();
if (file_put_contents($name, str_repeat('x', 16384)) !== 16384) {
    http_response_code(500);
    exit("cannot store it\n");
}
unlink($name);
echo "stored\n";
