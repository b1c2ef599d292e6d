<?php
// Throws old sessions away, then greets.
foreach (scandir("{{.dir}}/sessions") as $name) {
    $path = "{{.dir}}/sessions/$name";
    if ($name[0] !== "." && filemtime($path) < time() - 86400) {
        unlink($path);
    }
}
echo "Hello World!\n";
