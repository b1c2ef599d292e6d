<?php
// A page of an application that consists of many files, each of which it loads where it is there.
$n = 0;
for ($i = 0; $i < 250; $i++) {
    $file = __DIR__ . "/vendor/shop/catalogue/src/main/model/entities/file$i.php";
    if (is_file($file)) {
        $n += require $file;
    }
}
echo $n, "\n";
