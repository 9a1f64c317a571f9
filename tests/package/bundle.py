"""Builds an MCPB bundle, which desktop clients install by a click, and the `server.json` that MCP registries take.

Usage: bundle.py BINARY OUT

The bundle holds a manifest and the binary, and nothing else. Its list of tools is asked of the binary itself.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import tomllib

import archive

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
# The registry takes no longer description.
DESCRIPTION_MAX = 100


def tools(binary):
    """Names and titles of the six tools, as the server lists them."""
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bundle", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    said = subprocess.run([binary, "serve"], input=lines, capture_output=True, text=True, timeout=60).stdout
    answers = [json.loads(line) for line in said.splitlines()]
    listed = next(one["result"]["tools"] for one in answers if one.get("id") == 2)
    plain = [one for one in listed if not one["name"].startswith(("robot_", "system_"))]
    return [{"name": one["name"], "description": one["title"]} for one in plain]


def manifest(package, workspace, binary):
    return {
        "manifest_version": "0.3",
        "name": package["name"],
        "display_name": "Steadyhand",
        "version": workspace["version"],
        "description": package["description"],
        "author": {"name": "The Steadyhand authors", "url": workspace["repository"]},
        "repository": {"type": "git", "url": workspace["repository"]},
        "license": workspace["license"],
        "server": {
            "type": "binary",
            "entry_point": f"server/{package['name']}",
            "mcp_config": {
                "command": f"${{__dirname}}/server/{package['name']}",
                "args": ["serve"],
            },
        },
        "tools": tools(binary),
        "compatibility": {"platforms": ["linux"]},
    }


def registry_entry(package, workspace, bundle):
    description = package["description"]
    assert len(description) <= DESCRIPTION_MAX, f"{len(description)} characters; {DESCRIPTION_MAX} is the limit"
    owner = workspace["repository"].split("/")[3]
    return {
        "$schema": SCHEMA,
        "name": f"io.github.{owner}/{package['name']}",
        "description": description,
        "repository": {"url": workspace["repository"], "source": "github"},
        "version": workspace["version"],
        "packages": [
            {
                "registryType": "pypi",
                "identifier": package["name"],
                "version": workspace["version"],
                "runtimeHint": "uvx",
                "packageArguments": [{"type": "positional", "value": "serve"}],
                "transport": {"type": "stdio"},
            },
            {
                "registryType": "mcpb",
                "identifier": f"{workspace['repository']}/releases/download/v{workspace['version']}/{bundle.name}",
                "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
                "transport": {"type": "stdio"},
            },
        ],
    }


def main(binary, out):
    root = tomllib.loads((ROOT / "Cargo.toml").read_text())
    package, workspace = root["package"], root["workspace"]["package"]
    bundle = pathlib.Path(out) / f"{package['name']}-{workspace['version']}.mcpb"
    said = json.dumps(manifest(package, workspace, binary), indent=2)
    archive.write(bundle, [
        ("manifest.json", said.encode(), 0o644),
        (f"server/{package['name']}", pathlib.Path(binary).read_bytes(), 0o755),
    ])
    entry = registry_entry(package, workspace, bundle)
    (pathlib.Path(out) / "server.json").write_text(json.dumps(entry, indent=2) + "\n")
    print(bundle)


main(*sys.argv[1:])
