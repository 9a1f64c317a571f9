"""Our driver beside rustypot and the vendors' SDKs on the same simulated bus, in one run: loops a
second with the same bytes, on a paced wire and on one without time.

Paced, ours is no slower than the fastest; without time at least three times the vendors'.
Usage: compare.py VENVS
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

VENVS = Path(sys.argv[1])
ARM = "scenes/arms/so101.toml"
SIM = os.environ.get("STEADYHAND_SIM_BINARY", "target/debug/steadyhand")
LOOP_RATE = os.environ.get("STEADYHAND_LOOP_RATE", "target/debug/examples/loop_rate")
VENDORS = {"ftservo-python-sdk": "feetech_ft", "feetech-servo-sdk": "feetech_lerobot_sdk"}
# On a machine with other work the best of several short runs is what a library can do.
RUNS = 3
# Rounding of a wire's time, and noise of this machine's clock.
AS_FAST = 0.97


@contextlib.contextmanager
def port(*options):
    command = [SIM, "sim", "--pty", "--arm", "so101", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sim:
        try:
            yield sim.stdout.readline().strip()
        finally:
            sim.terminate()


def rate(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    good, hz = done.stdout.split()
    return int(good), float(hz)


def rates(cycles, *options):
    commands = {"steadyhand": (LOOP_RATE, ARM)}
    script = str(Path(__file__).with_name("rate_of.py"))
    commands["rustypot"] = (str(VENVS / "rustypot_peer/bin/python"), script, "rustypot")
    for name, venv in VENDORS.items():
        commands[name] = (str(VENVS / venv / "bin/python"), script, name)
    best = dict.fromkeys(commands, 0.0)
    for _ in range(RUNS):
        for name, command in commands.items():
            with port(*options) as path:
                good, hz = rate(*command, path, str(cycles))
            if good < cycles * 0.9:
                print(f"{name}: only {good} of {cycles} cycles succeeded", file=sys.stderr)
            best[name] = max(best[name], hz)
    return best


def main():
    paced, unpaced = rates(300), rates(1000, "--unpaced")
    print(f"{'loops a second':<22}{'paced':>10}{'no wire time':>14}")
    for name in paced:
        print(f"{name:<22}{paced[name]:>10.0f}{unpaced[name]:>14.0f}")
    others = [hz for name, hz in paced.items() if name != "steadyhand"]
    vendors = [unpaced[name] for name in VENDORS]
    slower = paced["steadyhand"] < AS_FAST * max(others)
    slow = unpaced["steadyhand"] < 3 * max(vendors)
    if slower:
        print("paced, another program is faster than ours", file=sys.stderr)
    if slow:
        print("without wire time ours is not three times the vendors'", file=sys.stderr)
    raise SystemExit(1 if slower or slow else 0)


main()
