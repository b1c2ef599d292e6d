<?php
// Reads five of the newest three thousand articles.
$ids = [];
for ($i = 0; $i < 5; $i++) {
    $ids[] = random_int(37001, 40000);
}
$db = mysqli_connect('p:127.0.0.1', 'root');
$found = $db->query('SELECT SUM(LENGTH(body)) FROM shop.articles WHERE id IN (' . implode(',', $ids) . ')');
echo $found->fetch_row()[0], "\n";
