"""Last month: an import whose messages nobody could use, so that each went to the dead letters (their time ran out)."""
import time

import pika

while True:
    try:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1"))
        break
    except pika.exceptions.AMQPError:
        time.sleep(0.2)
channel = connection.channel()
channel.queue_declare("orders")
channel.queue_declare("import.dead")
channel.queue_declare("import", arguments={"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "import.dead"})
for n in range(30000):
    channel.basic_publish("", "import", b'{"article": "lamp-%d", "price": null}' % n)
while channel.queue_declare("import.dead", passive=True).method.message_count < 30000:
    time.sleep(0.2)
time.sleep(1)
