<?php
// A query that takes 20 ms, most of which MariaDB waits.
$db = mysqli_connect('p:127.0.0.1', 'root');
$db->query('DO SLEEP(0.02)');
echo "Found.\n";
