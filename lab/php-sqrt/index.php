<?php
// A page as in the textbook: it computes far too much before it says anything.
function total(int $loops): float
{
    $x = 0.0001;
    for ($i = 0; $i <= $loops; $i++) {
        $x += sqrt($x);
    }
    return $x;
}

total({{.loops}});
echo "It works!\n";
