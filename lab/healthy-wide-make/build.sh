#!/bin/sh
# Compiles two hundred files that have not been compiled yet, ten at a time, and begins again; says how many are done.
set -e
mkdir -p src
i=0
while [ $i -lt 200 ]; do
    {
        echo '#include <stdio.h>'
        echo '#include <stdlib.h>'
        j=0
        while [ $j -lt 20 ]; do
            printf '%s\n' "int part${i}_$j(int n) { int i, s = 0; for (i = 0; i < n; i++) s += i * $j ^ s >> 3; printf(\"%d\\n\", s); return s + abs(n); }"
            j=$((j + 1))
        done
    } >src/part$i.c
    i=$((i + 1))
done
cat >Makefile <<'M'
all: $(patsubst %.c,%.o,$(wildcard src/*.c))
%.o: %.c
	cc -O2 -c -o $@ $<
M
while :; do
    make -s -j10
    echo 200 files
    rm src/*.o
done
