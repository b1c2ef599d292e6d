"""Asks for what is not there, 200 times a second, as scanners do."""
import itertools
import socket
import time

NAMES = ["wp-login.php", ".env", ".git/config", "admin.php", "phpmyadmin/", "backup.zip"]
s = None
for name in itertools.cycle(NAMES):
    try:
        s = s or socket.create_connection(("10.77.0.2", 80))
        s.sendall(b"GET /%s HTTP/1.1\r\nHost: www\r\n\r\n" % name.encode())
        if not s.recv(4096):
            s = None
    except OSError:
        s = None
    time.sleep(0.005)
