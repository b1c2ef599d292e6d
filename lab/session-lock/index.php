<?php
// Rendered by the lab. One customer's page: who it is stands in the session.
session_save_path('/tmp');
session_id('plimsollcustomer');
session_start(['use_cookies' => 0, 'cache_limiter' => '']);
$_SESSION['seen'] = ($_SESSION['seen'] ?? 0) + 1;
{{if eq .ends "early"}}session_write_close();{{end}}
usleep(20000); // as for a database
echo "Hello World!\n";
