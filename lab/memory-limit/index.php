<?php
// Builds a table of some megabytes, as for a report, and greets.
$table = str_repeat('x', {{.megabytes}} << 20);
usleep(50000);
echo strlen($table) > 0 ? "Hello World!\n" : "";
