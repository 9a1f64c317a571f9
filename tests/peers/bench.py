"""Starts a simulated arm on a pseudo-terminal, and counts what its judges find."""

import contextlib
import os
import shlex
import subprocess
import pathlib
import sys
import time
import tomllib


# Counts within which a servo stands at its goal: measured ones sag under the arm.
SAG = 32


@contextlib.contextmanager
def simulated_port():
    """The path of a pseudo-terminal with the arm that was named on the command line."""
    command = os.environ["STEADYHAND_SIM"].replace("@ARM@", sys.argv[1])
    with subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, text=True) as sim:
        try:
            path = sim.stdout.readline().strip()
            if not path:
                raise SystemExit("the simulator printed no path")
            yield path
        finally:
            sim.terminate()


def signs_of_servos():
    """The sign of each servo of that arm by its id, those of the held ones 1; and the ids of those that turn a joint alone."""
    arms = pathlib.Path(__file__).parents[2] / "scenes" / "arms"
    arm = tomllib.loads((arms / f"{sys.argv[1]}.toml").read_text())
    if "joints" not in arm:
        arm = tomllib.loads((arms / f"{arm['like']}.toml").read_text())
    joints = [joint["servos"] for joint in arm["joints"]]
    signs = {servo["id"]: servo["sign"] for joint in joints for servo in joint}
    alone = [joint[0]["id"] for joint in joints if len(joint) == 1]
    return {**signs, **{held["id"]: 1 for held in arm["held"]}}, alone


class Verdicts:
    """Every claim is checked and printed; one that fails fails the run."""

    def __init__(self, judge):
        self.judge, self.passed, self.failed = judge, 0, 0

    def same(self, claim, found, wanted):
        if found == wanted:
            self.passed += 1
        else:
            self.failed += 1
            print(f"{self.judge}: {claim}: found {found!r}, wanted {wanted!r}", file=sys.stderr)

    def near(self, claim, found, wanted, apart):
        self.same(f"{claim} ({found} near {wanted})", abs(found - wanted) <= apart, True)

    def rate(self, claim, cycles, do):
        begun = time.monotonic()
        good = sum(1 for _ in range(cycles) if do())
        took = time.monotonic() - begun
        # The vendors' own deadlines are short: on a busy machine a few of them pass.
        self.near(f"{claim}: cycles that succeeded", good, cycles, cycles // 20)
        print(f"{self.judge}: {claim}: {cycles / took:.0f} Hz")

    def end(self):
        print(f"{self.judge}: {self.passed} passed, {self.failed} failed")
        raise SystemExit(1 if self.failed else 0)
