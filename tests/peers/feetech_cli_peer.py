"""feetech-cli both ways: its commands against our simulated servos, and our driver and bus tools
against the simulator that it ships."""

import json
import os
import pty
import subprocess
import sys
import termios
import threading
import tty
from pathlib import Path

from feetech_cli.simulator import SimulatedBus, SimulatedServo

from bench import Verdicts, simulated_port

FEETECH = Path(sys.executable).with_name("feetech")
STEADYHAND = os.environ.get("STEADYHAND", "target/debug/steadyhand")
LOOP_RATE = os.environ.get("STEADYHAND_LOOP_RATE", "target/debug/examples/loop_rate")
IDS = range(1, 7)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def frames(pending):
    """Takes whole instruction packets off the front of what was heard."""
    while len(pending) >= 4 and len(pending) >= 4 + pending[3]:
        if pending[:2] != b"\xff\xff":
            del pending[0]
            continue
        end = 4 + pending[3]
        yield bytes(pending[:end])
        del pending[:end]


def serve(master, bus):
    pending = bytearray()
    while True:
        try:
            pending += os.read(master, 1024)
        except OSError:
            return
        for frame in frames(pending):
            bus.write(frame)
            os.write(master, bus.read(4096))


def their_port(bus):
    master, slave = pty.openpty()
    tty.setraw(slave)
    settings = termios.tcgetattr(slave)
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    threading.Thread(target=serve, args=(master, bus), daemon=True).start()
    return os.ttyname(slave), slave


def their_commands(verdicts):
    with simulated_port() as path:
        code, text = run(FEETECH, "-p", path, "-b", "1000000", "scan")
        verdicts.same("scan", code, 0)
        for servo in IDS:
            verdicts.same(f"scan shows {servo}", str(servo) in text, True)
        code, text = run(FEETECH, "-p", path, "-b", "1000000", "info", "3", "--all")
        verdicts.same("info", code, 0)
        verdicts.same("info shows the model", "777" in text or "STS3215" in text, True)
        code, text = run(FEETECH, "-p", path, "-b", "1000000", "read", "3", "present_position")
        verdicts.same("read", (code, "2048" in text or "2047" in text), (0, True))


def our_driver(verdicts):
    bus = SimulatedBus([SimulatedServo(servo) for servo in IDS])
    path, slave = their_port(bus)
    code, text = run(STEADYHAND, "bus", "scan", path, "--first", "--json")
    found = json.loads(text[text.index("[") :]) if code == 0 else []
    models = [(servo["id"], servo["model"]) for servo in found]
    verdicts.same("our scan finds theirs", models, [(servo, 777) for servo in IDS])
    code, text = run(STEADYHAND, "doctor", path, "--arm", "so101")
    verdicts.same(f"our doctor finds nothing wrong: {text}", code, 0)
    code, text = run(LOOP_RATE, "scenes/arms/so101.toml", path, "300")
    good = int(text.split()[0]) if code == 0 else text
    verdicts.same("our driver attaches, energises and holds for 300 cycles", good, 300)
    torque = [servo.get("torque_enable") for servo in bus.servos]
    verdicts.same("their servos are stiff", torque, [1] * 6)
    verdicts.same("and stand where they stood", {servo.get("present_position") for servo in bus.servos}, {2048})
    rejected = [servo.rejected_writes for servo in bus.servos]
    verdicts.same("nothing was written into their settings", rejected, [[]] * 6)
    code, text = run(STEADYHAND, "bus", "configure", path, "--id", "6", "--new-id", "16", "--yes")
    verdicts.same(f"our configure gives theirs an id: {text}", code, 0)
    servo = bus.servos[5]
    verdicts.same("and locks it again", (servo.servo_id, servo.locked), (16, True))
    os.close(slave)


def main():
    verdicts = Verdicts("feetech-cli 0.1.8")
    their_commands(verdicts)
    our_driver(verdicts)
    verdicts.end()


main()
