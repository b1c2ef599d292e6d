<?php
// The box "you may like this, too": four articles by chance.
$db = mysqli_connect('p:127.0.0.1', 'root', '', 'shop');
$begin = mt_rand(1, 99990);
foreach ($db->query("SELECT id, name, price FROM articles {{.pick}} LIMIT 4") as $row) {
    echo $row['id'], ' ', $row['name'], ' ', $row['price'], "\n";
}
