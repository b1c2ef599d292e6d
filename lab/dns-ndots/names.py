"""A name server some way off: it answers each question after DELAY milliseconds, and knows one name."""
import asyncio
import sys

KNOWN = b"\x05stock\x07partner\x07example\x00"
delay = float(sys.argv[1]) / 1000


class Names(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, query, who):
        asyncio.get_running_loop().call_later(delay, self.answer, query, who)

    def answer(self, query, who):
        name, rest = query[12:].split(b"\0", 1)
        question, kind = name + b"\0" + rest[:4], rest[:2]
        known = name + b"\0" == KNOWN
        count, address = b"\0\0", b""
        if known and kind == b"\0\x01":
            count, address = b"\0\x01", b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x01"
        self.transport.sendto(query[:2] + (b"\x81\x80" if known else b"\x81\x83") + b"\0\x01" + count + bytes(4) + question + address, who)


async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(Names, ("0.0.0.0", 53))
    listener = await asyncio.start_server(lambda reader, writer: writer.close(), "0.0.0.0", 53)  # to see that it is up
    await listener.serve_forever()


asyncio.run(main())
