"""What the judges of recordings share: counting what holds, and a node that serves."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager

BINARY = sys.argv[1]
SEED = int(os.environ.get("STEADYHAND_SEED", "20261123"))
FPS = 20

judged = 0


def check(holds, what):
    """Counts what was looked at, and ends at the first thing that is wrong."""
    global judged
    judged += 1
    if not holds:
        sys.exit(f"NOT TRUE: {what}")


def steadyhand(*args, code=0):
    ran = subprocess.run([BINARY, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    check(ran.returncode == code, f"{' '.join(map(str, args))} ends with {ran.returncode}: {ran.stdout[-500:]} {ran.stderr[-1500:]}")
    return ran.stdout


def held():
    """How many things held so far."""
    return judged


@contextmanager
def serving(folder, config, state):
    """A node that serves in real time, with its address; killed at the end if it is still there."""
    words = ["--config", config, "--scenes", folder / "scenes", "--state", state]
    serve = [BINARY, *map(str, words), "serve", "--http", "127.0.0.1:0", "--socket", str(folder / "node.sock")]
    with (folder / "log").open("w+") as log:
        node = subprocess.Popen(serve, stderr=log, stdin=subprocess.DEVNULL)
        try:
            yield node, address(folder / "log", node)
        finally:
            node.kill()
            node.wait()


def address(log, node):
    found = []
    wait(lambda: found.extend(re.findall(r"http://127\.0\.0\.1:\d+/mcp", log.read_text())) or found, node, "the node serves")
    return found[0]


def wait(holds, node, what):
    until = time.monotonic() + 60
    while not holds():
        if node.poll() is not None or time.monotonic() > until:
            sys.exit(f"NOT TRUE: {what}")
        time.sleep(0.02)
