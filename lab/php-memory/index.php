<?php
// Rendered by the lab. A report that is built as a whole before it is sent.
ini_set('memory_limit', '{{.limit}}');
ini_set('display_errors', '0');
$rows = str_repeat(str_repeat('x', 1023) . "\n", 24 * 1024);
echo strlen($rows), " bytes\n";
