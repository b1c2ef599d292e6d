"""Hands the broker a reading of each of thirty thousand thermometers."""
import time

import mqtt

while True:
    try:
        first = mqtt.Client(b"first")
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
for n in range(30_000):
    topic = mqtt.text(b"house/thermometer/%d" % n)
    first.send(0x31, topic + b"%d: 20 degrees, battery 90 percent, ok" % n)
first.send(0x33, mqtt.text(b"house/thermometer/0") + b"\0\1" + b"0: 20 degrees, battery 90 percent, ok")
first.packet()
