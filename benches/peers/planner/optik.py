"""OptIK: its Python package, whose core is Rust and C. One thread; its default accuracy is 0.4 mm."""

import sys

sys.path.append(sys.path.pop(0))  # the package and this file share a name
import numpy as np
from optik import Robot, SolverConfig
from work import URDF, along, cold, poses

robot = Robot.from_urdf_file(str(URDF), "link0", "tip")
robot.set_parallelism(1)
config = SolverConfig(solution_mode="speed", max_time=0.1, tol_f=1e-12)


def solve(pose, seed):
    found = robot.ik(config, np.asfortranarray(pose), list(seed))
    return None if found is None else np.array(found[0])


seed, wanted = poses("stroke")
along("optik", solve, wanted, seed)
seed, wanted = poses("cold")
cold("optik", solve, wanted, seed, 2000)
