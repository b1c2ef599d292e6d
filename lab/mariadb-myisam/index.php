<?php
// Takes one piece of something from the stock.
$db = mysqli_connect('p:127.0.0.1', 'root', '', 'shop');
$db->query('UPDATE stock SET n = n + 1 WHERE id = ' . mt_rand(1, 300000));
echo "Ordered.\n";
