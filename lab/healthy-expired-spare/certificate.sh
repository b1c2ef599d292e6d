#!/bin/sh
# Makes a certificate that signs itself, and ended in 2024.
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
subjectAltName = DNS:old.example
EOF
openssl req -newkey rsa:2048 -nodes -keyout key.pem -subj /CN=old.example -out req.pem
openssl ca -batch -config ca.cnf -selfsign -keyfile key.pem -in req.pem -out cert.pem -startdate 20200101000000Z -enddate 20240101000000Z
