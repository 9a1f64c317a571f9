"""One STS3215: its memory, its firmware and the torque of its motor. Written from the maker's protocol and register table.

Duty = P x 0.166 x error[rad], the error in whole counts, measured with an oscilloscope: 0.1649 by kscalelabs/sysid, 0.166 by
Rhoban's BAM. Torque = duty x stall x volts / 12. Back-EMF, friction and inertia are those of the joint, see `arm_model`.
"""
import math
import struct

TICKS = 4096 / (2 * math.pi)

# stall torque at 12 V, damping (back-EMF and gears), friction, inertia of the rotor at the output
MEASURED = {
    # kscalelabs/sysid, data/feetech/STS_3215_12V_20250317, model m4: kt 3.644, R 8.789; 960 runs on a pendulum
    "12v": (4.98, 1.57, 0.12, 0.0266),
    # Rhoban's BAM (PyPI better-actuator-models 1.0.2), model m1: kt 1.2116, R 2.676
    "7v4": (3.35, 0.60, 0.052, 0.028),
}

# What the maker's MJCF says of its own servos; nobody measured it. Newton metres a radian, and a radian a second.
STIFF_GAIN, STIFF_DAMPING, STIFF_MOST = 998.22, 2.731, 3.35

FACTORY = {
    0: 3, 1: 10, 6: 0, 7: 0, 8: 1, 13: 70, 14: 140, 15: 40, 18: 12, 19: 44, 20: 47, 22: 32, 23: 0, 26: 1, 27: 1, 30: 1,
    33: 0, 34: 20, 35: 200, 36: 80, 37: 10, 38: 200, 39: 10, 55: 1, 62: 120, 63: 31,
}
WORDS = {3: 777, 9: 0, 11: 4095, 16: 1000, 24: 16, 28: 500, 48: 1000}


def magnitude(value, sign_bit):
    """A signed number as the servo writes it: a size and a sign bit."""
    size = min(abs(int(value)), (1 << sign_bit) - 1)
    return size | (1 << sign_bit) if value < 0 else size


def signed(word, sign_bit):
    """A number that the servo wrote as a size and a sign bit."""
    size = word & ((1 << sign_bit) - 1)
    return -size if word >> sign_bit & 1 else size


class Servo:
    def __init__(self, ident, options, offset):
        self.id, self.options, self.offset = ident, options, offset
        self.memory = bytearray(128)
        for at, value in FACTORY.items():
            self.memory[at] = value
        for at, value in WORDS.items():
            self.put(at, value)
        self.memory[5], self.memory[21] = ident, options.p
        self.put(31, magnitude(offset, 11))
        self.raw = 0
        self.set_point, self.speed = None, 0.0
        self.duty = self.overload_s = self.amps = self.filtered = 0.0
        self.tripped = self.silent = self.limp = False
        self.temperature, self.volts = 31.0, 12.0
        self.pending = None

    def put(self, at, value):
        struct.pack_into("<H", self.memory, at, value)

    def word(self, at):
        return struct.unpack_from("<H", self.memory, at)[0]

    def present(self):
        return (self.raw - self.offset) % 4096

    def step(self, angle, velocity, dt, volts):
        """Takes the shaft's angle from count 0 of its encoder; returns the motor's torque at standstill."""
        self.raw = int(math.floor(angle * TICKS + 0.5)) % 4096
        self.filtered += (velocity * TICKS - self.filtered) * min(1, dt / 0.02)
        self.volts = volts
        torque = 0.0
        if self.memory[40] == 1 and not self.limp:
            self.advance_set_point(dt)
            torque = self.regulate((angle * TICKS - self.offset) % 4096, velocity, dt)
        else:
            self.set_point, self.duty, self.overload_s, self.tripped = None, 0.0, 0.0, False
        is_on = self.memory[40] == 1
        self.amps = max(0.0, abs(self.duty) * 2.7 - abs(velocity) * 0.3) if is_on else 0.0
        self.temperature += dt * (self.amps**2 * 0.12 - (self.temperature - 30.0) * 0.004)
        return torque

    def advance_set_point(self, dt):
        """The goal (42), on a trapezoid of the registers' acceleration (41) and speed (46)."""
        if self.set_point is None:
            self.set_point, self.speed = float(self.present()), 0.0
        left = signed(self.word(42), 15) - self.set_point
        acceleration = self.memory[41] * 100.0 or 1e7
        most = min(float(self.word(46) or 3400), 3400.0)
        wanted = min(most, math.sqrt(2 * acceleration * abs(left)), abs(left) / dt)
        change = (wanted if left > 0 else -wanted) - self.speed
        self.speed += max(-acceleration * dt, min(acceleration * dt, change))
        self.set_point += self.speed * dt

    def regulate(self, ticks, velocity, dt):
        limit = min(self.word(48), self.word(16)) / 1000.0
        if self.tripped:
            limit = min(limit, self.memory[34] / 100.0)
        stall = self.options.stall
        if self.options.servo == "mjcf":
            torque = STIFF_GAIN * (self.set_point - ticks) / TICKS - STIFF_DAMPING * velocity
            most = min(STIFF_MOST, stall) * limit
            torque = max(-most, min(most, torque))
            duty = torque / stall
        else:
            error = round(self.set_point) - self.present()
            error = 0 if abs(error) <= self.memory[26] else error
            limit = min(limit, 0.97)
            duty = max(-limit, min(limit, self.memory[21] * 0.166 * error / TICKS))
            torque = duty * stall * self.volts / 12.0
        self.duty += (duty - self.duty) * min(1, dt / 0.004)
        self.watch_overload(dt)
        return torque

    def watch_overload(self, dt):
        """Registers 36, 35 and 34: from which duty, after how many hundredths of a second, down to which duty."""
        if abs(self.duty) >= self.memory[36] / 100.0:
            self.overload_s += dt
            self.tripped = self.tripped or self.overload_s > self.memory[35] * 0.01
        else:
            self.overload_s = max(0.0, self.overload_s - dt)

    def status(self):
        deci_volts = self.volts * 10
        error = 1 if deci_volts > self.memory[14] or deci_volts < self.memory[15] else 0
        error |= 4 if self.temperature > self.memory[13] else 0
        return error | (32 if self.tripped else 0)

    def refresh(self):
        """Writes what the servo measures into its memory."""
        self.put(56, self.present())
        self.put(58, magnitude(round(self.filtered), 15))
        self.put(60, magnitude(round(self.duty * 1000), 10))
        self.memory[62] = max(0, min(255, round(self.volts * 10)))
        self.memory[63] = max(0, min(255, round(self.temperature)))
        self.memory[65] = self.status()
        is_moving = self.set_point is not None and (abs(self.speed) > 1 or abs(self.filtered) > 6)
        self.memory[66] = 1 if is_moving else 0
        self.put(69, round(self.amps / 0.0065))

    def write(self, at, data):
        for place, byte in enumerate(data, at):
            if place < 128 and not 56 <= place <= 70:
                self.memory[place] = byte
        end = at + len(data)
        if at <= 32 and end > 31:
            self.offset = signed(self.word(31) & 0xFFF, 11)
        if at <= 5 < end:
            self.id = self.memory[5]
        if at <= 40 < end:
            if self.memory[40] == 128:
                self.offset = self.raw - 2048
                self.put(31, magnitude(self.offset, 11))
                self.memory[40], self.set_point = 1, None
                self.put(42, 2048)
            elif self.memory[40] == 0:
                self.tripped = False
        elif at <= 43 and end > 42:
            self.memory[40] = 1  # a goal energises a limp servo

    def forget(self):
        """The supply was interrupted: what is not in EEPROM is gone."""
        self.memory[40] = self.memory[41] = 0
        self.put(48, self.word(16))
        self.put(42, 0)
        self.put(46, 0)
        self.set_point = None


def reply(servo, error, data=b""):
    body = bytes([servo.id, len(data) + 2, error]) + data
    return b"\xff\xff" + body + bytes([~sum(body) & 0xFF])


class Bus:
    """Reads frames of Feetech's protocol from bytes, and answers them."""

    def __init__(self, servos):
        self.servos, self.buffer = servos, bytearray()
        self.frames = self.damaged = 0
        self.persistent_writes = []

    def feed(self, data):
        buffer, out = self.buffer, b""
        buffer += data
        while True:
            start = buffer.find(b"\xff\xff")
            if start < 0:
                del buffer[: max(0, len(buffer) - 1)]
                return out
            del buffer[:start]
            while len(buffer) > 2 and buffer[2] == 0xFF:
                del buffer[:1]
            if len(buffer) < 4:
                return out
            length = buffer[3]
            if length < 2:
                del buffer[:1]
                self.damaged += 1
                continue
            if len(buffer) < 4 + length:
                return out
            frame = bytes(buffer[2 : 4 + length])
            if (~sum(frame[:-1]) & 0xFF) != frame[-1]:
                del buffer[:1]
                self.damaged += 1
                continue
            del buffer[: 4 + length]
            self.frames += 1
            out += self.answer(frame[0], frame[2], frame[3:-1])

    def answer(self, ident, instruction, data):
        is_broadcast = ident == 0xFE
        heard = [s for s in self.servos if is_broadcast or s.id == ident]
        heard = [s for s in heard if not s.silent]
        if instruction in (0x82, 0x83):
            return self.of_many(instruction, data)
        out = b""
        for servo in heard:
            answers = self.of_one(servo, instruction, data)
            if answers is not None and (not is_broadcast or instruction == 1):
                out += reply(servo, servo.status(), answers)
        return out

    def of_one(self, servo, instruction, data):
        """Returns the data of the answer, `None` where a servo does not answer."""
        if instruction == 1:
            return b""
        if instruction == 2 and len(data) == 2:
            servo.refresh()
            return bytes(servo.memory[data[0] : data[0] + data[1]])
        if instruction == 3 and data:
            if data[0] < 40 or data[0] == 55:
                self.persistent_writes.append((servo.id, data[0], data[1:].hex()))
            servo.write(data[0], data[1:])
        elif instruction == 4 and data:
            servo.pending = (data[0], data[1:])
        elif instruction == 5:
            if servo.pending:
                servo.write(*servo.pending)
            servo.pending = None
        else:
            return None
        return b"" if servo.memory[8] == 1 else None

    def of_many(self, instruction, data):
        out = b""
        if len(data) < 3:
            return out
        first, length = data[0], data[1]
        find = lambda ident: [s for s in self.servos if s.id == ident and not s.silent]
        if instruction == 0x82:
            for ident in data[2:]:
                for servo in find(ident):
                    servo.refresh()
                    out += reply(servo, servo.status(), bytes(servo.memory[first : first + length]))
            return out
        for at in range(2, len(data) - length, length + 1):
            for servo in find(data[at]):
                servo.write(first, data[at + 1 : at + 1 + length])
        return out
