"""The firmware protocol by its specification alone: the schema in SPEC.md decodes the frozen vectors
and speaks with a simulated controller. COBS is another author's; the checksum is written here.
"""

import json
import os
import random
import re
import select
import struct
import sys
import termios
import time
import tty
from pathlib import Path

from bench import Verdicts, simulated_port
from cobs import cobs

PROTOCOL = Path(__file__).parents[2] / "firmware-protocol"
ESTOP = bytes.fromhex("00027f05a8a941a900")
NUMBERS = {"u8": "B", "u16": "H", "u32": "I", "i32": "i"}
PATIENCE_S = 5.0


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def schema():
    """Type codes, each with its name and fields, and the text's checksum, as the page has them."""
    page = (PROTOCOL / "SPEC.md").read_text()
    text = page.split("```schema\n")[1].split("```")[0]
    said = re.search(r"CRC-32C, \*\*([0-9A-F]{8})\*\*", page)[1]
    types = {}
    for line in text.splitlines()[1:]:
        code, name, *rest = line.split(" ", 2)
        types[int(code, 16)] = name, fields(rest[0] if rest else "")
    return types, crc32c(text.encode()), int(said, 16)


def fields(text):
    """(name, format) each; a list for what is repeated a joint; (name, 'text') for what fills up."""
    joints = re.search(r"joints\*\((.*)\)", text)
    plain = text[: joints.start()] if joints else text
    found = []
    for word in plain.split():
        name, kind = word.split(":")
        times = re.match(r"(?:0\.\.)?(\d+)\*u8", kind)
        if times:
            found.append((name, "text" if ".." in kind else f"{times[1]}s"))
        else:
            found.append((name, NUMBERS[re.match(r"[ui]\d+", kind)[0]]))
    if joints:
        found.append(fields(joints[1]))
    return found


def unframe(frame):
    """Type, sequence and payload; None for what is no frame."""
    try:
        body = cobs.decode(frame.strip(b"\0"))
    except cobs.DecodeError:
        return None
    if len(body) < 6 or struct.unpack("<I", body[-4:])[0] != crc32c(body[:-4]):
        return None
    return body[0] & 0x3F, body[1], body[2:-4]


def frame(kind, sequence, payload):
    body = bytes([1 << 6 | kind, sequence]) + payload
    return b"\0" + cobs.encode(body + struct.pack("<I", crc32c(body))) + b"\0"


def values(layout, payload):
    """Every value in order, joint by joint; what is left over is an error."""
    found = []
    for field in layout:
        if isinstance(field, list):
            while payload:
                size = struct.calcsize("<" + "".join(kind for _, kind in field))
                found += values(field, payload[:size])
                payload = payload[size:]
        elif field[1] == "text":
            found += [payload.decode()] if payload else []
            payload = b""
        else:
            size = struct.calcsize("<" + field[1])
            found += struct.unpack("<" + field[1], payload[:size])
            payload = payload[size:]
    if payload:
        raise ValueError(f"{len(payload)} bytes left over")
    return found


def plain(value):
    """As the vectors' file has it: numbers, and text without the zeros behind."""
    if isinstance(value, bytes):
        value = value.decode()
    return value.rstrip("\0") if isinstance(value, str) else value


def frozen(verdicts, types):
    vectors = json.loads((PROTOCOL / "vectors.json").read_text())["vectors"]
    for vector in vectors:
        name, bytes_ = vector["name"], bytes.fromhex(vector["frame"])
        read = unframe(bytes_)
        verdicts.same(f"{name} is a frame", read is not None, True)
        kind, sequence, payload = read
        verdicts.same(f"{name}: type and sequence", (kind, sequence), (vector["kind"], vector["sequence"]))
        verdicts.same(f"{name}: payload", payload.hex(), vector["payload"])
        verdicts.same(f"{name}: the same bytes again", frame(kind, sequence, payload), bytes_)
        found = [plain(value) for value in values(types[kind][1], payload)]
        wanted = [field["value"] for field in vector["fields"]]
        verdicts.same(f"{name}: values", found, [plain(value) for value in wanted])
    stops = [vector["frame"] for vector in vectors if vector["kind"] == 0x3F]
    verdicts.same("the emergency stop is what every version has", stops, [ESTOP.hex()])


def flipped(verdicts):
    """One to three bits of the longest frame, anywhere but in its delimiters."""
    vectors = json.loads((PROTOCOL / "vectors.json").read_text())["vectors"]
    longest = max((bytes.fromhex(vector["frame"]) for vector in vectors), key=len)
    chance, believed = random.Random(1), 0
    for _ in range(5000):
        damaged = bytearray(longest)
        for bit in chance.sample(range(8, 8 * (len(longest) - 1)), chance.randint(1, 3)):
            damaged[bit // 8] ^= 1 << bit % 8
        parts = [part for part in bytes(damaged).split(b"\0") if part]
        believed += any(unframe(part) for part in parts)
    verdicts.same("damaged frames that were believed", believed, 0)


def said(port, send, wanted):
    """Sends a frame and waits for one of another type."""
    os.write(port, send)
    heard, until = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        ready, _, _ = select.select([port], [], [], 0.2)
        heard += os.read(port, 4096) if ready else b""
        *whole, heard = heard.split(b"\0")
        for part in filter(None, whole):
            read = unframe(part)
            if read and read[0] == wanted:
                return read[2]
    return None


def spoken(verdicts, types):
    codes = {name: code for code, (name, _) in types.items()}
    with simulated_port() as path:
        port = os.open(path, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(port, termios.TCSANOW)
        settings = termios.tcgetattr(port)
        settings[4] = settings[5] = termios.B1000000
        termios.tcsetattr(port, termios.TCSANOW, settings)
        hello = frame(codes["HELLO"], 1, bytes([1, 0, 0, 0]))
        ack = said(port, hello, codes["HELLO_ACK"])
        verdicts.same("a simulated controller answers HELLO", ack is not None, True)
        layout = types[codes["HELLO_ACK"]][1]
        names = [name for name, _ in layout[:-1]]
        told = dict(zip(names, values(layout, ack), strict=False))
        verdicts.same("its version", told["major"], 1)
        verdicts.same("its schema is the page's", told["schema"], schema()[1])
        verdicts.same("its joints", (len(ack) - 28) % 20, 0)
        joints = (len(ack) - 28) // 20
        asked = frame(codes["TIME_REQ"], 0, struct.pack("<I", 0xC0FFEE))
        token, received, sent = values(types[codes["TIME_RESP"]][1], said(port, asked, codes["TIME_RESP"]))
        verdicts.same("the token comes back", token, 0xC0FFEE)
        verdicts.near("answered when it was received", (sent - received) % 2**32, 0, 100_000)
        state = said(port, frame(codes["BEAT"], 0, struct.pack("<I", 0)), codes["STATE"])
        verdicts.same("STATE tells of as many joints", (len(state) - 32) // 12, joints)
        verdicts.same("and can be read whole", len(values(types[codes["STATE"]][1], state)), 15 + 3 * joints)
        state = said(port, ESTOP, codes["STATE"])
        for _ in range(50):
            if state[24] == 8:
                break
            state = said(port, b"", codes["STATE"])
        verdicts.same("an emergency stop latches", state[24], 8)
        os.close(port)


def main():
    verdicts = Verdicts("SPEC.md in Python, with cobs 1.2.2")
    types, computed, written = schema()
    verdicts.same("the schema's checksum", computed, written)
    verdicts.same("check value of the CRC", crc32c(b"123456789"), 0xE3069283)
    frozen(verdicts, types)
    flipped(verdicts)
    spoken(verdicts, types)
    verdicts.end()


if __name__ == "__main__":
    sys.exit(main())
