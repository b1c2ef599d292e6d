#!/bin/sh
# Asks for one report after the other, which the data warehouse takes 300 ms for (pg_sleep stands for it).
while :; do
    psql -q -At -h 127.0.0.1 -U postgres -d reports -c "SELECT count(*) FROM articles, (SELECT pg_sleep(0.3)) warehouse" >/dev/null
    sleep 0.2
done
