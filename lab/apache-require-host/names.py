"""A name server far away, 100 ms for a question and any number at once: knows the names of all visitors, and their addresses."""
import asyncio

NAME = b"\7visitor\7example\0"


class Names(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, query, who):
        asyncio.get_running_loop().call_later(0.1, self.answer, query, who)

    def answer(self, query, who):
        end = query.index(b"\0", 12) + 5
        kind = query[end - 4:end - 2]
        data = {b"\0\x0c": NAME, b"\0\1": b"\x0a\x4d\0\1"}.get(kind)
        head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if data else b"\0\0") + bytes(4)
        record = b"\xc0\x0c" + kind + b"\0\1\0\0\0\x3c" + len(data).to_bytes(2, "big") + data if data else b""
        self.transport.sendto(head + query[12:end] + record, who)


async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(Names, ("127.0.0.1", 53))
    await asyncio.Event().wait()


asyncio.run(main())
