"""Visitors in rushes: FEW connections that always ask, and MANY more for four seconds of every eight.
Each asks, reads the reply, pauses for a moment, and asks again."""
import asyncio
import random
import sys
import time

host, port, few, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
request = f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
REPLY = 41  # bytes, head and all


async def visit(always):
    reader, writer = await asyncio.open_connection(host, port)
    while True:
        if always or time.time() % 8 < 4:
            writer.write(request)
            await reader.readexactly(REPLY)
        await asyncio.sleep(random.uniform(0.02, 0.06))


async def main():
    await asyncio.gather(*(visit(n < few) for n in range(few + many)))


asyncio.run(main())
