#!/bin/sh
# Writes the nine hundred files of the application's framework.
set -e
mkdir -p www/src
n=0
while [ $n -lt 900 ]; do
    {
        echo "<?php class C$n {"
        m=0
        while [ $m -lt 12 ]; do
            echo "public function m$m(array \$a) { \$s = $n; foreach (\$a as \$k => \$v) { \$s += \$k * \$v; } return \$s > $m ? \$s - 1 : \$s + 1; }"
            m=$((m + 1))
        done
        echo "}"
    } >www/src/C$n.php
    n=$((n + 1))
done
