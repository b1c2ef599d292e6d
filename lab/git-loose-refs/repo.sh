#!/bin/sh
# repo.sh PACK: makes git/shop.git with one commit and twelve thousand tags, and then runs PACK in it.
set -e
export GIT_CONFIG_NOSYSTEM=1 HOME="$PWD"
git init -q --bare git/shop.git
cd git/shop.git
tree=$(git mktree </dev/null)
commit=$(git -c user.name=shop -c user.email=shop@shop.example commit-tree -m begun "$tree")
git update-ref refs/heads/main "$commit"
mkdir -p refs/tags/build
cd refs/tags/build
echo "$commit" >ref
seq 12000 | xargs -n 2000 sh -c 'for i; do cp ref "b$i"; done' sh 2>/dev/null
rm ref
cd ../../..
# shellcheck disable=SC2086 # a command of several words
$1
