"""worker.py WORKERS: makes documents, with so many processes; the printing service lays each of them out."""
import os
import sys
import urllib.request

import redis

for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
queue = redis.Redis()
while True:
    _, job = queue.blpop("documents")
    with urllib.request.urlopen("http://127.0.0.1:9000/layout") as reply:
        queue.rpush(b"made:" + job, reply.read())
