#!/bin/sh
# build.sh ASSIGN: makes a tree of modules with a Makefile whose version is ASSIGNed (= or :=), builds it again and again; says how long each build took.
set -e
mkdir -p src assets
i=0
while [ $i -lt 60 ]; do
    echo "const char *part$i(void) { return VERSION; }" >src/part$i.c
    i=$((i + 1))
done
i=0
while [ $i -lt 3000 ]; do
    mkdir -p assets/$((i % 60))
    echo "picture $i" >assets/$((i % 60))/$i.svg
    i=$((i + 1))
done
cat >Makefile <<M
# The version of a build is a digest of all that goes into it.
VERSION $1 \$(shell find assets src -name '*.svg' -o -name '*.c' | sort | xargs cat | sha256sum | cut -c1-12)
FLAGS = -O0 -DVERSION='"\$(VERSION)"'
objects = \$(patsubst %.c,%.o,\$(wildcard src/*.c))
library.a: \$(objects)
	ar cr \$@ \$(objects)
	@echo library \$(VERSION)
src/%.o: src/%.c
	cc \$(FLAGS) -c -o \$@ \$<
clean:
	rm -f library.a src/*.o
M
while :; do
    make -s clean
    began=$(date +%s%N)
    make -s -j2
    echo "built in $((($(date +%s%N) - began) / 1000000)) ms"
done
