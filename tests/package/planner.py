"""A planner on a server's standard input and output: it draws, stops and leaves.

planner.py COMMAND OF THE SERVER...
"""
import json
import subprocess
import sys

server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def say(message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


def ask(number, method, **params):
    say({"id": number, "method": method, "params": params})
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == number:
            return answer["result"]
    raise SystemExit(f"no answer to {method}")


ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "planner", "version": "1"})
say({"method": "notifications/initialized"})
drawn = ask(2, "tools/call", name="stroke", arguments={"text": "Hi", "size_mm": 20})
assert drawn["structuredContent"]["success"] is True, drawn
stopped = ask(3, "tools/call", name="stop", arguments={})
assert stopped["structuredContent"]["state"] == "stopped", stopped
server.stdin.close()
assert server.wait(60) == 0, server.returncode
print(drawn["content"][0]["text"].splitlines()[0])
