#!/bin/sh
# Serves an empty broker in the foreground, with all that it keeps in FOLDER: broker.sh FOLDER
export HOME="$1/rabbit" RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_CONFIG_FILE="$1/rabbitmq.conf" RABBITMQ_MNESIA_BASE="$1/rabbit/db" \
    RABBITMQ_LOG_BASE="$1/rabbit/log" RABBITMQ_PID_FILE="$1/rabbit/pid" RABBITMQ_ENABLED_PLUGINS_FILE="$1/rabbit/plugins" ERL_EPMD_ADDRESS=127.0.0.1
mkdir -p "$HOME/db" "$HOME/log"
echo "[]." >"$RABBITMQ_ENABLED_PLUGINS_FILE"
exec /usr/lib/rabbitmq/bin/rabbitmq-server
