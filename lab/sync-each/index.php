<?php
// Rendered by the lab. Takes an order: its lines go to the journal, together.
$journal = fopen('{{.disk}}/orders/journal', 'a');
flock($journal, LOCK_EX);
for ($i = 0; $i < 20; $i++) {
    fwrite($journal, str_repeat('x', 200) . "\n");
    {{if eq .sync "each"}}fsync($journal);{{end}}
}
fclose($journal);
echo "taken\n";
