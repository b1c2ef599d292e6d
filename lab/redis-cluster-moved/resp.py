"""A client of one node of Redis: ask returns the reply; raises RuntimeError with what the node refuses."""
import socket


class Node:
    def __init__(self, host, port):
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w.encode()), w.encode()) for w in words))
        line = self.file.readline()[:-2]
        if line[:1] == b"-":
            raise RuntimeError(line[1:].decode())
        if line[:1] == b"$" and line != b"$-1":
            return self.file.read(int(line[1:]) + 2)[:-2]
        return line

    def close(self):
        self.file.close()
        self.socket.close()
