<?php
usleep((int)($_GET['us'] ?? 20000));
$until = (int)($_GET['turns'] ?? 0);
for ($i = 0, $x = 0; $i < $until; $i++) { $x = ($x * 31 + $i) % 1000003; }
echo "hello $x\n";
