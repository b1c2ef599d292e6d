# An event loop that answers each line by what it says: after a timer of 50 ms, by which it
# has asked a partner nothing ("timer"), or asks one only then, on a connection that it opens
# then ("opened") or has open ("kept"); when a partner has answered after as long ("event");
# or at once. Another timer ends every 20 ms, and nothing follows from it.
import asyncio
import os
import socket
import sys
import threading
import time

WAIT = 0.05


def answer(connection):
    while line := connection.recv(100):
        if line == b"slow\n":
            time.sleep(WAIT)
        connection.sendall(b"answer\n")


def partner(listener):
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


async def question(streams, line):
    streams[1].write(line)
    await streams[0].readline()


async def work(line, kept):
    if line != b"event\n" and line != b"now\n":
        await asyncio.sleep(WAIT)
    if line == b"opened\n":
        opened = await asyncio.open_connection(*address)
        await question(opened, b"quick\n")
        opened[1].close()
    elif line == b"kept\n":
        await question(kept, b"quick\n")
    elif line == b"event\n":
        await question(kept, b"slow\n")


async def serve(reader, writer):
    kept = await asyncio.open_connection(*address)
    while line := await reader.readline():
        await work(line, kept)
        writer.write(b"done\n")
    kept[1].close()
    writer.close()


async def tick():
    while True:
        await asyncio.sleep(0.02)


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print("%s:%d" % server.sockets[0].getsockname(), flush=True)
    await asyncio.gather(server.serve_forever(), tick())


def end():
    sys.stdin.read()
    os._exit(0)


listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()
here = os.fork()  # a loop that shared the interpreter with its partner would sleep for it, too, after its timer
threading.Thread(target=end, daemon=True).start()
if here:
    asyncio.run(main())
else:
    partner(listener)
