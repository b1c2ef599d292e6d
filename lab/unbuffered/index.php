<?php
// A page after 20 ms, as for a database; or the catalogue, two megabytes.
if (isset($_GET['catalogue'])) {
    for ($i = 0; $i < 200; $i++) {
        echo str_repeat("0123456789", 1000);
        flush();
    }
    exit;
}
usleep(20000);
echo "Hello World!\n";
