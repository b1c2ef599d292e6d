"""Takes orders from the queue, as the warehouse does."""
import pika

channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", heartbeat=0)).channel()
channel.basic_consume("orders", lambda *_: None, auto_ack=True)
channel.start_consuming()
