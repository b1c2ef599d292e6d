"""Waits for news in a folder, for every request: news.py, or news.py leak N, which is the indexer that never gives any of its N instances back."""
import ctypes
import os
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
MOVED_TO = 0x80


def watch():
    fd = libc.inotify_init1(os.O_CLOEXEC)
    if fd < 0:
        e = ctypes.get_errno()
        raise OSError(e, "watch the news: " + os.strerror(e))
    libc.inotify_add_watch(fd, b"news", MOVED_TO)
    return fd


def work():
    fd = watch()
    try:
        os.read(fd, 4096)
    finally:
        os.close(fd)
    return b"news\n"


def publish():
    while True:
        time.sleep(0.02)
        with open("draft", "w") as f:
            f.write("news\n")
        os.rename("draft", "news/latest")


if sys.argv[1:2] == ["leak"]:
    leaked = [watch() for _ in range(int(sys.argv[2]))]
    print("indexer: ready", flush=True)
    while True:
        time.sleep(60)
else:
    import web

    threading.Thread(target=publish, daemon=True).start()
    web.serve(8000, work)
