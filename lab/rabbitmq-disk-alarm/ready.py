"""Waits until the broker takes connections, and makes the queue."""
import time

import pika

while True:
    try:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1"))
        break
    except pika.exceptions.AMQPError:
        time.sleep(0.2)
connection.channel().queue_declare("orders")
time.sleep(1)
