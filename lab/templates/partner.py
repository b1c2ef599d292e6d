"""partner.py PORT MS [EVERY LATE_MS]

Somebody else's service: JSON over HTTP after MS milliseconds, for as many callers as there are. Every
EVERYth reply comes after LATE_MS instead.
"""
import asyncio
import sys

port, hold = int(sys.argv[1]), int(sys.argv[2]) / 1000
every, late = (int(sys.argv[3]), int(sys.argv[4]) / 1000) if len(sys.argv) > 3 else (0, 0)
BODY = b'{"price": 1299, "currency": "EUR", "stock": 14}\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(BODY)
asked = 0


async def serve(reader, writer):
    global asked
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            asked += 1
            await asyncio.sleep(late if every and asked % every == 0 else hold)
            close = b"connection: close" in head.lower() or b"HTTP/1.0" in head
            writer.write(HEAD + (b"Connection: close\r\n" if close else b"") + b"\r\n" + BODY)
            await writer.drain()
            if close:
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


asyncio.run(main())
