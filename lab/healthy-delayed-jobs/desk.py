"""Has a label printed for each request: puts a job, and waits for the answer in a tube of its own. Tomorrow's letters are in the queue already."""
import threading

import beans
import web

kept = threading.local()
first = beans.Beans()
first.ask("use prints")
for n in range(20000):
    body = f"letter-{n} nobody"
    first.ask(f"put 1024 86400 60 {len(body)}\r\n{body}")


def work():
    if not hasattr(kept, "queue"):
        kept.queue = beans.Beans()
        kept.tube = f"reply-{threading.get_ident()}"
        kept.queue.ask("use prints")
        kept.queue.ask("watch " + kept.tube)
        kept.queue.ask("ignore default")
    kept.queue.put(f"label {kept.tube}")
    job, text = kept.queue.reserve()
    kept.queue.ask("delete " + job)
    return text.encode() + b"\n"


web.serve(8000, work)
