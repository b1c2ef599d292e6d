<?php
// Shows a product.
$db = mysqli_connect('10.77.0.2', 'shop', 'shop', 'shop');
echo $db->query('SELECT name FROM products WHERE id = ' . mt_rand(1, 10000))->fetch_row()[0], "\n";
