"""Players that show 62.5 kB of a film every 250 ms, and print how often a picture was late: players.py HOST PORT COUNT"""
import random
import socket
import sys
import threading
import time

shown = [0]
late = [0]


def play():
    time.sleep(random.random())
    c = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    c.sendall(b"GET /film.mp4 HTTP/1.1\r\nHost: films\r\n\r\n")
    due = time.monotonic() + 0.5  # they begin with something in hand
    while True:
        time.sleep(max(0, due - time.monotonic()))
        due += 0.25
        left = 62500
        while left > 0:
            left -= len(c.recv(left))
        shown[0] += 1
        late[0] += time.monotonic() > due


for _ in range(int(sys.argv[3])):
    threading.Thread(target=play).start()
while True:
    time.sleep(2)
    print("%d parts shown, %d late" % (shown[0], late[0]), flush=True)
