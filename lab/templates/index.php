<?php
// Waits as for a database, then computes, then greets.
usleep({{or .wait_us "0"}});
$sum = 0;
for ($i = 0; $i < {{or .loops "0"}}; $i++) {
    $sum += $i;
}
echo "Hello World!\n";
