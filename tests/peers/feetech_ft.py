"""Feetech's own SDK against the simulated STS servos."""

import time

from scservo_sdk import COMM_SUCCESS, GroupSyncRead, PortHandler, sms_sts

from bench import Verdicts, signs_of_servos, simulated_port

SIGNS, ALONE = signs_of_servos()
IDS = list(SIGNS)
PRESENT = 56
# Counts by which the weakest servo of a shipped arm hangs from its goal while the arm is stretched out.
SAG = 72


def aside(servo):
    """A goal at the same angle for servos that turn one joint in opposite senses."""
    return 2048 - 148 * SIGNS[servo]


def settle(servos, servo, goal):
    for _ in range(200):
        position, _, result, _ = servos.ReadPosSpeed(servo)
        if result == COMM_SUCCESS and abs(position - goal) <= SAG:
            return position
        time.sleep(0.01)
    return position


def comes_to_rest(servos, servo):
    for _ in range(300):
        if (servos.ReadSpeed(servo)[0], servos.ReadMoving(servo)[0]) == (0, 0):
            return True
        time.sleep(0.01)
    return False


def main():
    verdicts = Verdicts("ftservo-python-sdk 2.0.1")
    with simulated_port() as path:
        port = PortHandler(path)
        verdicts.same("opens", port.openPort() and port.setBaudRate(1_000_000), True)
        servos = sms_sts(port)

        for servo in IDS:
            model, result, error = servos.ping(servo)
            verdicts.same(f"ping {servo}", (model, result, error), (777, COMM_SUCCESS, 0))
        verdicts.same("nobody has the id after", servos.ping(max(IDS) + 1)[1] == COMM_SUCCESS, False)

        (first, second), last = ALONE[:2], IDS[-1]
        verdicts.same("WritePosEx", servos.WritePosEx(first, 2300, 1500, 50), (COMM_SUCCESS, 0))
        verdicts.near("goes there", settle(servos, first, 2300), 2300, SAG)
        verdicts.same("comes to rest", comes_to_rest(servos, first), True)

        for servo in IDS:
            servos.SyncWritePosEx(servo, aside(servo), 2000, 100)
        verdicts.same("SyncWritePosEx", servos.groupSyncWrite.txPacket(), COMM_SUCCESS)
        servos.groupSyncWrite.clearParam()
        for servo in IDS:
            verdicts.near(f"servo {servo} goes there", settle(servos, servo, aside(servo)), aside(servo), SAG)

        verdicts.same("RegWritePosEx", servos.RegWritePosEx(second, 2100, 1500, 50), (COMM_SUCCESS, 0))
        time.sleep(0.1)
        verdicts.near("waits for the action", servos.ReadPos(second)[0], aside(second), SAG)
        servos.RegAction()
        verdicts.near("goes on the action", settle(servos, second, 2100), 2100, SAG)

        before = servos.read1ByteTxRx(last, 21)[0]
        servos.write1ByteTxRx(last, 21, 99)
        verdicts.same("settings are locked", servos.read1ByteTxRx(last, 21)[0], before)
        servos.unLockEprom(last)
        servos.write1ByteTxRx(last, 21, 99)
        verdicts.same("and can be unlocked", servos.read1ByteTxRx(last, 21)[0], 99)
        servos.LockEprom(last)

        group = GroupSyncRead(servos, PRESENT, 8)
        for servo in IDS:
            group.addParam(servo)

        def read_all():
            return group.txRxPacket() == COMM_SUCCESS and all(
                group.isAvailable(servo, PRESENT, 8)[0] for servo in IDS
            )

        verdicts.rate("GroupSyncRead of 8 bytes from all", 300, read_all)
        for servo in IDS:
            wanted = 2100 if servo == second else aside(servo)
            verdicts.near(f"reads {servo}", group.getData(servo, PRESENT, 2), wanted, SAG)
        port.closePort()
    verdicts.end()


main()
