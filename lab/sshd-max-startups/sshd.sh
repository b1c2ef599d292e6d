#!/bin/sh
# sshd.sh FOLDER STARTUPS: an SSH server on 10.77.0.2:22, with keys of its own in FOLDER. It insists on a folder
# /run/sshd, which the machine may be without: begun by `unshare --mount`, it gets a /run of its own, with FOLDER in it.
set -e
umask 077
mount --bind "$1" /mnt
mount -t tmpfs none /run
mkdir -p -m 755 /run/sshd "$1"
mount --move /mnt "$1"
cd "$1"
ssh-keygen -q -t ed25519 -N '' -f host-key
ssh-keygen -q -t ed25519 -N '' -f user-key
cp user-key.pub authorized
exec /usr/sbin/sshd -D -e -f /dev/null -p 22 -h "$1/host-key" -o ListenAddress=10.77.0.2 -o PidFile=none -o UsePAM=no \
    -o StrictModes=no -o PermitRootLogin=yes -o "MaxStartups=$2" -o "AuthorizedKeysFile=$1/authorized"
