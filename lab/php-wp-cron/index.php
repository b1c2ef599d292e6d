<?php
// A page of the blog: 8 ms of waiting for the database. Before it is shown, the clock for jobs is looked at, as WordPress does.
const DISABLE_CRON = {{if eq .cron "system"}}true{{else}}false{{end}};

function spawn_cron()
{
    $doing = false; // what the object cache says; it forgets between requests since its server is gone
    if ($doing) {
        return null;
    }
    $c = fsockopen('127.0.0.1', 80, $code, $message, 0.05);
    if ($c) {
        fwrite($c, "GET /wp-cron.php?doing_wp_cron=" . microtime(true) . " HTTP/1.0\r\nHost: blog\r\n\r\n");
        stream_set_blocking($c, false); // nobody waits for the reply
    }
    return $c;
}

if (!DISABLE_CRON) {
    $cron = spawn_cron();
}
usleep(8000);
echo "<h1>The blog</h1>\n";
