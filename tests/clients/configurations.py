"""Gives each configuration that `steadyhand clients` prints to the client that it is for, or to a reader of that form.

  configurations.py PROGRAM URL

Inspector and, where it is on the path, Claude Code read theirs themselves; the OpenAI Agents SDK takes its own as arguments.
FastMCP starts what the files of Claude Desktop, Cursor and LM Studio say: these programs read the same form. VS Code's is held
against the keys of its schema (`mcpConfiguration.ts` in its source). Each has to come to the tools of a node, started by the
entry and at URL.
"""

import asyncio
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import fastmcp
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

PROGRAM, URL = sys.argv[1:]
FASTMCP_READS = ["claude-desktop", "claude-code", "cursor", "lm-studio"]
NAMES_NO_NODE_THAT_RUNS = "claude-desktop"
VSCODE_KEYS = {
    "stdio": {"type", "command", "cwd", "args", "envFile", "env", "dev"},
    "http": {"type", "url", "headers", "dev"},
}


def printed(client, *more):
    done = subprocess.run([PROGRAM, "clients", client, *more], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def both_forms(client):
    yield printed(client)
    if client != NAMES_NO_NODE_THAT_RUNS:
        yield printed(client, "--node", URL)


def run(folder, *command):
    home = {**os.environ, "HOME": folder, "MCP_INSPECTOR_SECRET_STORE": "memory"}
    done = subprocess.run(command, cwd=folder, env=home, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def inspector_lists_the_tools():
    for configuration in both_forms("inspector"):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "mcp.json")
            path.write_text(json.dumps(configuration))
            server = ["--config", str(path), "--server", "steadyhand"]
            listed = run(folder, "mcp-inspector", "--cli", *server, "--method", "tools/list")
            assert "stroke" in {tool["name"] for tool in json.loads(listed[listed.index("{\n"):])["tools"]}


def claude_code_knows_the_server():
    for configuration in both_forms("claude-code"):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, ".mcp.json").write_text(json.dumps(configuration))
            said = run(folder, "claude", "mcp", "get", "steadyhand")
            expected = "Type: http" if "url" in configuration["mcpServers"]["steadyhand"] else "Type: stdio"
            assert expected in said, said


async def agents_list_the_tools():
    started, connected = both_forms("openai-agents")
    for server in [MCPServerStdio(**started), MCPServerStreamableHttp(**connected)]:
        async with server:
            assert "stroke" in {tool.name for tool in await server.list_tools()}


async def fastmcp_lists_the_tools(client):
    for configuration in both_forms(client):
        async with fastmcp.Client(configuration) as session:
            assert "stroke" in {tool.name for tool in await session.list_tools()}


def vscode_has_a_schema_for_it():
    for configuration in both_forms("vscode"):
        assert set(configuration) == {"servers"}
        for server in configuration["servers"].values():
            assert set(server) <= VSCODE_KEYS[server["type"]], server


async def main():
    inspector_lists_the_tools()
    vscode_has_a_schema_for_it()
    await agents_list_the_tools()
    for client in FASTMCP_READS:
        await fastmcp_lists_the_tools(client)
    judged = ["inspector", "vscode", "openai-agents", *FASTMCP_READS]
    if shutil.which("claude"):
        claude_code_knows_the_server()
        judged.append("Claude Code itself")
    print(f"configurations: {', '.join(judged)}")


asyncio.run(main())
