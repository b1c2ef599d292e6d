"""Takes values from meters on port 8883 and answers each with a byte."""
import asyncio
import resource

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))


async def meter(reader, writer):
    while await reader.read(4096):
        writer.write(b"k")


async def main():
    server = await asyncio.start_server(meter, port=8883, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
