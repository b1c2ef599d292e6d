"""A server with a thread for each connection, which does with a request what it says, and never answers."""
import os, socket, socketserver, sys, threading

locked = threading.Lock()
locked.acquire()
nothing, _ = os.pipe()


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        what = self.rfile.readline().strip()
        if what == b"lock":
            locked.acquire()
        elif what == b"pipe":
            os.read(nothing, 1)
        elif what.startswith(b"open "):
            open(what[5:])
        elif what.startswith(b"ask "):
            host, port = what[4:].split(b":")
            c = socket.create_connection((host, int(port)))
            c.sendall(b"so?\n")
            c.recv(1)
        elif what == b"answer":
            self.wfile.write(b"so\n")
            locked.acquire()


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("%s:%d" % server.server_address, flush=True)
sys.stdin.read()
os._exit(0)
