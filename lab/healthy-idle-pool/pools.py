"""The pools of other services: fifty-two idle connections, and one with a transaction that never ends. Listens on 8200 when all are there."""
import socket
import time

import pg

idle = [pg.Connection() for _ in range(52)]
for c in idle:
    c.query("SELECT 1")
report = pg.Connection()
report.query("CREATE TABLE years (n int)")
report.query("BEGIN")
report.query("SELECT count(*) FROM years")
listener = socket.create_server(("127.0.0.1", 8200))
while True:
    time.sleep(3600)
