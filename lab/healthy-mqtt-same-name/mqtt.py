"""A client of MQTT 3.1.1, as far as this needs it."""
import socket
import struct
import threading


def text(s):
    return struct.pack("!H", len(s)) + s


class Client:
    def __init__(self, name):
        self.socket = socket.create_connection(("127.0.0.1", 1883))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.lock = threading.Lock()
        self.send(0x10, text(b"MQTT") + b"\4\2\0\0" + text(name))
        self.packet()

    def send(self, head, body):
        length, n = b"", len(body)
        while True:
            n, low = n >> 7, n & 127
            length += bytes([low | (128 if n else 0)])
            if not n:
                break
        with self.lock:
            self.socket.sendall(bytes([head]) + length + body)

    def packet(self):
        head, length, shift = self.file.read(1)[0], 0, 0
        while True:
            b = self.file.read(1)[0]
            length |= (b & 127) << shift
            if b < 128:
                return head, self.file.read(length)
            shift += 7

    def subscribe(self, topic, qos):
        self.send(0x82, b"\0\1" + text(topic) + bytes([qos]))

    def publish(self, topic, payload, packet=0):
        """With a packet number the broker confirms that it has the message (QoS 1)."""
        self.send(0x32 if packet else 0x30, text(topic) + (struct.pack("!H", packet) if packet else b"") + payload)

    def messages(self):
        """Yields payload and packet number (None for QoS 0) of what comes in."""
        while True:
            head, body = self.packet()
            if head >> 4 != 3:
                continue
            at = 2 + struct.unpack("!H", body[:2])[0]
            if head & 6:
                yield body[at + 2:], body[at:at + 2]
            else:
                yield body[at:], None
