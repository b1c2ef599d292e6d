<?php
// Looks up where its database is, as every connect by name does.
echo 'Hello from ', gethostbyname('db.example.internal'), "!\n";
