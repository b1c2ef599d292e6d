# A small HTTP server on one event loop, which computes for so many ms every two seconds.
import asyncio
import sys
import time

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
rebuild = int(sys.argv[1]) / 1000


async def prices():
    while True:
        await asyncio.sleep(2)
        end = time.monotonic() + rebuild
        while time.monotonic() < end:
            sum(range(1000))


async def serve(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(REPLY)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    await asyncio.start_server(serve, "0.0.0.0", 8000, backlog=1024)
    await prices()


asyncio.run(main())
