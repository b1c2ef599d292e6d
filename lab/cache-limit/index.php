<?php
// Rendered by the lab. A search: looks into sixteen places of the index.
$sum = 0;
for ($i = 0; $i < 16; $i++) {
    $file = fopen('{{.disk}}/index.' . ($i % 2), 'r');
    fseek($file, mt_rand(0, 1023) * 65536);
    $sum ^= crc32(fread($file, 65536));
    fclose($file);
}
echo "found $sum\n";
