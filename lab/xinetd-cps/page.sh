#!/bin/sh
# Reads a request's head, and answers.
end=$(printf '\r')
while read -r line && [ "$line" != "$end" ]; do :; done
printf 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n17 C\n'
