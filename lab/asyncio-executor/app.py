"""A service on asyncio; the library that asks the partner blocks, so it is called in a thread: app.py THREADS (0: the default)."""
import asyncio
import concurrent.futures
import sys
import urllib.request

threads = int(sys.argv[1])
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


def ask():
    with urllib.request.urlopen("http://127.0.0.1:8100/") as reply:
        return reply.read()


async def serve(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            body = await asyncio.to_thread(ask)
            writer.write(REPLY % (len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    if threads:
        asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(threads))
    server = await asyncio.start_server(serve, "0.0.0.0", 8000, backlog=1024)
    async with server:
        await server.serve_forever()


asyncio.run(main())
