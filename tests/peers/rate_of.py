"""How often a second one library writes 7 bytes to six STS servos and reads 8 from each: NAME PORT CYCLES."""

import sys
import time

IDS = list(range(1, 7))
GOAL, PRESENT = 41, 56
# Acceleration, position 2048, time, speed.
BLOCK = [50, 0, 8, 0, 0, 88, 2]


def rustypot(port):
    from rustypot import Sts3215PyController

    servos = Sts3215PyController(port, 1_000_000, 0.1)
    data = [bytes(BLOCK)] * len(IDS)

    def cycle():
        servos.sync_write_raw_data(IDS, GOAL, data)
        return len(servos.sync_read_raw_data(IDS, PRESENT, 8)) == len(IDS)

    return cycle


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
    cycle = rustypot(port) if name == "rustypot" else vendor(port)
    begun = time.monotonic()
    good = sum(1 for _ in range(cycles) if cycle())
    print(good, round(cycles / (time.monotonic() - begun), 1))


main()
