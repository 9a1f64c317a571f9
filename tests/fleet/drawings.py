"""Thirty drawings, or `STEADYHAND_FLEET_DRAWINGS`, while the queue is killed twice and two nodes are cut off: each is begun once, and all
are drawn. Nothing is enabled, approved, cleared or confirmed meanwhile.
"""

import json
import os
import signal
import struct
import subprocess
import sys
import time

from network import *  # noqa: F403

DRAWINGS = int(os.environ.get("STEADYHAND_FLEET_DRAWINGS", "30"))
WITHIN_S = 420


def designs():
    folder = WORK / "designs"
    folder.mkdir()
    for number in range(DRAWINGS):
        x = 5 + number
        (folder / f"d{number:02}.svg").write_text(
            "<svg xmlns='http://www.w3.org/2000/svg' width='40mm' height='40mm' viewBox='0 0 40 40'>"
            f"<path d='M5 5 L{x} 20' fill='none' stroke='black'/></svg>")
    return folder


def queue(*more):
    out = (WORK / "queue.log").open("ab")
    hub = WORK / "hub-at-hub-by-hub.toml"
    return subprocess.Popen(["ip", "netns", "exec", "hub", PROGRAM, "--config", hub, "fleet", "draw", WORK / "designs", *more],
                            stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def tickets(name):
    """The ticket of each job of a node, from the bytes of its journal: a field is its name's length, name, length and value."""
    found = []
    for journal in sorted((WORK / f"state-{name}" / "jobs").glob("*/journal")):
        data = journal.read_bytes()
        at = data.find(b"\x06ticket")
        if at < 0:
            continue
        length, = struct.unpack_from("<I", data, at + 7)
        if length:
            # A job without a record of ink (kind 4 is followed by the field drawn_mm) drew nothing.
            inked = b"\x04\x08drawn_mm" in data
            found.append((data[at + 11:at + 11 + length].decode(), journal.parent.name, inked))
    return found


def drawn():
    return [(ticket, name, job) for name in NAMES[1:] for ticket, job, inked in tickets(name) if inked]


sys.modules["network"].PATIENCE_S = WITHIN_S
begin(is_routed=False)
running = {name: node(name, is_routed=False) for name in NAMES}
until("all nodes answer", lambda: all((WORK / f"{n}-at-{n}-by-{n}.log").read_text().count("MCP at") for n in NAMES))
designs()
first = queue()
until("some drawings are begun", lambda: len(drawn()) >= DRAWINGS // 6)
first.kill()
first.wait()
# What the first has begun is begun: more can come from the second alone.
time.sleep(1)
before = len(drawn())
second = queue()
until("the queue goes on after kill -9", lambda: len(drawn()) > before)
for cut in ("left", "right"):
    run("ip", "link", "set", f"v-{cut}", "down")
time.sleep(3)
before = len(drawn())
until("the others go on beside a partition", lambda: len(drawn()) > before or before == DRAWINGS)
second.send_signal(signal.SIGKILL)
second.wait()
third = queue("--no-wait", "--json")
assert third.wait(timeout=WITHIN_S) != 0, "with two nodes cut off the batch is not said to be drawn"
waits = (WORK / "queue.log").read_text()
assert all(f"{cut} (" in waits for cut in ("left", "right")), "what it waits for is named"
for cut in ("left", "right"):
    run("ip", "link", "set", f"v-{cut}", "up")
last = queue()
began = time.monotonic()
while last.poll() is None and time.monotonic() - began < WITHIN_S:
    time.sleep(1)
text = (WORK / "queue.log").read_text()
if last.poll() != 0:
    print(text[-6000:])
    sys.exit(f"the queue did not come to its end: {last.poll()}")
all_drawn = drawn()
once = {ticket for ticket, _, _ in all_drawn}
assert len(once) == DRAWINGS and len(all_drawn) == DRAWINGS, sorted(all_drawn)
per_node = {name: sum(1 for _, at, _ in all_drawn if at == name) for name in NAMES[1:]}
print(f"{DRAWINGS} drawings, each begun once, by {per_node}")
