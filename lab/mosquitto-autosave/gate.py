"""Hands a thermometer's reading to the broker for each request, and waits until it has it."""
import random
import threading

import mqtt
import web

THERMOMETERS = 30_000
kept = threading.local()


def reading(n):
    return b"%d: %d degrees, battery %d percent, ok" % (n, random.randrange(40), random.randrange(100))


class Gate(mqtt.Client):
    def retain(self, n):
        self.send(0x33, mqtt.text(b"house/thermometer/%d" % n) + b"\0\1" + reading(n))


def work():
    if not hasattr(kept, "gate"):
        kept.gate = Gate(b"gate-%d" % threading.get_ident())
    kept.gate.retain(random.randrange(THERMOMETERS))
    kept.gate.packet()
    return b"kept\n"


web.serve(8000, work)
