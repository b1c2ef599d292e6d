<?php
// Rendered by the lab. One request in {{.one_in}} crashes, as an extension with a fault does.
if ({{.one_in}} > 0 && mt_rand(1, {{.one_in}}) === 1) {
    posix_kill(posix_getpid(), 11); // SIGSEGV
}
echo "Hello World!\n";
