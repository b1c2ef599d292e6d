"""Visitors: VISITORS connections, each of which asks for PATH, reads the reply, pauses
for PAUSE seconds on average, and asks again on the same connection, until it is ended."""
import asyncio
import random
import sys

host, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
visitors, pause = int(sys.argv[4]), float(sys.argv[5])
request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


async def reply(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    _, _, length = head.partition(b"content-length:")
    if length:
        await reader.readexactly(int(length.split()[0]))
    else:
        await reader.readuntil(b"0\r\n\r\n")


async def visit():
    while True:
        await asyncio.sleep(random.uniform(0, 2 * pause))
        try:
            reader, writer = await asyncio.open_connection(host, port)
            while True:
                writer.write(request)
                await reply(reader)
                await asyncio.sleep(random.uniform(0, 2 * pause))
        except (OSError, asyncio.IncompleteReadError):
            pass


async def main():
    await asyncio.gather(*(visit() for _ in range(visitors)))


asyncio.run(main())
