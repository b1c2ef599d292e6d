"""A page that depends on two hundred settings: READ says whether it reads each by itself or all at once."""
import os
import threading
import time
from multiprocessing import process
from multiprocessing.managers import BaseManager, DictProxy

process.current_process().authkey = b"lab"
BaseManager.register("settings", proxytype=DictProxy)
NAMES = ["setting-%d" % i for i in range(200)]
kept = threading.local()


def settings():
    if not hasattr(kept, "settings"):
        while not os.path.exists(os.environ["SETTINGS"]):
            time.sleep(0.05)
        manager = BaseManager(address=os.environ["SETTINGS"], authkey=b"lab")
        manager.connect()
        kept.settings = manager.settings()
    return kept.settings


def application(environ, start_response):
    if os.environ["READ"] == "each":
        total = sum(settings().get(name) for name in NAMES)
    else:
        total = sum(settings().copy().values())
    body = b"%d\n" % total
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
