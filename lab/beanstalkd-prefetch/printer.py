"""printer.py N: prints, one job after the other, of those that it has reserved, up to N."""
import queue
import sys
import threading
import time

import beans

mine = queue.Queue()
places = threading.Semaphore(int(sys.argv[1]))
broker, lock = beans.Beans(), threading.Lock()
broker.ask("watch prints")
answers = beans.Beans()
done = queue.Queue()


def fetch():
    while True:
        places.acquire()
        mine.put(broker.reserve()[1])


threading.Thread(target=fetch, daemon=True).start()
while True:
    what, reply = mine.get().split()
    time.sleep(1 if what == "catalogue" else 0.005)
    answers.ask("use " + reply)
    answers.put("printed a " + what)
    places.release()
