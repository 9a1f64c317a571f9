"""Calls three servers in turn, a few calls each round, and compares what the calls cost them.

Usage: compare.py STEADYHAND "FASTMCP COMMAND" "TYPESCRIPT COMMAND"; ROUNDS and CALLS change how long it takes. Each server
is started STARTS times, in turns with the others; the quickest start counts, because the machine may do other things.
"""

import http.client
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS, CALLS, STARTS = (int(os.environ.get(name, or_else)) for name, or_else in (("ROUNDS", 12), ("CALLS", 200), ("STARTS", 3)))
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_nodes", "arguments": {}}}
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
# The least that a process costs which reads lines and writes lines: it answers all alike and looks at nothing but the id.
LEAST = "a line of Perl"
PERL = r'$| = 1; print qq({"jsonrpc":"2.0","id":$1,"result":{}}\n) if /"id": (\d+)/'
# What has to be true of every other server: CPU and median time of a call, memory, start.
WANTED = {"cpu_us": 15, "p50_us": 6, "rss_mib": 5, "start_ms": 20}


class Server:
    def __init__(self, name, command, environment, stdout=subprocess.PIPE):
        self.name, self.took = name, []
        self.began = time.perf_counter()
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.DEVNULL, env=environment, bufsize=0
        )

    def cpu_s(self):
        # The kernel's clock of another process, all its threads: to the nanosecond, where /proc counts hundredths of a second.
        return time.clock_gettime((~self.child.pid << 3) | 2)

    def rss_mib(self):
        status = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def end(self):
        self.child.kill()
        self.child.wait()

    def round(self):
        for _ in range(CALLS):
            began = time.perf_counter()
            answer = self.ask(CALL)
            self.took.append(time.perf_counter() - began)
            assert answer["result"].get("isError") is not True, answer

    def figures(self, cpu_s):
        calls = len(self.took)
        return {
            "cpu_us": cpu_s / calls * 1e6,
            "p50_us": statistics.median(self.took) * 1e6,
            "rss_mib": self.rss_mib(),
            "start_ms": self.start_s * 1e3,
        }


class Stdio(Server):
    def __init__(self, name, command, environment):
        super().__init__(name, command, environment)
        self.out = self.child.stdout
        self.rest = b""
        self.ask(HELLO)
        self.start_s = time.perf_counter() - self.began
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self, message):
        self.child.stdin.write(json.dumps(message).encode() + b"\n")

    def ask(self, message):
        self.say(message)
        while True:
            while b"\n" not in self.rest:
                more = os.read(self.out.fileno(), 1 << 20)
                assert more, f"{self.name} ended"
                self.rest += more
            line, self.rest = self.rest.split(b"\n", 1)
            answer = json.loads(line)
            if answer.get("id") == message["id"]:
                return answer


class Http(Server):
    def __init__(self, name, command, environment, port):
        # Nobody reads what they print: one that logs every call would stand still once a pipe is full.
        super().__init__(name, command, environment, subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert self.child.poll() is None, f"{name} ended"
                time.sleep(0.002)
        self.http = http.client.HTTPConnection("127.0.0.1", port)
        self.ask(HELLO)
        self.start_s = time.perf_counter() - self.began

    def ask(self, message):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.http.request("POST", "/mcp", json.dumps(message), headers)
        response = self.http.getresponse()
        text = response.read().decode()
        start = text.index("{")
        return json.JSONDecoder().raw_decode(text[start:])[0]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(way, name, command, environment):
    own = name == "steadyhand"
    if name == LEAST:
        return Stdio(name, command, environment)
    if way == "stdio":
        return Stdio(name, [*command, "serve"] if own else [*command, "stdio"], environment)
    port = free_port()
    at = ["serve", "--http", f"127.0.0.1:{port}"] if own else ["http", str(port)]
    return Http(name, [*command, *at], environment, port)


def servers(way, commands, environment, running):
    starts = {name: [] for name, _ in commands}
    for _ in range(STARTS):
        while running:
            running.pop().end()
        for name, command in commands:
            running.append(start(way, name, command, environment))
            starts[name].append(running[-1].start_s)
    for server in running:
        server.start_s = min(starts[server.name])


def compare(way, all_servers):
    for server in all_servers:
        server.round()
        server.took.clear()
    used = {server.name: 0.0 for server in all_servers}
    for _ in range(ROUNDS):
        for server in all_servers:
            before = server.cpu_s()
            server.round()
            used[server.name] += server.cpu_s() - before
    rows = {server.name: server.figures(used[server.name]) for server in all_servers}
    print(f"{way:6} {'':14} {'CPU µs/call':>12} {'p50 µs':>10} {'MiB':>8} {'start ms':>9}")
    for name, row in rows.items():
        print(f"{'':6} {name:14} {row['cpu_us']:12.0f} {row['p50_us']:10.0f} {row['rss_mib']:8.1f} {row['start_ms']:9.0f}")
    own, least, short = rows.pop("steadyhand"), rows.pop(LEAST, None), []
    for name, row in rows.items():
        ratios = {key: row[key] / max(own[key], 1e-9) for key in WANTED}
        print(f"{'':6} {name:14} " + ", ".join(f"{key} {ratio:.1f}×" for key, ratio in ratios.items()))
        for key in (key for key in WANTED if ratios[key] < WANTED[key]):
            short.append(f"{way} {name} {key}: {ratios[key]:.1f}× of {WANTED[key]}×" + beyond(row, least, key))
    return short


def beyond(row, least, key):
    """Whether even a process that does nothing falls short of it."""
    times = row[key] / least[key] if least else WANTED[key]
    return f"; {LEAST}: {times:.1f}×" if times < WANTED[key] else ""


def main(steadyhand, fastmcp, typescript):
    commands = [("steadyhand", [steadyhand]), ("FastMCP", fastmcp.split()), ("TypeScript", typescript.split())]
    short = []
    for way in ("stdio", "http"):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
            all_servers = []
            least = [(LEAST, ["perl", "-ne", PERL])] if way == "stdio" else []
            try:
                servers(way, commands + least, environment, all_servers)
                short += compare(way, all_servers)
            finally:
                for server in all_servers:
                    server.end()
    print("\n".join(["short of what is wanted:", *short]) if short else "all that is wanted holds")
    return bool(short)


sys.exit(main(*sys.argv[1:]))
