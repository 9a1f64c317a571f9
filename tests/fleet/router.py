"""A Zenoh router: `router.py CONFIG.json5`. It ends with its standard input."""

import sys

import zenoh

with zenoh.open(zenoh.Config.from_file(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.read()
