#!/bin/sh
# export.sh FOLDER MASTER: copies one receipt after the other; says how long ten took. With auto for MASTER over one connection.
options="-F /dev/null -i $1/user-key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=$1/known -o ControlMaster=$2 -o ControlPath=$1/master -o ControlPersist=60"
while :; do
    began=$(date +%s%N)
    for n in 0 1 2 3 4 5 6 7 8 9; do
        # shellcheck disable=SC2086 # options are words
        ssh $options root@10.77.0.1 "cat >$1/received/$n" <receipt
    done
    echo "10 receipts in $((($(date +%s%N) - began) / 1000000)) ms"
done
