"""Opens fifteen connections a second that ask for nothing, as browsers do in advance, and closes each when the server does."""
import asyncio


async def preconnect():
    try:
        reader, writer = await asyncio.open_connection("10.77.0.2", 80)
        await reader.read()
        writer.close()
    except OSError:
        pass


async def main():
    opened = set()
    while True:
        task = asyncio.create_task(preconnect())
        opened.add(task)
        task.add_done_callback(opened.discard)
        await asyncio.sleep(1 / 15)


asyncio.run(main())
