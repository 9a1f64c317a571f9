"""FastMCP's client against a node: list, call, progress, cancel, words on a canvas, error text.

python_fastmcp.py URL                  over HTTP
python_fastmcp.py COMMAND ARGUMENT...  over standard input and output
"""

import asyncio
import contextlib
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

PROGRESS_WAIT_S = 60
STILL_TRIES = 150


def connection(words):
    if words[0].startswith("http"):
        return Client(words[0])
    return Client(StdioTransport(words[0], words[1:], keep_alive=False))


async def check(client):
    names = [tool.name for tool in await client.list_tools()]
    assert "sense" in names and "stroke" in names, names
    yield "list"

    sensed = await client.call_tool("sense", {})
    assert sensed.structured_content["success"], sensed
    yield "call"

    # A client before us may have stopped the arm; a node that has not moved yet refuses, which does not matter here.
    await client.call_tool("reset", {}, raise_on_error=False)
    heard = []
    enough = asyncio.Event()

    async def progress(done, total, message):
        heard.append(done)
        if len(heard) >= 3:
            enough.set()

    stroke = asyncio.create_task(client.call_tool("stroke", {}, progress_handler=progress))
    await asyncio.wait_for(enough.wait(), PROGRESS_WAIT_S)
    assert heard == sorted(set(heard)), heard
    yield "progress"

    stroke.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await stroke
    state = "moving"
    for _ in range(STILL_TRIES):
        state = (await client.call_tool("sense", {})).structured_content.get("state")
        if state not in ("moving", "stopping"):
            break
        await asyncio.sleep(0.2)
    assert state == "stopped", state
    yield "cancel"

    await client.call_tool("reset", {})
    written = await client.call_tool("stroke", {"text": "hello"})
    understood = written.structured_content["understood"]
    assert understood["text"] == "hello" and understood["scene"] == "canvas", written
    yield "canvas"

    wrong = await client.call_tool("strok", {}, raise_on_error=False)
    assert wrong.is_error and "stroke" in wrong.content[0].text, wrong
    yield "error text"


async def main(words):
    async with connection(words) as client:
        done = [step async for step in check(client)]
    print("fastmcp:", ", ".join(done))


asyncio.run(main(sys.argv[1:]))
