"""Keeps the settings that the site's workers share: settings.py SOCKET."""
import sys
from multiprocessing.managers import BaseManager, DictProxy

SETTINGS = {"setting-%d" % i: i for i in range(200)}
BaseManager.register("settings", lambda: SETTINGS, DictProxy)
BaseManager(address=sys.argv[1], authkey=b"lab").get_server().serve_forever()
