"""worker.py release|bury: makes small pictures, one job after the other; what to do with a job that fails."""
import sys
import time

import beans

queue = beans.Beans()
queue.ask("watch pictures")
while True:
    job, text = queue.reserve()
    try:
        picture, reply = text.split()
        if picture.startswith("broken"):
            time.sleep(0.5)  # tries to read it, to the end of its patience
            raise ValueError("cannot read " + picture)
        time.sleep(0.008)
        queue.ask("use " + reply)
        queue.put("small-" + picture)
        queue.ask("delete " + job)
    except ValueError as e:
        print(e, flush=True)
        queue.ask(f"bury {job} 1024" if sys.argv[1] == "bury" else f"release {job} 1024 0")
