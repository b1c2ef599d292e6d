<?php
// Shows the notes of one customer, who has a table of his own.
$db = mysqli_connect('p:127.0.0.1', 'root', '', 'shop');
foreach ($db->query('SELECT id, note FROM notes_' . mt_rand(1, 1000) . ' WHERE id = 1') as $row) {
    echo $row['id'], ' ', $row['note'], "\n";
}
