"""The provider's name server: 80 ms for a question, and any number at once; all names are on this machine, and none has IPv6."""
import asyncio


class Names(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, query, who):
        asyncio.get_running_loop().call_later(0.08, self.answer, query, who)

    def answer(self, query, who):
        end = query.index(b"\0", 12) + 5
        ipv4 = query[end - 4:end - 2] == b"\0\1"
        head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if ipv4 else b"\0\0") + bytes(4)
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if ipv4 else b""
        self.transport.sendto(head + query[12:end] + record, who)


async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(Names, ("127.0.0.2", 53))
    await asyncio.Event().wait()


asyncio.run(main())
