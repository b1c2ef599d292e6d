<?php
// Shows a piece of the stock.
$db = mysqli_connect('p:127.0.0.1', 'root', '', 'shop');
$row = $db->query('SELECT note FROM stock WHERE id = ' . mt_rand(1, 300000))->fetch_row();
echo $row[0], "\n";
