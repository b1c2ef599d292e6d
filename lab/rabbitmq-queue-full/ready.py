"""Waits until the broker takes connections, makes the queue, and puts those orders into it that have come since Friday."""
import time

import pika

while True:
    try:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1"))
        break
    except pika.exceptions.AMQPError:
        time.sleep(0.2)
channel = connection.channel()
channel.queue_declare("orders", arguments={"x-max-length": 2000, "x-overflow": "reject-publish"})
for _ in range(2100):
    channel.basic_publish("", "orders", b'{"article": "lamp-17", "pieces": 2}')
connection.close()
time.sleep(1)
