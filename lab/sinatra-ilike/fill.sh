#!/bin/sh
# Fills the database that has just begun to listen; it may not take queries yet.
until psql -q -h 127.0.0.1 -U postgres -c 'SELECT 1' >/dev/null 2>&1; do sleep 0.1; done
exec psql -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -U postgres -f catalogue.sql
