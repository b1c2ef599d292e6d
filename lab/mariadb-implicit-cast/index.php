<?php
// Shows who has a telephone number.
$db = mysqli_connect('p:127.0.0.1', 'root', '', 'shop');
$phone = '49170' . mt_rand(1000001, 1200000);
foreach ($db->query("SELECT id, name FROM customers WHERE phone = {{.quote}}$phone{{.quote}}") as $row) {
    echo $row['id'], ' ', $row['name'], "\n";
}
