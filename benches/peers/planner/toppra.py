"""toppra: the same path and limits; only the parameterisation is timed, not the spline."""

import sys

sys.path.append(sys.path.pop(0))  # the package and this file share a name
import time

import numpy as np
import toppra
from toppra import algorithm, constraint
from work import load, tell

toppra.setup_logging("WARNING")
work = load("pacing")
s, q = np.array(work["s"]), np.array(work["q"])
path = toppra.SplineInterpolator(s, q)
joints = q.shape[1]
velocity = np.tile([-work["velocity"], work["velocity"]], (joints, 1))
acceleration = np.tile([-work["acceleration"], work["acceleration"]], (joints, 1))
# The path's parameter is its length, so the tool's speed is a bound on the parameter's.
first = np.abs(path(s, 1)).max(axis=0)
rows = [
    constraint.JointVelocityConstraint(velocity),
    constraint.JointAccelerationConstraint(acceleration),
]


class ToolSpeed(constraint.LinearConstraint):
    """The squared speed along the path has an upper bound."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def compute_constraint_params(self, path, gridpoints):
        bound = np.tile([0.0, self.most**2], (len(gridpoints), 1))
        return None, None, None, None, None, None, bound


speed = ToolSpeed(work["speed"])
speed.set_discretization_type(0)
rows.append(speed)
instance = algorithm.TOPPRA(rows, path, gridpoints=s, solver_wrapper="seidel")
begun = time.process_time()
_, speeds, _ = instance.compute_parameterization(0.0, 0.0)
seconds = time.process_time() - begun
duration = float(np.sum(2 * np.diff(s) / (speeds[1:] + speeds[:-1])))
tell("pacing", "toppra", seconds, len(s), len(s), duration)
