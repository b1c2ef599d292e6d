"""Shows a page, and sends twenty metrics of it to the agent."""
import os
import socket
import threading
import time

import web

kept = threading.local()
while not os.path.exists("agent.sock"):
    time.sleep(0.02)


def page():
    if not hasattr(kept, "agent"):
        kept.agent = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        kept.agent.connect("agent.sock")
    for i in range(20):
        kept.agent.send(b"shop.page.part%d:1|c" % i)
    return b"a page\n"


web.serve(8000, page)
