<?php
// Shows a page of the catalogue, somewhere far behind, as a crawler asks for them.
$db = mysqli_connect('p:127.0.0.1', 'root', '', 'shop');
$before = mt_rand(100000, 199000);
foreach ($db->query("SELECT id, name FROM articles {{.where}}") as $row) {
    echo $row['id'], ' ', $row['name'], "\n";
}
