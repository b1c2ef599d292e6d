# A small HTTP server on one event loop. Requests wait in the loop (block), so
# that nobody else is served meanwhile, or for one of a few places (line).
import asyncio
import sys
import time

port, how, hold, places = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) / 1000, int(sys.argv[4])
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


async def main():
    free = asyncio.Semaphore(places)

    async def serve(reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                if how == "block":
                    time.sleep(hold)
                else:
                    async with free:
                        await asyncio.sleep(hold)
                writer.write(REPLY)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "0.0.0.0", port, backlog=1024)
    async with server:
        await server.serve_forever()


asyncio.run(main())
