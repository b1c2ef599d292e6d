#!/bin/sh
exec psql -q -h 127.0.0.1 -U postgres -c 'SET synchronous_commit = local' -c 'CREATE TABLE orders (id bigserial PRIMARY KEY, at timestamptz)'
