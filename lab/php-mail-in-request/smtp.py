"""smtp.py ADDRESS MS: a mail server that says hello after MS milliseconds, and takes every mail."""
import asyncio
import sys

address, pause = sys.argv[1], int(sys.argv[2]) / 1000


async def serve(reader, writer):
    try:
        await asyncio.sleep(pause)
        writer.write(b"220 mail.example ESMTP\r\n")
        while line := await reader.readline():
            word = line[:4].upper()
            if word == b"DATA":
                writer.write(b"354 Go on\r\n")
                await reader.readuntil(b"\r\n.\r\n")
            writer.write(b"221 Bye\r\n" if word == b"QUIT" else b"250 OK\r\n")
            if word == b"QUIT":
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    async with await asyncio.start_server(serve, address, 25, backlog=1024) as server:
        await server.serve_forever()


asyncio.run(main())
