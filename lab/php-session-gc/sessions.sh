#!/bin/sh
# sessions.sh FOLDER: what 15,000 visitors left behind.
set -e
mkdir -p "$1"
cd "$1"
seq -f 'sess_%026.0f' 15000 | xargs touch
chown -R www-data:www-data .
