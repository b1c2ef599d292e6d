#!/bin/sh
# Fills a directory with twenty thousand users, and serves it.
set -e
mkdir users
/usr/bin/python3 - >users.ldif <<'EOF'
print("dn: dc=example\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n")
for i in range(20000):
    print(f"dn: cn=Person {i},dc=example\nobjectClass: inetOrgPerson\ncn: Person {i}\nsn: {i}\nuid: user{i}\nmail: user{i}@example.com\n")
EOF
slapadd -q -f slapd.conf -l users.ldif
exec slapd -d 0 -f slapd.conf -h ldap://127.0.0.1:389
