#!/bin/sh
# The application has an account without an administrator's rights, as it should.
exec mariadb --no-defaults -h 127.0.0.1 -u root -e "CREATE USER shop@127.0.0.1; GRANT SELECT ON mysql.help_topic TO shop@127.0.0.1"
