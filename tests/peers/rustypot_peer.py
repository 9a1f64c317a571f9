"""rustypot against the simulated STS servos."""

import time

from rustypot import Sts3215PyController

from bench import SAG, Verdicts, simulated_port

IDS = list(range(1, 7))
POSITION = 56
TICK = 0.001534


def main():
    verdicts = Verdicts("rustypot 1.13.1")
    with simulated_port() as path:
        servos = Sts3215PyController(path, 1_000_000, 0.05)
        for servo in IDS:
            verdicts.same(f"ping {servo}", servos.ping(servo), True)
            verdicts.same(f"model of {servo}", servos.read_model(servo), [777])
        verdicts.same("nobody has id 9", answers(servos, 9), False)
        servos.sync_write_torque_enable(IDS, [True] * len(IDS))
        verdicts.same("torque", servos.sync_read_raw_torque_enable(IDS), [1] * len(IDS))
        goals = [0.1 * servo for servo in IDS]
        servos.sync_write_goal_position(IDS, goals)
        time.sleep(1.5)
        for servo, goal, found in zip(IDS, goals, servos.sync_read_present_position(IDS)):
            verdicts.near(f"servo {servo} goes there", found, goal, SAG * TICK)

        def cycle():
            servos.sync_write_goal_position(IDS, goals)
            return len(servos.sync_read_raw_present_position(IDS)) == len(IDS)

        verdicts.rate("sync write and sync read of 2 bytes, 6 servos", 500, cycle)
    verdicts.end()


def answers(servos, servo):
    try:
        return bool(servos.ping(servo))
    except Exception:  # a silent servo is an error of no stable type
        return False


if __name__ == "__main__":
    main()
