"""Asks a node for pictures of RTSP cameras that GStreamer serves, and compares them with the bars that were filmed.

judge.py STEADYHAND
"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).parent
NODE = """
[[arms]]
name = "arm"
model = "so101"
port = "simulator"

[[cameras]]
name = "top"
source = "rtsp://127.0.0.1:{port}/{path}"
size_px = [640, 480]
timeout_ms = 10000
{login}
"""
# White, yellow, cyan, green, magenta, red and blue, from left to right.
BARS = [(255, 255, 255), (255, 255, 0), (0, 255, 255), (0, 255, 0), (255, 0, 255), (255, 0, 0), (0, 0, 255)]


def pixels(png):
    """Returns the width, the bytes of a pixel and the rows of a PNG of eight bits a channel."""
    data, at, rows = b"", 8, []
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        if kind == b"IHDR":
            width, _, _, colours = struct.unpack(">IIBB", png[at + 8 : at + 18])
        if kind == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    size = {2: 3, 6: 4}[colours]
    raw, line = zlib.decompress(data), width * size
    before = bytearray(line)
    for start in range(0, len(raw), line + 1):
        kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + line])
        for i in range(line):
            left = row[i - size] if i >= size else 0
            up, corner = before[i], before[i - size] if i >= size else 0
            near = min((left, up, corner), key=lambda one: abs(left + up - corner - one))
            row[i] = (row[i] + (0, left, up, (left + up) // 2, near)[kind]) & 255
        rows.append(row)
        before = row
    return width, size, rows


class Judge:
    def __init__(self, steadyhand, folder):
        self.steadyhand, self.folder = steadyhand, folder

    def sense(self, port, path, login=None):
        """Returns the answer of a node whose camera that is."""
        (self.folder / "cam.login").write_text(f"me:{login}\n")
        (self.folder / "cam.login").chmod(0o600)
        login = 'login_file = "cam.login"' if login else ""
        (self.folder / "node.toml").write_text(NODE.format(port=port, path=path, login=login))
        args = ["--config", self.folder / "node.toml", "call", "sense", "{}", "--json"]
        done = subprocess.run([self.steadyhand, *args], capture_output=True, text=True, timeout=60)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def shows_the_bars(self, *camera):
        answer = self.sense(*camera)
        png = [file for file in answer.get("captured_files", []) if file.endswith("camera-top.png")]
        assert png, answer
        _, size, rows = pixels(pathlib.Path(png[0]).read_bytes())
        for bar, colour in enumerate(BARS):
            x = (2 * bar + 1) * 640 // 14
            seen = rows[100][x * size : x * size + 3]
            assert all(abs(a - b) < 40 for a, b in zip(seen, colour)), (bar, tuple(seen), colour)
        print("ok", camera[1], flush=True)

    def refuses(self, text, *camera):
        answer = json.dumps(self.sense(*camera))
        assert re.search(text, answer), (text, answer)
        assert "secret" not in answer.replace("another secret", ""), answer
        print("refused", camera[1], text, flush=True)


def server(*password):
    process = subprocess.Popen(["/usr/bin/python3", HERE / "server.py", *password], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def main(steadyhand):
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(steadyhand, pathlib.Path(folder))
        (open_one, port), (closed, closed_port) = server(), server("secret")
        try:
            judge.shows_the_bars(port, "h264")
            judge.shows_the_bars(port, "jpeg")
            judge.refuses("it streams `vp8`", port, "vp8")
            judge.refuses("status 404", port, "nowhere")
            judge.shows_the_bars(closed_port, "h264", "secret")
            judge.refuses("login_file", closed_port, "h264")
            judge.refuses("login_file", closed_port, "h264", "another secret")
        finally:
            open_one.kill()
            closed.kill()


main(pathlib.Path(sys.argv[1]).resolve())
