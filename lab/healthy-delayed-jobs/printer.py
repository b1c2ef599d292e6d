"""Prints labels, one job after the other."""
import time

import beans

queue = beans.Beans()
queue.ask("watch prints")
while True:
    job, text = queue.reserve()
    what, reply = text.split()
    time.sleep(0.003)
    queue.ask("use " + reply)
    queue.put("printed a " + what)
    queue.ask("delete " + job)
