"""Switches a lamp for each request: says so to the broker, and waits until the lamp has said that it is done."""
import itertools
import queue
import threading
import time

import mqtt
import web

waiting, number = {}, itertools.count(1)


def lamp():
    c = mqtt.Client(b"lamp-7")
    c.subscribe(b"lamp/7/set", 0)
    for job, _ in c.messages():
        time.sleep(0.001)
        c.publish(b"lamp/7/state", job)


threading.Thread(target=lamp, daemon=True).start()
hub = mqtt.Client(b"hub")
hub.subscribe(b"lamp/7/state", 0)


def states():
    for job, _ in hub.messages():
        waiting.pop(job).put(None)


def work():
    job, done = b"%d" % next(number), queue.SimpleQueue()
    waiting[job] = done
    hub.publish(b"lamp/7/set", job)
    done.get(timeout=5)
    return b"switched\n"


threading.Thread(target=states, daemon=True).start()
time.sleep(0.3)
web.serve(8000, work)
