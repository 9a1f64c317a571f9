"""Our driver beside rustypot and the vendors' SDKs on the same simulated bus, in one run: loops a
second with the same bytes, on a paced wire and on one without time.

Paced, ours is no slower than the fastest. On a wire without time most of a loop is the system's
pseudo-terminal, whoever drives it: so the line itself is timed too, with the same bytes to and fro
and nobody to make or read them, and a vendor's program adds at least three times as much to that as
ours. They take turns, each within a second of the others, and what is judged is the ratio of
neighbours: what else the machine does slows all of them.
Usage: compare.py VENVS
"""

import contextlib
import os
import statistics
import subprocess
import sys
from pathlib import Path

VENVS = Path(sys.argv[1])
SIM = os.environ.get("STEADYHAND_SIM_BINARY", "target/release/steadyhand")
LOOP_RATE = os.environ.get("STEADYHAND_LOOP_RATE", "target/release/examples/loop_rate")
OURS = "steadyhand"
LINE = "the line itself"
# By arm: the others and the venv of each. The first is no vendor's.
PEERS = {
    "so101": {
        "rustypot": "rustypot_peer",
        "ftservo-python-sdk": "feetech_ft",
        "feetech-servo-sdk": "feetech_lerobot_sdk",
    },
    "widowx250s": {"rustypot-x": "rustypot_peer", "dynamixel-sdk": "dynamixel"},
}
TURNS = 5
# A turn in which a program was starved tells nothing of it.
CYCLES_LEAST = 0.9
TRIES = 4
# Rounding of a wire's time: one of a cycle's 134 bytes.
AS_FAST = 0.99
TIMES_THE_VENDORS = 3


@contextlib.contextmanager
def port(arm, *options):
    command = [SIM, "sim", "--pty", "--arm", arm, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sim:
        try:
            yield sim.stdout.readline().strip()
        finally:
            sim.terminate()


def commands(arm):
    script = str(Path(__file__).with_name("rate_of.py"))
    yield LINE, (LOOP_RATE, "--line", f"scenes/arms/{arm}.toml")
    yield OURS, (LOOP_RATE, f"scenes/arms/{arm}.toml")
    for name, venv in PEERS[arm].items():
        yield name, (str(VENVS / venv / "bin/python"), script, name)


def rate(command, path, cycles):
    done = subprocess.run([*command, path, str(cycles)], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    good, hz = done.stdout.split()
    return int(good), float(hz)


def turn(arm, name, command, cycles, options):
    for _ in range(TRIES):
        with port(arm, *options) as path:
            good, hz = rate(command, path, cycles)
        if good >= cycles * CYCLES_LEAST:
            return hz
        print(f"{name}: only {good} of {cycles} cycles succeeded; once more", file=sys.stderr)
    raise SystemExit(f"{name}: never came through {cycles} cycles")


def rates(arm, cycles, *options):
    """Each program's rates, turn by turn."""
    taken = {name: [] for name, _ in commands(arm)}
    for _ in range(TURNS):
        for name, command in commands(arm):
            taken[name].append(turn(arm, name, command, cycles, options))
    return taken


def middle(taken, figure):
    """Of what all programs' neighbouring turns say, the middle."""
    return statistics.median(figure(dict(zip(taken, turn, strict=True))) for turn in zip(*taken.values(), strict=True))


def ratio(taken, other):
    """How many times as fast ours is."""
    return middle(taken, lambda hz: hz[OURS] / hz[other])


def added_us(taken, name):
    """What a program's loop takes beyond the line's own."""
    return middle(taken, lambda hz: 1e6 / hz[name] - 1e6 / hz[LINE])


def judged(arm):
    """Prints an arm's rows; what is not as it should be."""
    paced, unpaced = rates(arm, 300), rates(arm, 5000, "--unpaced")
    print(f"{arm + ', loops a second':<28}{'paced':>8}{'ours':>8}{'no wire time':>14}{'ours':>8}{'added':>10}")
    for name in paced:
        rows = [statistics.median(taken[name]) for taken in (paced, unpaced)]
        times = [ratio(taken, name) for taken in (paced, unpaced)]
        print(f"{name:<28}{rows[0]:>8.0f}{times[0]:>7.2f}x{rows[1]:>14.0f}{times[1]:>7.2f}x{added_us(unpaced, name):>7.1f} us")
    for name in PEERS[arm]:
        if ratio(paced, name) < AS_FAST:
            yield f"paced, {name} is faster than ours"
    _, *vendors = PEERS[arm]
    for name in vendors:
        if added_us(unpaced, name) < TIMES_THE_VENDORS * added_us(unpaced, OURS):
            yield f"without wire time {name} does not add three times what ours adds"


def main():
    wrong = [line for arm in PEERS for line in judged(arm)]
    for line in wrong:
        print(line, file=sys.stderr)
    raise SystemExit(1 if wrong else 0)


main()
