<?php
// Asks the database for something that takes it a twentieth of a second, over a connection of its own.
try {
    $db = mysqli_connect('127.0.0.1', 'shop', '');
    $db->query('SELECT SLEEP(0.05)');
} catch (mysqli_sql_exception $e) {
    error_log($e->getMessage());
    http_response_code(500);
    exit("Sorry.\n");
}
echo "Here it is.\n";
