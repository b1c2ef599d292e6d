#!/bin/sh
# build.sh always|changed: somebody edits one file of eighty, and builds, again and again; says how long each build took.
set -e
mkdir -p src
i=0
while [ $i -lt 80 ]; do
    cat >src/part$i.c <<C
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "build.h"
int part$i(int n) {
    char line[256];
    int i, sum = 0;
    for (i = 0; i < n; i++) {
        snprintf(line, sizeof line, "%s %d %d", BUILD, i, sum);
        sum += (int)strlen(line) * $i;
    }
    return sum;
}
C
    i=$((i + 1))
done
echo 'int main(void) { return 0; }' >src/main.c
cat >stamp.sh <<'S'
#!/bin/sh
# Writes the version into build.h: at every build, or only when it is another.
echo '#define BUILD "4.2-rc1"' >build.new
if [ "$1" = changed ] && cmp -s build.new src/build.h; then rm build.new; else mv build.new src/build.h; fi
S
chmod 755 stamp.sh
cat >Makefile <<M
parts = \$(patsubst %.c,%.o,\$(wildcard src/*.c))
shop: \$(parts)
	cc -o shop \$(parts)
src/%.o: src/%.c src/build.h
	cc -O2 -c -o \$@ \$<
src/build.h: always
	./stamp.sh $1
always:
.PHONY: always
M
n=0
while :; do
    echo "/* edited $n */" >>src/part$((n % 80)).c
    began=$(date +%s%N)
    make -s -j2
    echo "built in $((($(date +%s%N) - began) / 1000000)) ms"
    n=$((n + 1))
done
