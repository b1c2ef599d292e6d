<?php
// Greets a visitor, whom a session remembers.
session_start();
$_SESSION['seen'] = ($_SESSION['seen'] ?? 0) + 1;
echo 'Hello! ', $_SESSION['seen'], "\n";
