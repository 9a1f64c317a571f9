"""The workloads that `cargo bench --bench plan -- export` wrote, and an independent judge of joints."""

import json
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

FOLDER = Path(sys.argv[1])
URDF = FOLDER / "arm.urdf"


def load(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def poses(name):
    work = load(name)
    return np.array(work["seed"]), np.array(work["poses"])


def _turn(axis, angle):
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


class Judge:
    """Forward kinematics straight from the URDF's text."""

    def __init__(self):
        self.steps, self.low, self.high = [], [], []
        for joint in ET.parse(URDF).getroot().findall("joint"):
            origin = joint.find("origin")
            xyz = np.array([float(v) for v in origin.get("xyz").split()])
            r, p, y = (float(v) for v in origin.get("rpy").split())
            still = _turn([0, 0, 1], y) @ _turn([0, 1, 0], p) @ _turn([1, 0, 0], r)
            axis = None
            if joint.get("type") == "revolute":
                axis = np.array([float(v) for v in joint.find("axis").get("xyz").split()])
                limit = joint.find("limit")
                self.low.append(float(limit.get("lower")))
                self.high.append(float(limit.get("upper")))
            self.steps.append((xyz, still, axis))

    def forward(self, q):
        point, turn, angles = np.zeros(3), np.eye(3), iter(q)
        for xyz, still, axis in self.steps:
            point = point + turn @ xyz
            turn = turn @ still
            if axis is not None:
                turn = turn @ _turn(axis, next(angles))
        return point, turn

    def strict(self, found, wanted):
        """How many are within 0.1 mm, 0.1 degrees and the limits."""
        right = 0
        for q, pose in zip(found, wanted):
            if q is None or np.any(q < np.array(self.low) - 1e-9) or np.any(q > np.array(self.high) + 1e-9):
                continue
            point, turn = self.forward(q)
            left = turn.T @ pose[:3, :3]
            sin = np.linalg.norm([left[2, 1] - left[1, 2], left[0, 2] - left[2, 0], left[1, 0] - left[0, 1]]) / 2
            angle = np.arctan2(sin, (np.trace(left) - 1) / 2)
            right += np.linalg.norm(point - pose[:3, 3]) < 1e-4 and np.degrees(angle) < 0.1
        return int(right)


def tell(work, who, seconds, of, right, figure=0.0):
    print(json.dumps({"work": work, "who": who, "seconds": seconds, "of": of, "right": right, "figure": figure}))


def along(who, solve, wanted, seed, work="stroke"):
    """Solves a path, each waypoint from the one before. `solve(pose, seed)` gives joints or None."""
    found, at = [], seed
    begun = time.process_time()
    for pose in wanted:
        q = solve(pose, at)
        found.append(q)
        at = at if q is None else q
    tell(work, who, time.process_time() - begun, len(wanted), Judge().strict(found, wanted))


def cold(who, solve, wanted, seed, count):
    """Solves the first `count` poses, each from the same seed."""
    wanted = wanted[:count]
    begun = time.process_time()
    found = [solve(pose, seed) for pose in wanted]
    tell("cold", who, time.process_time() - begun, len(wanted), Judge().strict(found, wanted))
