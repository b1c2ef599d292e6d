"""bots.py N: so many bots, each of which connects to 10.77.0.2:22 and says nothing until it is thrown out; then it comes back a second later."""
import socket
import sys
import threading
import time


def bot():
    while True:
        try:
            with socket.create_connection(("10.77.0.2", 22)) as c:
                while c.recv(4096):
                    pass
        except OSError:
            pass
        time.sleep(1)


for _ in range(int(sys.argv[1])):
    threading.Thread(target=bot).start()
    time.sleep(0.02)
