"""Writes orders to a journal, all that there are every so many seconds, and answers them then: orders.py SECONDS."""
import asyncio
import sys

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nwritten\n"
period = float(sys.argv[1])
journal = open("journal", "ab", buffering=0)
waiting = []


class Order(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, request):
        waiting.append(self.transport)


async def write_orders():
    while True:
        await asyncio.sleep(period)
        orders = waiting[:]
        waiting.clear()
        if orders:
            journal.write(b"order\n" * len(orders))
        for transport in orders:
            transport.write(REPLY)


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Order, "0.0.0.0", 8000, backlog=1024)
    await asyncio.gather(server.serve_forever(), write_orders())


asyncio.run(main())
