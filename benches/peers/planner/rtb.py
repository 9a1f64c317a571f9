"""roboticstoolbox: its Levenberg-Marquardt solver, whose core is C++."""

import roboticstoolbox as rtb
from work import URDF, along, cold, poses

robot = rtb.Robot.URDF(str(URDF.resolve()))
chain = robot.ets(end="tip")


def solver(restarts):
    def solve(pose, seed):
        found = chain.ik_LM(pose, q0=seed, ilimit=30, slimit=restarts, tol=1e-10, joint_limits=True)
        q, success = (found.q, found.success) if hasattr(found, "success") else found[:2]
        return q if success else None

    return solve


seed, wanted = poses("stroke")
along("roboticstoolbox", solver(1), wanted, seed)
seed, wanted = poses("cold")
cold("roboticstoolbox", solver(100), wanted, seed, 2000)
