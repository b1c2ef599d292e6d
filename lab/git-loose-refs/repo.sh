#!/bin/sh
# repo.sh PACK: makes git/shop.git with a commit and 6,000 tags of it, each in a file, and then runs PACK in it.
set -e
export GIT_CONFIG_NOSYSTEM=1 HOME="$PWD"
git init -q --bare git/shop.git
cd git/shop.git
commit=$(git -c user.name=shop -c user.email=shop@shop.example commit-tree -m begun "$(git mktree </dev/null)")
git update-ref refs/heads/main "$commit"
mkdir refs/tags/build
# Names of one file: to make as many files would take a while.
perl -e 'for (1 .. 6000) { link "refs/heads/main", "refs/tags/build/b$_" or die "link: $!\n" }'
# shellcheck disable=SC2086 # a command of several words
$1
