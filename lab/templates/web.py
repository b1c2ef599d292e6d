"""A small HTTP server with a thread for each connection."""
import socket
import threading

REPLY = b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s"


def answer(c, work):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while c.recv(4096):
            try:
                status, body = b"200 OK", work()
            except (OSError, RuntimeError) as e:
                print(e, flush=True)
                status, body = b"500 Internal Server Error", str(e).encode()
            c.sendall(REPLY % (status, len(body), body))
    except OSError:
        pass
    c.close()


def serve(port, work):
    """Answers every request on the port with what work() returns; with 500, where it raises."""
    listener = socket.create_server(("", port), backlog=1024)
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0], work), daemon=True).start()
