"""A name server that cannot reach the servers for the zone it is asked about: says SERVFAIL after 50 ms, to any number at once."""
import asyncio


class Names(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, query, who):
        asyncio.get_running_loop().call_later(0.05, self.answer, query, who)

    def answer(self, query, who):
        end = query.index(b"\0", 12) + 5
        self.transport.sendto(query[:2] + b"\x81\x82\0\1" + bytes(6) + query[12:end], who)


async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(Names, ("10.77.0.1", 53))
    await asyncio.Event().wait()


asyncio.run(main())
