"""Writes a PHP library of 3,000 functions."""
import os
import sys

with open(sys.argv[1] + ".new", "w") as f:
    f.write("<?php\n")
    for i in range(3000):
        f.write("function f%d($x) { $a = [$x, %d]; foreach ($a as $k => $v) { $x += $k * $v; } return $x > %d ? $x - 1 : $x + 1; }\n" % (i, i, i))
os.rename(sys.argv[1] + ".new", sys.argv[1])
