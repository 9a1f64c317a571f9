"""Robotis' own SDK against the simulated Dynamixel X servos."""

import time

from dynamixel_sdk import (
    COMM_SUCCESS,
    GroupBulkRead,
    GroupBulkWrite,
    GroupSyncRead,
    GroupSyncWrite,
    PacketHandler,
    PortHandler,
)

from bench import Verdicts, simulated_port

IDS = range(1, 10)
MODE, HOMING, TORQUE, HARDWARE_ERROR, WATCHDOG = 11, 20, 64, 70, 98
GOAL_VELOCITY, GOAL, PRESENT, POSITION = 104, 116, 126, 132
ACCESS_ERROR = 7
MODEL = 1020


def four(value):
    return list(value.to_bytes(4, "little"))


def settle(servos, port, servo, goal):
    for _ in range(200):
        position = servos.read4ByteTxRx(port, servo, POSITION)[0]
        if abs(position - goal) <= 2:
            break
        time.sleep(0.01)
    return position


def main():
    verdicts = Verdicts("dynamixel-sdk 4.1.0")
    with simulated_port() as path:
        port = PortHandler(path)
        verdicts.same("opens", port.openPort() and port.setBaudRate(1_000_000), True)
        servos = PacketHandler(2.0)

        for servo in IDS:
            found = servos.ping(port, servo)
            verdicts.same(f"ping {servo}", found, (MODEL, COMM_SUCCESS, 0))
        everybody, result = servos.broadcastPing(port)
        verdicts.same("broadcast ping", (sorted(everybody), result), (list(IDS), COMM_SUCCESS))
        verdicts.same("nobody has id 20", servos.ping(port, 20)[1] == COMM_SUCCESS, False)

        before = servos.read4ByteTxRx(port, 1, POSITION)[0]
        verdicts.same("torque on", servos.write1ByteTxRx(port, 1, TORQUE, 1), (COMM_SUCCESS, 0))
        time.sleep(0.1)
        verdicts.near("stands", servos.read4ByteTxRx(port, 1, POSITION)[0], before, 2)
        refused = servos.write1ByteTxRx(port, 1, MODE, 4)
        verdicts.same("settings are refused while torque is on", refused, (COMM_SUCCESS, ACCESS_ERROR))
        moved = servos.write4ByteTxRx(port, 1, GOAL, before + 150)
        verdicts.same("goal", moved, (COMM_SUCCESS, 0))
        verdicts.near("goes there", settle(servos, port, 1, before + 150), before + 150, 2)

        # A value with a header inside must be stuffed by both sides.
        servos.write4ByteTxRx(port, 1, GOAL_VELOCITY, 0x00FDFFFF)
        stuffed = servos.read4ByteTxRx(port, 1, GOAL_VELOCITY)
        verdicts.same("stuffing", stuffed, (0x00FDFFFF, COMM_SUCCESS, 0))

        # Two servos turn one joint of this arm in opposite senses.
        for servo in IDS:
            servos.write1ByteTxRx(port, servo, TORQUE, 1)
        goals = {servo: 2048 + (-100 if servo in (3, 5) else 100) for servo in IDS}
        writer = GroupSyncWrite(port, servos, GOAL, 4)
        for servo in IDS:
            writer.addParam(servo, four(goals[servo]))
        verdicts.same("sync write", writer.txPacket(), COMM_SUCCESS)
        for servo in IDS:
            found = settle(servos, port, servo, goals[servo])
            verdicts.near(f"servo {servo} goes there", found, goals[servo], 2)

        reader = GroupSyncRead(port, servos, PRESENT, 10)
        for servo in IDS:
            reader.addParam(servo)

        def cycle(read):
            def do():
                return writer.txPacket() == COMM_SUCCESS and read() == COMM_SUCCESS

            return do

        verdicts.rate("sync write and sync read of 10 bytes, 9 servos", 300, cycle(reader.txRxPacket))
        verdicts.near("sync read", reader.getData(2, POSITION, 4), goals[2], 2)
        verdicts.rate(
            "sync write and fast sync read, 9 servos", 300, cycle(reader.fastSyncRead)
        )
        for servo in IDS:
            verdicts.near(f"fast read {servo}", reader.getData(servo, POSITION, 4), goals[servo], 2)

        bulk = GroupBulkWrite(port, servos)
        bulk.addParam(1, GOAL, 4, four(2048))
        bulk.addParam(6, WATCHDOG, 1, [0])
        verdicts.same("bulk write", bulk.txPacket(), COMM_SUCCESS)
        verdicts.near("bulk goal", settle(servos, port, 1, 2048), 2048, 2)
        bulk = GroupBulkRead(port, servos)
        bulk.addParam(1, POSITION, 4)
        bulk.addParam(6, TORQUE, 1)
        verdicts.same("bulk read", bulk.txRxPacket(), COMM_SUCCESS)
        verdicts.near("bulk position", bulk.getData(1, POSITION, 4), 2048, 2)
        verdicts.same("bulk torque", bulk.getData(6, TORQUE, 1), 1)

        servos.write1ByteTxRx(port, 8, WATCHDOG, 5)
        time.sleep(0.3)
        verdicts.same("the watchdog trips", servos.read1ByteTxRx(port, 8, WATCHDOG)[0], 255)
        refused = servos.write4ByteTxRx(port, 8, GOAL, 2048)
        verdicts.same("goals are then refused", refused, (COMM_SUCCESS, ACCESS_ERROR))
        servos.write1ByteTxRx(port, 8, WATCHDOG, 0)
        taken = servos.write4ByteTxRx(port, 8, GOAL, 2048)
        verdicts.same("until it is cleared", taken, (COMM_SUCCESS, 0))

        verdicts.same("reboot", servos.reboot(port, 4), (COMM_SUCCESS, 0))
        verdicts.same("a rebooted servo is limp", servos.read1ByteTxRx(port, 4, TORQUE)[0], 0)
        port.closePort()
    verdicts.end()


main()
