"""How soon and in how much memory ten broken meshes are refused: `python benches/peers/mesh/broken.py target/release/steadyhand`."""

import math
import os
import struct
import subprocess
import sys
import tempfile

HEADER = "ply\nformat {} 1.0\nelement vertex {}\nproperty float x\nproperty float y\nproperty float z\nelement face {}\nproperty list uchar int vertex_indices\nend_header\n"


def grid(at, count=60):
    shares = [n / count * 2 - 1 for n in range(count + 1)]
    points = [at(u, v) for v in shares for u in shares]
    faces = []
    for row in range(count):
        for column in range(count):
            first = row * (count + 1) + column
            faces.append((first, first + 1, first + count + 2, first + count + 1))
    return points, faces


def obj(points, faces):
    lines = ["v %r %r %r\n" % tuple(point) for point in points]
    return "".join(lines + ["f " + " ".join(str(at + 1) for at in face) + "\n" for face in faces]).encode()


def flat(u, v):
    return 50 + 60 * u, 50 + 60 * v, 0.0


def curl(u, v):
    t = 2.2 * u
    return 50 + 20 * (t**3 - 3 * t), 50 + 60 * v, 20 * (t * t - 1) + v


def strip(u, v):
    around, out = u * math.pi, 50 + 10 * v * math.cos(u * math.pi / 2)
    return 50 + out * math.cos(around) - 50, 50 + out * math.sin(around), 10 * v * math.sin(u * math.pi / 2)


def huge():
    """A million triangles, written out."""
    count = 708
    points, faces = grid(flat, count)
    text = HEADER.format("binary_little_endian", len(points), 2 * len(faces)).encode()
    rows = b"".join(struct.pack("<fff", *point) for point in points)
    triangles = [(a, b, c) for a, b, c, _ in faces] + [(a, c, d) for a, _, c, d in faces]
    return text + rows + b"".join(struct.pack("<Biii", 3, *triangle) for triangle in triangles)


points, faces = grid(flat)
MESHES = {
    "a hole under the design's middle.obj": obj(points, [f for f in faces if math.dist(points[f[0]], (50, 50, 0)) > 30]),
    "crosses itself.obj": obj(*grid(curl)),
    "one side.obj": obj(*grid(strip)),
    "not a number.obj": obj([(math.nan, *points[0][1:]), *points[1:]], faces),
    "no area.obj": obj(*grid(lambda u, v: (50 + 60 * u, 50 + 60 * u, 0.0))),
    "a wall on an edge.obj": obj([*points, (50, 50, 40)], [*faces, (1860, 1861, len(points))]),
    "a million triangles.ply": huge(),
    "a billion claimed points.ply": HEADER.format("binary_little_endian", 10**9, 10**9).encode() + bytes(64),
    "cut off.ply": HEADER.format("binary_little_endian", 5000, 5000).encode() + bytes(5000),
    "kilometres.obj": obj([(x * 1e6, y * 1e6, z) for x, y, z in points], faces),
}

MEASURE = """
import os, subprocess, sys, time
begun = time.time()
child = subprocess.Popen(sys.argv[1:], stderr=subprocess.STDOUT)
_, status, usage = os.wait4(child.pid, 0)
refused = "refused" if status != 0 else "ACCEPTED"
print(f"{refused} in {time.time() - begun:.2f} s, {usage.ru_maxrss / 1024:.0f} MB")
"""

program = os.path.abspath(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    for name, content in MESHES.items():
        ending = name.rsplit(".")[-1]
        with open(f"{folder}/broken.{ending}", "wb") as file:
            file.write(content)
        with open(f"{folder}/broken.toml", "w") as file:
            text = open(f"{os.path.dirname(__file__)}/../../../scenes/bumpy.toml").read()
            file.write(text.replace('"bumpy"', '"broken"').replace("bumpy.ply", f"broken.{ending}"))
        command = [program, "--scenes", folder, "scene", "check", "broken"]
        # A process of its own, because a child's peak begins with its parent's memory.
        said = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, text=True).stdout
        *lines, measured = said.strip().splitlines()
        print(f"{name}: {measured}: {lines[-1].strip()[:150]}")
