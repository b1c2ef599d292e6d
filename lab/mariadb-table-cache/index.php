<?php
// Shows one order of one customer, who has a table of his own.
$db = mysqli_connect('p:127.0.0.1', 'root', '', 'shop');
foreach ($db->query('SELECT id, note FROM orders_' . mt_rand(0, 399) . ' WHERE id = ' . mt_rand(1, 20)) as $row) {
    echo $row['id'], ' ', $row['note'], "\n";
}
