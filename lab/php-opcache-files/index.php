<?php
// A page of the shop, which loads the classes of its framework as they are needed.
spl_autoload_register(fn ($class) => require __DIR__ . "/src/$class.php");
$sum = 0;
for ($n = 0; $n < 900; $n += 2) {
    $class = "C$n";
    $sum += (new $class())->m1([1, 2, 3]);
}
echo $sum, "\n";
