"""An arm of `arm.py` and a node on it, each a process of its own, and what a person and a planner do with them."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request

import numpy as np

from ink import Sheet
from photo import Camera

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent

NODE_FILE = """
name = "judge"
output = "out"
state = "state"
scenes = "scenes"
before_drawing = {{ canvas = "nothing" }}
[[arms]]
name = "arm"
model = "so101"
port = "{port}"
calibrated = "elsewhere"
"""

# Columns of the arm's log.
TIME, JOINTS, COUNTS, POINTS, DUTY, TIP, FORCE, WALL, SPEEDS = (
    0, slice(1, 7), slice(7, 13), slice(13, 19), slice(19, 25), slice(25, 28), 28, 29, slice(30, 35))


class Starved(Exception):
    """The machine did not run the arm's thread in time, as the node says: the run says nothing of the node."""


def real_time():
    """A priority that the arm keeps its clock with, where this machine gives one."""
    allowed = shutil.which("chrt") and subprocess.run(["chrt", "-f", "15", "true"], stderr=subprocess.DEVNULL)
    return ["chrt", "-f", "15"] if allowed and allowed.returncode == 0 else []


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, seconds, what):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise RuntimeError(f"{what} within {seconds} s")


class Bench:
    """`with Bench(...) as bench`: a fresh arm with these options, and a fresh node that may draw these scenes."""

    def __init__(self, binary, work, arm_options, scenes=("default",), own_scenes=None, has_camera=False):
        self.binary, self.work = binary, pathlib.Path(work) / "bench"
        self.arm_options, self.scenes, self.own_scenes = arm_options, scenes, own_scenes
        self.has_camera, self.camera, self.processes = has_camera, None, []

    def __enter__(self):
        shutil.rmtree(self.work, ignore_errors=True)
        for folder in ("state", "out", "scenes"):
            (self.work / folder).mkdir(parents=True)
        if self.own_scenes:
            self.own_scenes(self.work / "scenes")
        # Where things truly are, whatever the files say once something was accepted.
        scene = tomllib.loads(pathlib.Path(self.file_of(f"{self.scenes[0]}.toml")).read_text())
        self.sheet = Sheet(scene, ROOT / "scenes" / "designs")
        if self.has_camera:
            self.camera = Camera(scene, self.sheet, self.ink_mm)
        try:
            self.start_arm()
            self.start_node()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.camera:
            self.camera.close()
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def file_of(self, name):
        """A file of the scenes, of the bench's own folder where it has one."""
        own = self.work / "scenes" / name
        return str(own if own.exists() else ROOT / "scenes" / name)

    def start_arm(self):
        command = [*real_time(), sys.executable, str(HERE / "arm.py"), "--work", str(self.work)]
        command += ["--arm-file", self.file_of("arms/so101.toml"), "--scene", self.file_of(f"{self.scenes[0]}.toml")]
        self.arm_log = self.work / "arm.log"
        with open(self.arm_log, "w") as log:
            self.processes.append(subprocess.Popen(command + self.arm_options, stdout=log, stderr=log))
        lines = lambda: [x for x in self.arm_log.read_text().splitlines() if x.startswith("port ")]
        self.port = wait_for(lines, 60, "no simulated arm")[0].split()[1]

    def start_node(self):
        config = self.work / "node.toml"
        config.write_text(NODE_FILE.format(port=self.port) + (self.camera.lines() if self.camera else ""))
        self.http = f"127.0.0.1:{free_port()}"
        self.socket, self.node_log = str(self.work / "sock"), self.work / "node.log"
        command = [self.binary, "--config", str(config), "serve", "--http", self.http, "--enable", *self.scenes]
        command += ["--record", "--allow-root", "--socket", self.socket]
        # What was said to the arm of another run at a port of this name does not stand here.
        home = {**os.environ, "XDG_STATE_HOME": str(self.work / "state-home")}
        with open(self.node_log, "w") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=home))
        wait_for(lambda: "MCP at" in self.node_log.read_text(), 60, "no node")

    def control(self, cmd, **request):
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(str(self.work / "control"))
            door.sendall((json.dumps({"cmd": cmd, **request}) + "\n").encode())
            return json.loads(door.makefile().readline())

    def start_call(self, tool, arguments=None):
        command = [self.binary, "call", tool, json.dumps(arguments or {}), "--node", self.http, "--json"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish_call(self, process, seconds=400):
        """The structured result of a call."""
        out, error = process.communicate(timeout=seconds)
        try:
            result = json.loads(out)
        except ValueError:
            result = {"success": False, "message": (out + error).strip()[-400:]}
        if "the arm's thread in time" in json.dumps(result):
            raise Starved
        return result

    def call(self, tool, arguments=None, seconds=400):
        """The result of a call at the end of its motion: the same call again joins it."""
        until = time.monotonic() + seconds
        while True:
            result = self.finish_call(self.start_call(tool, arguments), seconds)
            if (result.get("job") or {}).get("state") != "moving" or time.monotonic() > until:
                return result

    def ask(self, tool):
        """Calls a tool by HTTP alone, which takes no process to start: its message."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        request = urllib.request.Request(f"http://{self.http}/mcp", json.dumps(body).encode(), headers)
        said = urllib.request.urlopen(request, timeout=60).read().decode()
        lines = [line.removeprefix("data:") for line in said.splitlines() if "result" in line]
        result = json.loads(lines[-1])["result"]
        return not result.get("isError"), result["content"][0]["text"].splitlines()[0]

    def operator(self, *words, answer=None):
        """A command at the node's socket, as an operator types it; returns its exit code and what it prints."""
        command = [self.binary, "--config", str(self.work / "node.toml"), *words]
        done = subprocess.run(command, capture_output=True, text=True, input=answer, timeout=400)
        said = (done.stdout + done.stderr).strip()
        if "the arm's thread in time" in said:
            raise Starved
        return done.returncode, said

    def reset(self):
        code, said = self.operator("reset", "--scene", self.scenes[0], "--socket", self.socket)
        return code == 0, said.splitlines()[-1] if said else ""

    def log(self):
        self.control("log")

    def ink_mm(self):
        """Where ink is on the sheet since `log`, in the arm file's frame."""
        path = str(self.work / "ink.npy")
        self.control("ink", path=path)
        return np.load(path)[:, 1:4]

    def saved(self):
        """The log and the ink since `log`."""
        path = str(self.work / "run.npz")
        self.control("save", path=path)
        with np.load(path) as run:
            return run["log"], run["ink"]
