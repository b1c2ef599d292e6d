<?php
// ask sends PostgreSQL a query, or, without one, what a session begins with, and waits until it is ready for another.
function ask($db, ?string $query): void {
	$said = '';
	fwrite($db, $query === null ? pack('NN', 41, 196608) . "user\0postgres\0database\0postgres\0\0" : 'Q' . pack('N', strlen($query) + 5) . "$query\0");
	for ($kind = ''; $kind !== 'Z'; $said .= $kind === 'E' ? strtr($body, "\0", ' ') : '') {
		$head = stream_get_contents($db, 5);
		if (strlen($head) < 5) {
			http_response_code(500);
			exit($said);
		}
		$kind = $head[0];
		$size = unpack('N', $head, 1)[1] - 4;
		$body = $size > 0 ? stream_get_contents($db, $size) : '';
	}
}

if ($what = $_GET['ask'] ?? '') {
	$db = stream_socket_client('tcp://10.79.1.4:5432');
	ask($db, null);
	if ($what === 'once') {
		ask($db, 'SELECT 1');
	} else {
		ask($db, 'BEGIN');
		ask($db, 'UPDATE counter SET n = n + 1');
		usleep(100000);
		ask($db, 'COMMIT');
	}
	exit("asked\n");
}
usleep((int)($_GET['us'] ?? 20000));
$until = (int)($_GET['turns'] ?? 0);
for ($i = 0, $x = 0; $i < $until; $i++) { $x = ($x * 31 + $i) % 1000003; }
echo "hello $x\n";
