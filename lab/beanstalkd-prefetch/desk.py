"""Has a receipt printed for each request, or a catalogue for one in a hundred: puts a job, and waits for the answer in a tube of its own."""
import itertools
import threading

import beans
import web

kept = threading.local()
numbers = itertools.count(1)


def work():
    if not hasattr(kept, "queue"):
        kept.queue = beans.Beans()
        kept.tube = f"reply-{threading.get_ident()}"
        kept.queue.ask("use prints")
        kept.queue.ask("watch " + kept.tube)
        kept.queue.ask("ignore default")
    kept.queue.put(f"{'catalogue' if next(numbers) % 100 == 0 else 'receipt'} {kept.tube}")
    job, text = kept.queue.reserve()
    kept.queue.ask("delete " + job)
    return text.encode() + b"\n"


web.serve(8000, work)
