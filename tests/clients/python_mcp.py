"""The official Python client against a node: list, call, progress, cancel, words on a canvas, error text.

python_mcp.py URL                  over HTTP
python_mcp.py COMMAND ARGUMENT...  over standard input and output
"""

import asyncio
import contextlib
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

PROGRESS_WAIT_S = 60
STILL_TRIES = 150


def connection(words):
    if words[0].startswith("http"):
        return streamable_http_client(words[0])
    return stdio_client(StdioServerParameters(command=words[0], args=words[1:]))


async def check(session):
    names = [tool.name for tool in (await session.list_tools()).tools]
    assert "sense" in names and "stroke" in names, names
    yield "list"

    sensed = await session.call_tool("sense", {})
    assert not sensed.is_error and sensed.structured_content["success"], sensed
    yield "call"

    # A client before us may have stopped the arm; a node that has not moved yet refuses, which does not matter here.
    await session.call_tool("reset", {})
    heard = []
    enough = asyncio.Event()

    async def progress(done, total, message):
        heard.append((done, total, message))
        if len(heard) >= 3:
            enough.set()

    stroke = asyncio.create_task(session.call_tool("stroke", {}, progress_callback=progress))
    await asyncio.wait_for(enough.wait(), PROGRESS_WAIT_S)
    assert [h[0] for h in heard] == sorted({h[0] for h in heard}), heard
    yield "progress"

    stroke.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await stroke
    state = "moving"
    for _ in range(STILL_TRIES):
        state = (await session.call_tool("sense", {})).structured_content.get("state")
        if state not in ("moving", "stopping"):
            break
        await asyncio.sleep(0.2)
    assert state == "stopped", state
    yield "cancel"

    await session.call_tool("reset", {})
    written = await session.call_tool("stroke", {"text": "hello"})
    assert not written.is_error, written
    understood = written.structured_content["understood"]
    assert understood["text"] == "hello" and understood["scene"] == "canvas", understood
    yield "canvas"

    wrong = await session.call_tool("strok", {})
    assert wrong.is_error and "stroke" in wrong.content[0].text, wrong
    yield "error text"


async def main(words):
    async with connection(words) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        done = [step async for step in check(session)]
    print("python mcp:", ", ".join(done))


asyncio.run(main(sys.argv[1:]))
