#!/bin/sh
# repo.sh PACK: makes git/shop.git with 6,000 commits and a tag for each, in a file of its own, and then runs PACK in it.
set -e
export GIT_CONFIG_NOSYSTEM=1 HOME="$PWD"
git init -q --bare git/shop.git
cd git/shop.git
seq -f "commit refs/heads/main
mark :%.0f
committer shop <shop@shop.example> 1700000000 +0000
data 6
built
" 6000 | git fast-import --quiet --export-marks=marks
mkdir refs/tags/build
awk '{ f = "refs/tags/build/b" substr($1, 2); print $2 >f; close(f) }' marks
# shellcheck disable=SC2086 # a command of several words
$1
