#!/bin/sh
# sshd.sh FOLDER: the partner's SSH server on 10.77.0.1:22, with keys of its own in FOLDER.
set -e
umask 077
[ -d /run/sshd ] || mkdir -m 755 /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$1/host-key"
ssh-keygen -q -t ed25519 -N '' -f "$1/user-key"
cp "$1/user-key.pub" "$1/authorized"
mkdir -p "$1/received"
exec /usr/sbin/sshd -D -e -f /dev/null -p 22 -h "$1/host-key" -o ListenAddress=10.77.0.1 -o PidFile=none -o UsePAM=no \
    -o StrictModes=no -o PermitRootLogin=yes -o MaxStartups=100 -o "AuthorizedKeysFile=$1/authorized"
