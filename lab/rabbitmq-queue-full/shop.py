"""Gives an order to the broker for each request and waits until it is confirmed."""
import threading

import pika

import web

kept = threading.local()


def channel():
    if getattr(kept, "channel", None) is None:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", heartbeat=0))
        kept.channel = connection.channel()
        kept.channel.confirm_delivery()
    return kept.channel


def work():
    try:
        channel().basic_publish("", "orders", b'{"article": "lamp-17", "pieces": 2}')
    except pika.exceptions.NackError as e:
        raise RuntimeError("order not taken: the broker says no") from e
    except pika.exceptions.AMQPError as e:
        kept.channel = None
        raise RuntimeError(f"the broker: {e!r}") from e
    return b"ordered\n"


web.serve(8000, work)
