#!/bin/sh
# Makes a certificate that signs itself, with the end that is asked for.
set -e
mkdir -p {{.dir}}/ca
cd {{.dir}}/ca
: >index.txt
echo 01 >serial
cat >ca.cnf <<EOF
[ca]
default_ca = here
[here]
dir = .
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
x509_extensions = ext
[any]
commonName = supplied
[ext]
basicConstraints = CA:true
subjectAltName = DNS:app
EOF
openssl req -newkey rsa:2048 -nodes -keyout key.pem -subj /CN=app -out req.pem
openssl ca -batch -config ca.cnf -selfsign -keyfile key.pem -in req.pem -out cert.pem -startdate 20200101000000Z -enddate {{.end}}
exec /usr/bin/python3 -c 'import socket, time; s = socket.create_server(("127.0.0.1", 82)); time.sleep(1000)'
