"""The Feetech SDK that LeRobot uses against the simulated STS servos, in LeRobot's order of doing
things: find, configure with torque off, torque on, sync write and sync read."""

import time

from scservo_sdk import (
    COMM_SUCCESS,
    GroupSyncRead,
    GroupSyncWrite,
    PacketHandler,
    PortHandler,
    SCS_HIBYTE,
    SCS_LOBYTE,
)

from bench import SAG, Verdicts, simulated_port

IDS = range(1, 7)
MODEL, RETURN_DELAY, MODE, TORQUE, GOAL, LOCK, PRESENT = 3, 7, 33, 40, 42, 55, 56


def main():
    verdicts = Verdicts("feetech-servo-sdk 1.0.0")
    with simulated_port() as path:
        port = PortHandler(path)
        verdicts.same("opens", port.openPort() and port.setBaudRate(1_000_000), True)
        servos = PacketHandler(0)

        for servo in IDS:
            model, result, error = servos.ping(port, servo)
            verdicts.same(f"ping {servo}", (model, result, error), (777, COMM_SUCCESS, 0))

        for servo in IDS:
            for address, value in ((TORQUE, 0), (LOCK, 0), (RETURN_DELAY, 0), (MODE, 0), (LOCK, 1)):
                written = servos.write1ByteTxRx(port, servo, address, value)
                verdicts.same(f"servo {servo} takes {address}", written, (COMM_SUCCESS, 0))
            delay = servos.read1ByteTxRx(port, servo, RETURN_DELAY)
            verdicts.same(f"servo {servo} keeps its return delay", delay, (0, COMM_SUCCESS, 0))
            servos.write1ByteTxRx(port, servo, TORQUE, 1)
            verdicts.same(f"servo {servo} is on", servos.read1ByteTxRx(port, servo, TORQUE)[0], 1)

        reader = GroupSyncRead(port, servos, PRESENT, 2)
        writer = GroupSyncWrite(port, servos, GOAL, 2)
        goals = {servo: 2048 + 40 * servo for servo in IDS}
        for servo in IDS:
            reader.addParam(servo)
            writer.addParam(servo, [SCS_LOBYTE(goals[servo]), SCS_HIBYTE(goals[servo])])
        time.sleep(0.05)
        reader.txRxPacket()
        verdicts.near("does not move by itself", reader.getData(1, PRESENT, 2), 2048, 1)

        def cycle():
            return writer.txPacket() == COMM_SUCCESS and reader.txRxPacket() == COMM_SUCCESS

        verdicts.rate("sync write and sync read of 2 bytes, 6 servos", 500, cycle)
        time.sleep(0.5)
        reader.txRxPacket()
        for servo in IDS:
            found = reader.getData(servo, PRESENT, 2)
            verdicts.near(f"servo {servo} goes there", found, goals[servo], SAG)
        port.closePort()
    verdicts.end()


main()
