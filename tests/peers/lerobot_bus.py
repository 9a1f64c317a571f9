"""LeRobot's own motors bus against the simulated STS servos.

Of what LeRobot needs for learning nothing is installed; the few names that its motors bus reaches
on the way are stood in for here. What speaks to the servos is all its own.
"""

import sys
import time
import types
from unittest import mock

for name in ("torch", "accelerate", "datasets", "datasets.utils", "datasets.utils.logging"):
    stand_in = types.ModuleType(name)
    stand_in.__getattr__ = lambda attribute: mock.MagicMock(name=attribute)
    stand_in.__path__ = []
    sys.modules[name] = stand_in

from lerobot.motors import Motor, MotorNormMode  # noqa: E402
from lerobot.motors.feetech import FeetechMotorsBus, OperatingMode  # noqa: E402

from bench import SAG, Verdicts, simulated_port  # noqa: E402

NAMES = ["pan", "lift", "elbow", "wrist", "roll", "gripper"]


def main():
    verdicts = Verdicts("lerobot 0.4.4")
    with simulated_port() as path:
        motors = {
            name: Motor(number, "sts3215", MotorNormMode.RANGE_M100_100)
            for number, name in enumerate(NAMES, 1)
        }
        bus = FeetechMotorsBus(path, motors)
        bus.connect()
        verdicts.same("connects", bus.is_connected, True)
        found = {number: bus.ping(number) for number in range(1, 7)}
        verdicts.same("pings", found, dict.fromkeys(range(1, 7), 777))
        with bus.torque_disabled():
            bus.configure_motors()
            for name in NAMES:
                bus.write("Operating_Mode", name, OperatingMode.POSITION.value)
        delays = bus.sync_read("Return_Delay_Time", normalize=False)
        verdicts.same("configures", delays, dict.fromkeys(NAMES, 0))
        bus.enable_torque()
        verdicts.same("torque", bus.sync_read("Torque_Enable", normalize=False), dict.fromkeys(NAMES, 1))
        goals = {name: 2048 + 80 * number for number, name in enumerate(NAMES, 1)}
        bus.sync_write("Goal_Position", goals, normalize=False)
        time.sleep(1.5)
        positions = bus.sync_read("Present_Position", normalize=False)
        for name in NAMES:
            verdicts.near(f"{name} goes there", positions[name], goals[name], SAG)

        def cycle():
            bus.sync_write("Goal_Position", goals, normalize=False)
            try:
                read = bus.sync_read("Present_Position", normalize=False, num_retry=2)
            except ConnectionError:  # its own deadlines are short
                return False
            return len(read) == len(NAMES)

        verdicts.rate("sync write and sync read of 2 bytes, 6 servos", 300, cycle)
        bus.disconnect()

        # A new servo gets its number: the answer to that comes from the old one.
        renamed = FeetechMotorsBus(path, {"gripper": Motor(9, "sts3215", MotorNormMode.RANGE_M100_100)})
        renamed.setup_motor("gripper", initial_baudrate=1_000_000, initial_id=6)
        verdicts.same("sets a servo up", (renamed.ping(9), renamed.ping(6)), (777, None))
        renamed.port_handler.closePort()
    verdicts.end()


main()
