#!/bin/sh
# Writes the modules' folders, and the classes of the application.
set -e
for m in $(seq 0 39); do
    mkdir -p "www/modules/module$m/classes"
done
for i in $(seq 0 199); do
    echo "<?php class Class$i { public int \$n = $i; }" >"www/modules/module39/classes/Class$i.php"
done
