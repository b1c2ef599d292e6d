<?php
// A page of an application that consists of many files.
$n = 0;
for ($i = 0; $i < 250; $i++) {
    $n += require __DIR__ . "/vendor/shop/catalogue/src/main/model/entities/file$i.php";
}
echo $n, "\n";
