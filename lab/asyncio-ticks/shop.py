"""Asks a partner for each request, and looks a hundred times a second how many there are."""
import asyncio

QUESTION = b"GET / HTTP/1.1\r\nHost: partner\r\n\r\n"
most = under_way = 0


async def serve(reader, writer):
    global under_way
    partner_reader, partner = await asyncio.open_connection("127.0.0.1", 8100)
    try:
        while await reader.read(4096):
            under_way += 1
            partner.write(QUESTION)
            writer.write(await partner_reader.read(4096))
            await writer.drain()
            under_way -= 1
    finally:
        partner.close()
        writer.close()


async def count():
    global most
    while True:
        await asyncio.sleep(0.01)
        most = max(most, under_way)


async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", 8000, backlog=1024)
    await asyncio.gather(server.serve_forever(), count())


asyncio.run(main())
