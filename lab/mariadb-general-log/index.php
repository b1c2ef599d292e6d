<?php
// A page with twenty articles, each by its number, as the shop's ORM fetches them.
$db = mysqli_connect('p:127.0.0.1', 'root', '', 'shop');
for ($i = 0; $i < 20; $i++) {
    $id = mt_rand(1, 10000);
    echo $db->query("SELECT name, description FROM articles WHERE id = $id")->fetch_assoc()['name'], "\n";
}
