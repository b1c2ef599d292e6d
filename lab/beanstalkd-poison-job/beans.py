"""A client of beanstalkd at 127.0.0.1:11300."""
import socket


class Beans:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", 11300))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def ask(self, command):
        self.socket.sendall(command.encode() + b"\r\n")
        return self.file.readline().decode().split()

    def put(self, body):
        return self.ask(f"put 1024 0 60 {len(body)}\r\n{body}")

    def reserve(self):
        _, job, size = self.ask("reserve")
        return job, self.file.read(int(size) + 2)[:-2].decode()
