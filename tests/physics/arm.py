"""The arm on a pseudo-terminal, paced by the clock, with a back door (`control.py`) for pushes, faults and records.

It prints where the maker's foot lies in the arm file's frame, then `port NAME`. All lengths at the back door are in that
frame, in millimetres.
"""
import argparse
import array
import fcntl
import gc
import json
import math
import os
import pty
import select
import socket
import struct
import time
import tty

import mujoco
import numpy as np

from arm_model import NAMES, Frame, build, plane_quat
from sts3215 import MEASURED, TICKS, Bus, Servo, signed

# time; of each joint angle, count, set point and duty; tip; force on sheet and wall; speeds
LOG_WIDTH = 1 + 6 * 4 + 5 + 5
# How fast a hand turns a joint.
HAND_RAD_S = 2.0
TCGETS2 = 0x802C542A


class Arm:
    def __init__(self, options):
        self.options, self.frame = options, Frame(options.arm_file, options.scene)
        self.model = build(self.frame, options)
        self.data = mujoco.MjData(self.model)
        model = self.model
        # A horn is mounted anywhere; the homing offset makes its count 2048 where the joint is at zero.
        chance = np.random.default_rng(options.seed)
        self.mount = [2048 + int(chance.integers(-400, 400)) for _ in NAMES]
        errors = options.zero_error_deg
        self.zero_error = [math.radians(e) for e in errors] + [0] * (6 - len(errors))
        self.servos = [Servo(i + 1, options, self.mount[i] - 2048) for i in range(6)]
        self.bus = Bus(self.servos)
        self.at = [model.joint(name).qposadr[0] for name in NAMES]
        self.dof = [model.joint(name).dofadr[0] for name in NAMES]
        self.tip, self.gripper = model.site("tip").id, model.body("gripper").id
        self.geoms = {name: model.geom(name).id for name in ("tip", "sheet", "wall")}
        self.volts, self.friction = options.volts, model.dof_frictionloss.copy()
        start = list(options.start_rad) + [0.0]
        # Somebody holds the limp arm until it is energised.
        self.hand = [a + z for a, z in zip(start, self.frame.zeros)]
        self.hand_at, self.hand_stiffness = list(self.hand), 30.0
        for at, angle in zip(self.at, self.hand):
            self.data.qpos[at] = angle
        mujoco.mj_forward(model, self.data)
        self.t, self.push_until, self.late = 0.0, -1.0, 0.0
        self.log, self.ink, self.is_energised = None, array.array("d"), False
        self.force_sheet = self.force_wall = 0.0

    def step(self):
        data, dt = self.data, self.options.dt
        volts = self.volts - 0.06 * sum(servo.amps for servo in self.servos)
        for i, servo in enumerate(self.servos):
            angle, speed = data.qpos[self.at[i]], data.qvel[self.dof[i]]
            shaft = angle - self.frame.zeros[i] + self.zero_error[i] + self.mount[i] / TICKS
            torque = servo.step(shaft, speed, dt, volts)
            if self.hand is not None and servo.memory[40] != 1:
                reach = HAND_RAD_S * dt
                self.hand_at[i] += max(-reach, min(reach, self.hand[i] - self.hand_at[i]))
                held = self.hand_stiffness * (self.hand_at[i] - angle) - 1.5 * speed
                torque += held + data.qfrc_bias[self.dof[i]]
            data.qfrc_applied[self.dof[i]] = torque
        if not self.is_energised and any(servo.memory[40] == 1 for servo in self.servos):
            self.is_energised, self.hand = True, None
        if 0 < self.push_until < self.t:
            data.xfrc_applied[self.gripper] = 0
            self.push_until = -1.0
        mujoco.mj_step(self.model, data)
        self.t += dt
        self.feel()
        self.record()

    def feel(self):
        self.force_sheet = self.force_wall = 0.0
        force = np.zeros(6)
        for index in range(self.data.ncon):
            contact = self.data.contact[index]
            pair = (contact.geom1, contact.geom2)
            if self.geoms["tip"] not in pair:
                continue
            mujoco.mj_contactForce(self.model, self.data, index, force)
            if self.geoms["sheet"] in pair:
                self.force_sheet += force[0]
            elif self.geoms["wall"] in pair:
                self.force_wall += force[0]

    def tip_mm(self):
        return self.frame.to_file(self.data.site_xpos[self.tip]) * 1e3

    def record(self):
        if self.force_sheet > 0.002:
            self.ink.extend((self.t, *self.tip_mm(), self.force_sheet))
        if self.log is not None:
            points = [s.set_point if s.set_point is not None else -1 for s in self.servos]
            row = [self.t, *(self.data.qpos[at] for at in self.at), *(s.present() for s in self.servos), *points]
            row += [*(s.duty for s in self.servos), *self.tip_mm(), self.force_sheet, self.force_wall]
            self.log.extend(row + [self.data.qvel[dof] for dof in self.dof[:5]])

    def state(self):
        angles = [math.degrees(self.data.qpos[at] - zero) for at, zero in zip(self.at, self.frame.zeros)]
        return {
            "t": self.t, "tip_mm": [round(x, 3) for x in self.tip_mm()], "q_deg": [round(a, 3) for a in angles],
            "counts": [s.present() for s in self.servos], "goal": [signed(s.word(42), 15) for s in self.servos],
            "torque": [s.memory[40] for s in self.servos], "limit": [s.word(48) for s in self.servos],
            "duty": [round(s.duty, 3) for s in self.servos], "tripped": [s.tripped for s in self.servos],
            "force_sheet": round(self.force_sheet, 3), "late_ms": round(self.late * 1e3, 1), "damaged": self.bus.damaged,
            "persistent_writes": self.bus.persistent_writes, "ink": len(self.ink) // 5,
            "bias_nm": [round(float(self.data.qfrc_bias[dof]), 3) for dof in self.dof[:5]],
        }

    def command(self, request):
        """Does what the back door asks, and returns its answer."""
        done = getattr(self, "do_" + request.pop("cmd"))(**request)
        return "ok" if done is None else done

    def do_state(self):
        return self.state()

    def do_log(self):
        self.log, self.ink = array.array("d"), array.array("d")

    def do_save(self, path):
        log = np.frombuffer(self.log, dtype="d").reshape(-1, LOG_WIDTH) if self.log is not None else np.zeros((0, LOG_WIDTH))
        ink = self.marks()
        np.savez(path, log=log, ink=ink)
        rows, marks = len(log), len(ink)
        del log
        self.log = None
        return {"rows": rows, "ink": marks}

    def do_ink(self, path):
        np.save(path, self.marks())

    def marks(self):
        """A row for each millisecond of contact: time, place, force. A copy, which lets the ink grow."""
        return np.array(self.ink).reshape(-1, 5)

    def do_push(self, f, s):
        self.data.xfrc_applied[self.gripper, :3] = self.frame.direction(f)
        self.push_until = self.t + s

    def do_sheet(self, dz):
        """Lays the sheet so many millimetres higher than the scene says."""
        self.do_lay(self.frame.sheet_at * 1e3 + self.frame.normal * dz, self.frame.normal)

    def do_lay(self, at, normal):
        sheet = self.geoms["sheet"]
        self.model.geom_pos[sheet] = self.frame.to_model(np.array(at) * 1e-3)
        self.model.geom_quat[sheet] = plane_quat(self.frame, np.array(normal))

    def do_wall(self, at):
        self.data.mocap_pos[0] = self.frame.to_model(np.array(at) * 1e-3)

    def do_jam(self, joint, nm=None):
        self.model.dof_frictionloss[self.dof[joint]] = self.friction[self.dof[joint]] if nm is None else nm

    def do_volts(self, v):
        self.volts = v

    def do_set(self, id, attr):
        for name, value in attr.items():
            setattr(self.servos[id - 1], name, value)

    def do_power(self, id):
        self.servos[id - 1].forget()

    def do_hand(self, q=None, k=30.0):
        self.hand_at = [self.data.qpos[at] for at in self.at]
        self.hand = None if q is None else [a + z for a, z in zip([*q, 0.0][:6], self.frame.zeros)]
        self.hand_stiffness = k


def options():
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--arm-file", required=True)
    add("--scene", required=True)
    add("--work", required=True, help="folder for the port and the back door")
    add("--measured", choices=list(MEASURED), help="a servo as others measured it")
    add("--servo", choices=["bam", "mjcf"], default="bam", help="mjcf: the maker's own stiff gains")
    add("--p", type=int, default=32)
    add("--volts", type=float, default=12.1)
    add("--backlash-deg", type=float, default=0.0)
    add("--zero-error-deg", type=float, nargs="*", default=[])
    add("--pen-error-mm", type=float, nargs=3, default=[0, 0, 0])
    add("--pen-n-per-m", type=float, default=400.0)
    add("--start-rad", type=float, nargs=5, default=[0.0, -1.5, 1.2, 0.8, 0.0])
    add("--seed", type=int, default=1)
    add("--dt", type=float, default=0.001)
    chosen = parser.parse_args()
    chosen.stall, chosen.damping, chosen.friction, chosen.armature = MEASURED[chosen.measured or "7v4"]
    return chosen


def serve_control(door, arm):
    caller, _ = door.accept()
    caller.settimeout(0.5)
    try:
        answer = arm.command(json.loads(caller.makefile().readline()))
    except Exception as error:  # the arm goes on whatever it was asked
        answer = {"error": repr(error)}
    try:
        caller.sendall((json.dumps(answer) + "\n").encode())
    except OSError:
        pass
    caller.close()


def serve_bus(master, slave, arm):
    try:
        data = os.read(master, 4096)
    except OSError:
        return
    settings = fcntl.ioctl(slave, TCGETS2, bytes(44))
    is_right_rate = struct.unpack_from("<I", settings, 40)[0] == 1_000_000
    out = arm.bus.feed(data) if is_right_rate else b""
    if out:
        try:
            os.write(master, out)
        except BlockingIOError:
            pass


def main():
    chosen = options()
    arm = Arm(chosen)
    master, slave = pty.openpty()
    tty.setraw(slave)
    tty.setraw(master)
    os.set_blocking(master, False)
    control = os.path.join(chosen.work, "control")
    if os.path.exists(control):
        os.unlink(control)
    door = socket.socket(socket.AF_UNIX)
    door.bind(control)
    door.listen(4)
    print("foot at z %.2f mm of the arm file's frame; left over %.6f" % (arm.frame.foot_mm(), arm.frame.left_over))
    print("port", os.ttyname(slave), flush=True)
    gc.disable()
    began = time.monotonic()
    while True:
        now, steps = time.monotonic() - began, 0
        while arm.t < now and steps < 20:
            arm.step()
            steps += 1
        late = now - arm.t
        if late > 0.25:  # it cannot keep up: let its time stand still rather than race
            began += late
        arm.late = max(arm.late, late)
        wait = max(0.0, arm.t - (time.monotonic() - began))
        ready, _, _ = select.select([master, door], [], [], wait)
        if master in ready:
            serve_bus(master, slave, arm)
        if door in ready:
            serve_control(door, arm)


if __name__ == "__main__":
    main()
