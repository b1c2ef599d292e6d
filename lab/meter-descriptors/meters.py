"""Meters that connect, send five readings in a second, leave, and come again: meters.py HOST PORT COUNT"""
import random
import socket
import sys
import threading
import time


def meter():
    while True:
        try:
            with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2) as c:
                for _ in range(5):
                    c.sendall(b"1-0:1.8.0*255(004711.123*kWh)\n")
                    c.recv(100)
                    time.sleep(0.2)
        except OSError:
            pass
        time.sleep(random.random() / 2)


for _ in range(int(sys.argv[3])):
    threading.Thread(target=meter).start()
