<?php
// Reads a hundred keys, {{.batch}} at a time.
$redis = pfsockopen("10.77.0.1", 6379, $code, $error, 5);
for ($i = 0; $i < 100; $i += {{.batch}}) {
    $ask = "";
    for ($k = $i; $k < $i + {{.batch}}; $k++) {
        $ask .= "GET key:$k\r\n";
    }
    fwrite($redis, $ask);
    for ($k = 0; $k < {{.batch}}; $k++) {
        fgets($redis);
    }
}
echo "Hello World!\n";
