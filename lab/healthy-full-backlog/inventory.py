"""An inventory of open ports, which tries the agent's again and again, gives up quickly and does not mind."""
import socket
import time

while True:
    s = socket.socket()
    s.settimeout(0.2)
    try:
        s.connect(("10.77.0.2", 9999))
        time.sleep(0.05)
    except OSError:
        pass
    s.close()
    time.sleep(0.01)
