<?php
// Rendered by the lab. Takes an order, and keeps it on the disk.
$file = fopen('{{.disk}}/orders/' . getmypid(), 'w');
fwrite($file, str_repeat('x', 16384));
fsync($file);
fclose($file);
echo "taken\n";
