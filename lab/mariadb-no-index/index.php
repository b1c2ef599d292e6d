<?php
// Shows the orders of one customer.
$db = mysqli_connect('p:127.0.0.1', 'root', '', 'shop');
foreach ($db->query('SELECT id, note FROM orders WHERE customer = ' . mt_rand(0, 29999)) as $row) {
    echo $row['id'], ' ', $row['note'], "\n";
}
