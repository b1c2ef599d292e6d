"""So many clients that send a byte of a header every second, and never the end of it; they come back."""
import asyncio
import sys


async def client():
    while True:
        try:
            _, w = await asyncio.open_connection("10.77.0.2", 80)
            w.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
            while not w.is_closing():
                await asyncio.sleep(1)
                w.write(b"X")
                await w.drain()
        except OSError:
            pass
        await asyncio.sleep(0.2)


async def main():
    await asyncio.gather(*(client() for _ in range(int(sys.argv[1]))))


asyncio.run(main())
