#!/bin/sh
# site.sh LEAKED: both programs of the site's user, in a user namespace with a limit of its own.
set -e
mkdir news
echo 64 >/proc/sys/user/max_inotify_instances
/usr/bin/python3 news.py leak "$1" >indexer.log &
until [ -s indexer.log ]; do sleep 0.05; done
exec /usr/bin/python3 news.py
