"""One trivial tool on FastMCP: `fastmcp_server.py stdio`, or `fastmcp_server.py http PORT`."""

import sys

from fastmcp import FastMCP

server = FastMCP("trivial")


@server.tool
def list_nodes(debug: bool = False) -> dict:
    """List the nodes"""
    return {"success": True, "message": "1 node(s): local", "nodes": [{"name": "local"}]}


if sys.argv[1] == "stdio":
    server.run(show_banner=False)
else:
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), stateless_http=True, json_response=True, show_banner=False)
