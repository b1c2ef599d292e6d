"""Checks the old name's certificate once a second, and gives up at it."""
import socket
import ssl
import time

context = ssl.create_default_context(cafile="ca/cert.pem")
while True:
    try:
        with socket.create_connection(("10.77.0.2", 443), timeout=5) as c:
            context.wrap_socket(c, server_hostname="old.example")
    except OSError as e:
        print(e, flush=True)
    time.sleep(1)
