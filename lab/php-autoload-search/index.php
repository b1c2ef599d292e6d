<?php
// A page of an application with two hundred classes, which are looked for in the folders of all modules; or where a map says they are.
$map = '{{.map}}' === 'yes';
spl_autoload_register(function ($class) use ($map) {
    for ($m = $map ? 39 : 0; $m < 40; $m++) {
        $file = __DIR__ . "/modules/module$m/classes/$class.php";
        if ($map || is_file($file)) {
            require $file;
            return;
        }
    }
});
$n = 0;
for ($i = 0; $i < 200; $i++) {
    $class = "Class$i";
    $n += (new $class())->n;
}
echo $n, "\n";
