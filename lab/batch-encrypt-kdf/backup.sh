#!/bin/bash
# backup.sh each|once: encrypts letters, one after the other, and says every ten of them; how often the key is made out of the password.
key=$(openssl rand -hex 32)
n=0
while :; do
    if [ "$1" = once ]; then
        openssl enc -aes-256-cbc -K "$key" -iv "$(printf %032x $n)" -in letter -out letter.enc
    else
        openssl enc -aes-256-cbc -pbkdf2 -iter 600000 -pass file:password -in letter -out letter.enc
    fi
    n=$((n + 1))
    if [ $((n % 10)) = 0 ]; then echo "$n letters after ${SECONDS} s"; fi
done
