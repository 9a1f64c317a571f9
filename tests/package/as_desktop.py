"""Runs an unpacked MCPB bundle as a desktop client does, and draws with it.

Usage: as_desktop.py FOLDER
"""

import json
import pathlib
import subprocess
import sys


def main(folder):
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    files = sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())
    assert files == ["manifest.json", manifest["server"]["entry_point"]], files
    how = manifest["server"]["mcp_config"]
    command = [how["command"].replace("${__dirname}", str(folder)), *how["args"]]
    # A desktop client has a short path and no profile of a shell.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PATH": "/usr/bin:/bin"})

    def ask(number, method, params):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        process.stdin.flush()
        while True:
            said = json.loads(process.stdout.readline())
            if said.get("id") == number:
                return said["result"]

    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "desktop", "version": "1"}}
    assert ask(1, "initialize", client)["serverInfo"]["name"] == manifest["name"]
    listed = {tool["name"] for tool in ask(2, "tools/list", {})["tools"]}
    missing = {tool["name"] for tool in manifest["tools"]} - listed
    assert not missing, missing
    previewed = ask(3, "tools/call", {"name": "stroke", "arguments": {"dry_run": True}})
    assert not previewed.get("isError"), previewed
    process.stdin.close()
    assert process.wait(60) == 0
    print(f"the bundle runs: {len(listed)} tools, and a dry run")


main(*sys.argv[1:])
