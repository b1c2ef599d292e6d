"""Checks what comes in, any number at once: 20 ms of waiting each. A message is confirmed when its work is done."""
import threading
import time

import mqtt

client = mqtt.Client(b"worker")
client.subscribe(b"jobs", 1)


def check(job, packet):
    time.sleep(0.02)
    client.publish(b"results", job)
    client.send(0x40, packet)


for job, packet in client.messages():
    threading.Thread(target=check, args=(job, packet), daemon=True).start()
