"""Twenty senders, each of which delivers a letter, pauses for 50 ms, and comes again; says every second how many there were."""
import socket
import threading
import time

done = []


def sender():
    while True:
        began = time.monotonic()
        try:
            with socket.create_connection(("10.77.0.2", 25), timeout=60) as c:
                c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                f = c.makefile("rb")
                f.readline()
                for line in (b"HELO client\r\n", b"MAIL FROM:<a@example>\r\n", b"RCPT TO:<b@example>\r\n", b"QUIT\r\n"):
                    c.sendall(line)
                    f.readline()
            done.append(time.monotonic() - began)
        except OSError:
            pass
        time.sleep(0.05)


for _ in range(20):
    threading.Thread(target=sender, daemon=True).start()
while True:
    time.sleep(1)
    waits, done = sorted(done), []
    if waits:
        print(f"{len(waits)} letters, half of them within {waits[len(waits) // 2] * 1000:.0f} ms", flush=True)
