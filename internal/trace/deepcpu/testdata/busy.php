<?php
function busy($n) {
    $x = 0.0;
    for ($i = 0; $i < $n; $i++) {
        $x += sqrt($i);
    }
    return $x;
}
function outer($n) {
    return busy($n);
}
set_time_limit(0);
for ($until = microtime(true) + 60; microtime(true) < $until; ) {
    outer(200000);
}
