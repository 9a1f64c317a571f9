"""How often a second one library sends every servo of an arm its goal and reads it: NAME PORT CYCLES.

STS: 7 bytes written from acceleration to speed, 8 read, six servos. Dynamixel X: the goal alone written,
current, speed and position read in one fast request, the nine servos of the WidowX.
"""

import sys
import time

IDS = list(range(1, 7))
GOAL, PRESENT = 41, 56
# Acceleration, position 2048, time, speed.
BLOCK = [50, 0, 8, 0, 0, 88, 2]

X_IDS = list(range(1, 10))
X_GOAL, X_PRESENT, X_PRESENT_LENGTH = 116, 126, 10
X_BLOCK = [0, 8, 0, 0]


def rustypot(port):
    from rustypot import Sts3215PyController

    return raw(Sts3215PyController(port, 1_000_000, 0.1), IDS, (GOAL, BLOCK), (PRESENT, 8))


def rustypot_x(port):
    from rustypot import Xl430PyController

    servos = Xl430PyController(port, 1_000_000, 0.1)
    servos.set_fast_sync_read(True)
    return raw(servos, X_IDS, (X_GOAL, X_BLOCK), (X_PRESENT, X_PRESENT_LENGTH))


def raw(servos, ids, goal, present):
    address, block = goal
    data = [bytes(block)] * len(ids)

    def cycle():
        servos.sync_write_raw_data(ids, address, data)
        return len(servos.sync_read_raw_data(ids, *present)) == len(ids)

    return cycle


def vendor_x(port):
    import dynamixel_sdk as sdk

    handler = sdk.PortHandler(port)
    handler.openPort()
    handler.setBaudRate(1_000_000)
    servos = sdk.PacketHandler(2.0)
    writer = sdk.GroupSyncWrite(handler, servos, X_GOAL, len(X_BLOCK))
    reader = sdk.GroupSyncRead(handler, servos, X_PRESENT, X_PRESENT_LENGTH)
    for servo in X_IDS:
        writer.addParam(servo, X_BLOCK)
        reader.addParam(servo)
    return lambda: writer.txPacket() == 0 and reader.fastSyncRead() == 0


def vendor(port):
    import scservo_sdk as sdk

    handler = sdk.PortHandler(port)
    handler.openPort()
    handler.setBaudRate(1_000_000)
    # Feetech's newer SDK joins port and packets, the older one keeps them apart.
    if hasattr(sdk, "sms_sts"):
        servos = sdk.sms_sts(handler)
        writer, reader = sdk.GroupSyncWrite(servos, GOAL, 7), sdk.GroupSyncRead(servos, PRESENT, 8)
    else:
        servos = sdk.PacketHandler(0)
        writer = sdk.GroupSyncWrite(handler, servos, GOAL, 7)
        reader = sdk.GroupSyncRead(handler, servos, PRESENT, 8)
    for servo in IDS:
        writer.addParam(servo, BLOCK)
        reader.addParam(servo)
    return lambda: writer.txPacket() == 0 and reader.txRxPacket() == 0


def main():
    name, port, cycles = sys.argv[1], sys.argv[2], int(sys.argv[3])
    known = {"rustypot": rustypot, "rustypot-x": rustypot_x, "dynamixel-sdk": vendor_x}
    cycle = known.get(name, vendor)(port)
    begun = time.monotonic()
    good = sum(1 for _ in range(cycles) if cycle())
    print(good, round(cycles / (time.monotonic() - begun), 1))


main()
