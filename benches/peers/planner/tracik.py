"""TRAC-IK: its solver as pytracik wraps it, told to be quick; two threads, both counted."""

import numpy as np
import pytracik
from work import URDF, along, cold, poses


def quaternion(turn):
    """x, y, z, w by the largest of the four."""
    m = turn
    four = np.array(
        [1 + m[0, 0] - m[1, 1] - m[2, 2], 1 - m[0, 0] + m[1, 1] - m[2, 2], 1 - m[0, 0] - m[1, 1] + m[2, 2], 1 + np.trace(m)]
    )
    i = int(np.argmax(four))
    w, x, y, z = m[2, 1] - m[1, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1]
    b, c = m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    q = [[four[0], x, y, w], [x, four[1], z, b], [y, z, four[2], c], [w, b, c, four[3]]][i]
    return np.array(q) / np.linalg.norm(q)


def solver(timeout_s):
    robot = pytracik.TRAC_IK("link0", "tip", URDF.read_text(), timeout_s, 1e-6, pytracik.Speed)

    def solve(pose, seed):
        found = pytracik.ik(robot, seed, *pose[:3, 3], *quaternion(pose[:3, :3]))
        return np.array(found[1:]) if found[0] >= 0 else None

    return solve


seed, wanted = poses("stroke")
along("trac-ik", solver(0.005), wanted, seed)
seed, wanted = poses("cold")
cold("trac-ik", solver(0.005), wanted, seed, 2000)
