#!/bin/sh
# Fills a directory with a group of forty thousand members, and serves it.
set -e
mkdir groups
/usr/bin/python3 - >groups.ldif <<'EOF'
print("dn: dc=example\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n")
print("dn: cn=staff,dc=example\nobjectClass: posixGroup\ncn: staff\ngidNumber: 500")
for i in range(40000):
    print(f"memberUid: user{i:05}")
print()
EOF
slapadd -q -f slapd.conf -l groups.ldif
exec slapd -d 0 -f slapd.conf -h ldap://127.0.0.1:389
