"""Waits a little for each request, then asks the stock service on a connection that the client's has for itself."""
import asyncio

QUESTION = b"GET / HTTP/1.1\r\nHost: stock\r\n\r\n"


async def serve(reader, writer):
    stock_reader, stock = await asyncio.open_connection("127.0.0.1", 8100)
    try:
        while await reader.read(4096):
            await asyncio.sleep(0.06)
            stock.write(QUESTION)
            writer.write(await stock_reader.read(4096))
            await writer.drain()
    finally:
        stock.close()
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", 8000, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
