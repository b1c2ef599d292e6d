"""Shows small pictures, which workers make: each thread puts a job into the queue, and waits for the answer in a tube of its own."""
import random
import threading

import beans
import web

kept = threading.local()
first = beans.Beans()
first.ask("use pictures")
for n in range(3):
    first.put(f"broken-{n} nobody")


def work():
    if not hasattr(kept, "queue"):
        kept.queue = beans.Beans()
        kept.tube = f"reply-{threading.get_ident()}"
        kept.queue.ask("use pictures")
        kept.queue.ask("watch " + kept.tube)
        kept.queue.ask("ignore default")
    kept.queue.put(f"picture-{random.randrange(1000)} {kept.tube}")
    job, text = kept.queue.reserve()
    kept.queue.ask("delete " + job)
    return text.encode() + b"\n"


web.serve(8000, work)
