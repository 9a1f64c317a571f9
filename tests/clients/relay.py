"""Stands between an HTTP client and a node and writes down what the node says.

relay.py NODE_HOST:PORT FILE     prints the port it listens on; ends with its standard input
"""

import asyncio
import sys


async def copy(reader, writer, heard=None):
    while data := await reader.read(65536):
        if heard:
            heard.write(data)
            heard.flush()
        writer.write(data)
        await writer.drain()
    writer.close()


async def main(target, path):
    host, port = target.rsplit(":", 1)
    with open(path, "wb") as heard:

        async def between(reader, writer):
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
            there = asyncio.ensure_future(copy(reader, far_writer))
            back = asyncio.ensure_future(copy(far_reader, writer, heard))
            # Whoever hangs up first, the other end hears of it.
            await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
            for end in (writer, far_writer):
                end.close()

        server = await asyncio.start_server(between, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main(*sys.argv[1:]))
