"""The official Python client draws twice, by `{}` and by the text `[object Object]`: progress and both pictures each time.

python_drawing.py URL                  over HTTP
python_drawing.py COMMAND ARGUMENT...  over standard input and output
"""

import asyncio
import base64
import sys
import warnings

from mcp import ClientSession, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client

PNG = b"\x89PNG\r\n\x1a\n"

# The second way of calling sends what the client's own types would refuse.
warnings.filterwarnings("ignore", message="Pydantic serializer warnings")


def connection(words):
    if words[0].startswith("http"):
        return streamable_http_client(words[0])
    return stdio_client(StdioServerParameters(command=words[0], args=words[1:]))


async def draw(session, arguments):
    heard = []

    async def progress(done, total, message):
        heard.append((done, total, message))

    params = types.CallToolRequestParams.model_construct(name="stroke", arguments=arguments)
    request = types.CallToolRequest.model_construct(method="tools/call", params=params)
    result = await session.send_request(request, types.CallToolResult, progress_callback=progress)
    text = result.content[0].text
    assert not result.is_error, text
    pictures = [base64.b64decode(block.data) for block in result.content if block.type == "image"]
    assert len(pictures) == 2 and all(picture.startswith(PNG) for picture in pictures), len(pictures)
    assert len(heard) >= 5, heard
    said = result.structured_content
    assert said["success"] and said["stroke_count"] > 0 and said["understood"]["scene"] == "default", said
    return said


async def main(words):
    async with connection(words) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        await session.call_tool("reset", {})
        said = await draw(session, {})
        assert said["repairs"] == [], said["repairs"]
        await session.call_tool("reset", {})
        said = await draw(session, "[object Object]")
        assert [repair["code"] for repair in said["repairs"]] == ["payload_lost"], said["repairs"]
    print(f"python mcp: drew twice, the ink at most {said['deviation_mm_max']} mm from the design")


asyncio.run(main(sys.argv[1:]))
