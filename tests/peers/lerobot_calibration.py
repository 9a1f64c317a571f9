"""LeRobot's own reader against the calibration that we export, and our reader against what it writes.

Of what LeRobot needs for learning nothing is installed; the few names that its robots reach on the way
are stood in for here. What reads, writes and uses the calibration is all its own.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from unittest import mock

for name in (
    "torch",
    "accelerate",
    "datasets",
    "datasets.utils",
    "datasets.utils.logging",
    "lerobot.processor",
    "lerobot.utils.constants",
):
    stand_in = types.ModuleType(name)
    stand_in.__getattr__ = lambda attribute: mock.MagicMock(name=attribute)
    stand_in.__path__ = []
    sys.modules[name] = stand_in

from lerobot.motors import Motor, MotorCalibration, MotorNormMode  # noqa: E402
from lerobot.motors.feetech import FeetechMotorsBus  # noqa: E402
from lerobot.robots.robot import Robot  # noqa: E402

from bench import Verdicts, simulated_port  # noqa: E402

JOINTS = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll"]


def steadyhand(state, *words):
    """What our program prints, run to its end."""
    command = shlex.split(os.environ.get("STEADYHAND", "target/debug/steadyhand"))
    done = subprocess.run(
        [*command, "--state", str(state), "calibrate", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"steadyhand {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


class Arm(Robot):
    """No more of a robot than its file of calibration needs."""

    name = "steadyhand"

    def __init__(self, file):
        self.id, self.calibration, self.calibration_fpath = "arm", {}, file
        self._load_calibration()


# What a robot does with its arm is not asked here.
Arm.__abstractmethods__ = frozenset()


def main():
    verdicts = Verdicts("lerobot 0.4.4, calibration")
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours.json"), Path(folder, "theirs.json")
        ours.write_text(steadyhand(folder, "export", "--lerobot", "--arm", sys.argv[1]))
        arm = Arm(ours)
        said = json.loads(ours.read_text())
        verdicts.same("reads every motor", sorted(arm.calibration), sorted(said))
        verdicts.same("has the arm's joints", [name in arm.calibration for name in JOINTS], [True] * 5)
        for name, motor in arm.calibration.items():
            verdicts.same(f"{name} is one of its own", isinstance(motor, MotorCalibration), True)
            verdicts.same(f"{name} as exported", vars(motor), said[name])
        use(verdicts, arm)
        arm._save_calibration(theirs)
        verdicts.same("writes it again", json.loads(theirs.read_text()), said)
        taken = steadyhand(folder, "import", str(theirs), "--arm", sys.argv[1])
        zeros = [line for line in taken.splitlines() if "zero_tick" in line]
        verdicts.same("is imported again", len(zeros), 5)
        verdicts.same("unchanged", [line.endswith("difference [0.000000]") for line in zeros], [True] * 5)
    verdicts.end()


def use(verdicts, arm):
    """Its bus, with our calibration, on the simulated arm."""
    with simulated_port() as path:
        motors = {
            name: Motor(arm.calibration[name].id, "sts3215", MotorNormMode.DEGREES) for name in JOINTS
        }
        calibration = {name: arm.calibration[name] for name in JOINTS}
        bus = FeetechMotorsBus(path, motors, calibration)
        bus.connect()
        # Its own way to unlock what outlives the power.
        bus.disable_torque()
        bus.write_calibration(calibration)
        verdicts.same("is calibrated once it is written", bus.is_calibrated, True)
        ticks = bus.sync_read("Present_Position", normalize=False)
        degrees = bus.sync_read("Present_Position")
        for name, motor in calibration.items():
            middle = (motor.range_min + motor.range_max) / 2
            verdicts.near(f"{name} in degrees", degrees[name], (ticks[name] - middle) * 360 / 4095, 0.1)
        bus.disconnect(disable_torque=False)


if __name__ == "__main__":
    main()
