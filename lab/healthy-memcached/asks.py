"""Twenty clients of memcached: each asks for a key, pauses, and asks again on the same connection."""
import asyncio
import random


async def asks():
    reader, writer = await asyncio.open_connection("10.77.0.2", 11211)
    while True:
        key = f"product-{random.randrange(1000)}"
        writer.write(f"get {key}\r\n".encode())
        if (await reader.readline()).startswith(b"VALUE"):
            await reader.readuntil(b"END\r\n")
        elif random.random() < 0.5:
            writer.write(f"set {key} 0 0 1000\r\n{'x' * 1000}\r\n".encode())
            await reader.readline()
        await asyncio.sleep(random.uniform(0, 0.16))


async def main():
    await asyncio.gather(*(asks() for _ in range(20)))


asyncio.run(main())
