"""Twenty users, each of whom reads a file at 200 KB a second, again and again."""
import asyncio


async def user():
    while True:
        reader, writer = await asyncio.open_connection("10.77.0.2", 80, limit=16384)
        writer.write(b"GET /hello.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while await reader.read(20000):
            await asyncio.sleep(0.1)
        writer.close()


async def main():
    await asyncio.gather(*(user() for _ in range(20)))


asyncio.run(main())
