# A server that looks for what its client says for 50 ms at a time; and a client that keeps
# the CPU of both for longer than that when it has asked, so that what the server waited for
# ends while it is awake and waits for its CPU.
import os
import select
import socket
import sys
import time

LOOKS = 0.05
TIMES = 10


def ask(address):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    with socket.create_connection(address) as server:
        for _ in range(TIMES):
            time.sleep(LOOKS / 5)
            server.sendall(b"question\n")
            until = time.monotonic() + 1.2 * LOOKS
            while time.monotonic() < until:
                pass
            server.recv(100)


def answer(client):
    while True:
        if not select.select([client], [], [], LOOKS)[0]:
            continue
        if not client.recv(100):
            return
        client.sendall(b"answer\n")


os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
listener = socket.create_server(("127.0.0.1", 0))
print("%s:%d" % listener.getsockname(), flush=True)
if os.fork() == 0:
    ask(listener.getsockname())
    os._exit(0)
answer(listener.accept()[0])
sys.stdin.read()
