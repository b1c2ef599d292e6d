"""Tries passwords, two hundred a second, from an address of its own."""
import http.client
import time

c = http.client.HTTPConnection("10.77.0.2", 80, source_address=("10.77.0.3", 0))
while True:
    for _ in range(20):
        c.request("GET", "/wp-login.php?log=admin")
        c.getresponse().read()
    time.sleep(0.1)
