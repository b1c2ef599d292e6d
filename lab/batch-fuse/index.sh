#!/bin/sh
# Makes 5,000 letters, lays a view of them over FUSE as the archive's software does, and indexes the folder that it is given.
set -e
mkdir -p letters archive
/usr/bin/python3 -c '
for n in range(5000):
    open("letters/%05d.txt" % n, "w").write("dear sir or madam, thank you\n" * 40)'
bindfs -f --no-allow-other -o ro,attr_timeout=0,entry_timeout=0,direct_io letters archive &
while ! mountpoint -q archive; do sleep 0.05; done
exec /usr/bin/python3 index.py "$1"
