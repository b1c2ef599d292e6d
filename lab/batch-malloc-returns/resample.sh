#!/bin/sh
set -e
cc -O2 -o resample resample.c
threshold={{.threshold}}
if [ -n "$threshold" ]; then export MALLOC_MMAP_THRESHOLD_=$threshold; fi
exec ./resample
