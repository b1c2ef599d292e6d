"""meters.py N: so many meters, each of which keeps one connection to 10.77.0.2:8883 and sends a value every ten seconds."""
import asyncio
import random
import resource
import sys

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))


async def meter():
    reader, writer = await asyncio.open_connection("10.77.0.2", 8883)
    while True:
        writer.write(b"230.1")
        await reader.read(4096)
        await asyncio.sleep(random.uniform(5, 15))


async def main():
    meters = []
    for n in range(int(sys.argv[1])):
        meters.append(asyncio.create_task(meter()))
        if n % 50 == 0:
            await asyncio.sleep(0.05)
    await asyncio.gather(*meters)


asyncio.run(main())
