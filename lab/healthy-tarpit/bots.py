"""Eighty bots: each asks again as soon as it was refused."""
import asyncio


async def bot():
    while True:
        reader, writer = await asyncio.open_connection("10.77.0.2", 80)
        writer.write(b"GET /wp-login.php HTTP/1.1\r\nHost: shop\r\nUser-Agent: SearchBot/1.0\r\n\r\n")
        await reader.readline()
        writer.close()


async def main():
    await asyncio.gather(*(bot() for _ in range(80)))


asyncio.run(main())
