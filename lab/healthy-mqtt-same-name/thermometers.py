"""thermometers.py: two thermometers that were cloned from one image, name and all. The broker has one client of a name: each that connects throws the other one out, which connects again after a moment."""
import threading
import time

import mqtt


def thermometer():
    while True:
        try:
            c = mqtt.Client(b"thermometer-1")
            c.publish(b"temperature", b"21.4")
            while True:
                c.packet()
        except (OSError, IndexError):
            time.sleep(0.1)


threading.Thread(target=thermometer).start()
thermometer()
