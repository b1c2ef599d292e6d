#!/bin/sh
# build.sh JOBS: builds a program of thirty files from nothing, again and again; says how long each build took.
set -e
mkdir -p src
i=0
while [ $i -lt 30 ]; do
    {
        printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n'
        f=0
        while [ $f -lt 12 ]; do
            cat <<C
double part${i}_$f(double *a, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j += $f + 1) {
            a[i] = a[i] * a[j] + sqrt(a[j] + $i) - (j % ($f + 2) ? a[n - 1 - i] : a[0]);
            sum += a[i] > sum ? a[i] : sum / (j + 1);
        }
    return sum;
}
C
            f=$((f + 1))
        done
    } >src/part$i.c
    i=$((i + 1))
done
echo 'int main(void) { return 0; }' >src/main.c
cat >Makefile <<'M'
objects = $(patsubst %.c,%.o,$(wildcard src/*.c))
engine: $(objects)
	cc -o engine $(objects) -lm
src/%.o: src/%.c
	cc -O3 -c -o $@ $<
clean:
	rm -f engine src/*.o
M
while :; do
    make -s clean
    began=$(date +%s%N)
    make -s -j"$1"
    echo "built in $((($(date +%s%N) - began) / 1000000)) ms"
done
