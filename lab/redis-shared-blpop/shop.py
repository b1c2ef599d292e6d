"""shop.py OWN: shows a product from Redis; does jobs in the background, on a connection of its own or not."""
import collections
import queue
import random
import socket
import sys
import threading

import web


class Redis:
    """One connection for any number of threads: commands are sent at once, and answers come in their order."""

    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", 6379))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.lock = threading.Lock()
        self.waiting = collections.deque()
        threading.Thread(target=self.answers, daemon=True).start()

    def answers(self):
        while True:
            answer = self.answer()
            self.waiting.popleft().put(answer)

    def answer(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))] if int(rest) >= 0 else None
        return rest

    def ask(self, command):
        mine = queue.SimpleQueue()
        with self.lock:
            self.waiting.append(mine)
            self.socket.sendall(command + b"\r\n")
        return mine.get()


shared = Redis()
for n in range(1000):
    shared.ask(b"SET product:%d lamp-%d" % (n, n))


def jobs():
    redis = Redis() if sys.argv[1] == "yes" else shared
    while True:
        job = redis.ask(b"BLPOP jobs 1")
        if job:
            print("done", job, flush=True)


def work():
    return b"%s\n" % shared.ask(b"GET product:%d" % random.randrange(1000))


threading.Thread(target=jobs, daemon=True).start()
web.serve(8000, work)
