"""Ten people who type: a letter every 150 ms or so. Four of five letters come before the last suggestions, whose connection is closed."""
import asyncio
import random


async def types():
    while True:
        reader, writer = await asyncio.open_connection("10.77.0.2", 80)
        writer.write(b"GET /suggest?q=lam HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
        if random.random() < 0.8:
            await asyncio.sleep(0.02)  # the next letter is there already
        else:
            await reader.read()
        writer.close()
        await asyncio.sleep(random.uniform(0, 0.26))


async def main():
    await asyncio.gather(*(types() for _ in range(10)))


asyncio.run(main())
