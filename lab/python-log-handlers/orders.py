"""Takes orders, and notes each in the audit log."""
import logging
import random
import sys

from flask import Flask

app = Flask(__name__)


def audit_log():
    log = logging.getLogger("audit")
    log.setLevel(logging.INFO)
    log.propagate = False
{{- if eq .once "yes"}}
    if log.handlers:
        return log
{{- end}}
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    log.addHandler(handler)
    return log


@app.get("/order")
def order():
    audit_log().info("order %d taken", random.randrange(10**6))
    return {"taken": True}
