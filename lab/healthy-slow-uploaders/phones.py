"""phones.py USERS: so many users upload a picture of 160 KB each, a KB every sixteenth of a second; says every second how many there were."""
import socket
import sys
import threading
import time

head = b"POST /upload HTTP/1.1\r\nHost: shop\r\nContent-Length: 163840\r\n\r\n"
done = []


def user(n):
    time.sleep(n * 0.1)
    c = socket.create_connection(("10.77.0.2", 80))
    while True:
        c.sendall(head)
        for _ in range(160):
            c.sendall(bytes(1024))
            time.sleep(1 / 16)
        done.append(c.recv(4096)[9:12])


for n in range(int(sys.argv[1])):
    threading.Thread(target=user, args=(n,), daemon=True).start()
while True:
    time.sleep(1)
    print(len(done), "uploads,", sum(d == b"200" for d in done), "of them well", flush=True)
