"""From the box to ink: a scripted hand goes through `steadyhand first-line` on an arm that is not as its files say.

The hand brings the true tip to the places that the guide asks for, as well as a hand does; the servos' counts are all that the
node sees of it. A ruler reads the cross from the physics' ink. Nothing is told that a person would not know.
"""
import os
import pathlib
import pty
import re
import shutil
import subprocess
import threading
import time

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from arm_model import Frame
from node import ROOT, Bench, Starved, wait_for

CALIBRATOR_M = (0.04, -0.152, 0.035)
# How far joints are turned at will between touches, in radians.
WIDE, UPRIGHT, LEANT = (0.1, 0.35, 0.35, 0.7, 1.6), (0.05, 0.1, 0.1, 0.2, 0.2), (0.1, 0.35, 0.35, 1.2, 2.2)
# How much a joint stays as it was turned while the tip is brought to its place: the hand leans the pen with the wrist.
KEPT = np.array([0.02, 0.02, 0.02, 0.3, 0.3])
HAND_M, RULER_MM = 2e-4, 0.3
TRIES = 4
NODE_FILE = 'name = "bench"\nstate = "state"\nscenes = "scenes"\n\n[[arms]]\nname = "arm"\nmodel = "so101"\nport = "{port}"\n'
ASKED_ABOUT_TOUCHES = "write this into the file?", "Write it anyway?", "delete all touches"
ASKED = "Type `yes` to continue:"
CLEARED = "\x1b[H\x1b[J"


class Person:
    """Reads a terminal, types, and waits for texts."""

    def __init__(self, command, environment, folder):
        master, slave = pty.openpty()
        command = ["setsid", "--ctty", *command]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=folder)
        os.close(slave)
        self.keys, self.screen, self.read = master, "", 0
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            try:
                data = os.read(self.keys, 4096)
            except OSError:
                return
            self.screen += data.decode(errors="replace")

    def types(self, keys):
        os.write(self.keys, keys.encode())

    def sees(self, *expected, seconds=120, keeps=False):
        """Waits for one of these texts; returns which came first, and what was shown up to it, which is read again if it keeps it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            new = self.screen[self.read :]
            found = sorted((new.find(text), k) for k, text in enumerate(expected) if text in new)
            if found:
                end = found[0][0] + len(expected[found[0][1]])
                self.read += 0 if keeps else end
                return found[0][1], new[:end]
            time.sleep(0.02)
        raise RuntimeError(f"no {expected} in: {self.screen[self.read:][-600:]}")

    def sees_redrawn(self, times):
        self.read = len(self.screen)
        wait_for(lambda: self.screen[self.read :].count(CLEARED) > times, 60, "no new table")

    def agrees(self):
        self.sees(ASKED)
        self.types("yes\n")


class WrongArm(Bench):
    """An arm whose zeros, tip and sheet are not where its files say, and a person's hand on it."""

    def __init__(self, binary, work, arm_options, seed):
        self.chance = np.random.default_rng(seed)
        within = lambda most, count: self.chance.uniform(-most, most, count)
        self.pen_error = self.direction() * 5.0
        options = [*arm_options, "--zero-error-deg", *map(str, within(3.0, 5))]
        super().__init__(binary, work, options + ["--pen-error-mm", *map(str, self.pen_error)], own_scenes=self.write_scene)

    def direction(self):
        vector = self.chance.normal(size=3)
        return vector / np.linalg.norm(vector)

    def write_scene(self, folder):
        shutil.copytree(ROOT / "scenes", folder, dirs_exist_ok=True)
        scene = folder / "default.toml"
        text = scene.read_text().replace("[design]", f"calibrator_m = {list(CALIBRATOR_M)}\n\n[design]", 1)
        scene.write_text(text + "\n[limits.workspace]\nmin_m = [-0.8, -0.8, -0.05]\nmax_m = [0.8, 0.8, 0.8]\n")

    def start_node(self):
        """The guide starts its own; here the sheet is laid where it really is."""
        self.frame = Frame(self.file_of("arms/so101.toml"), self.file_of("default.toml"))
        (self.work / "node.toml").write_text(NODE_FILE.format(port=self.port))
        scene = pathlib.Path(self.file_of("default.toml")).read_text()
        vector = lambda key: np.array([float(x) for x in re.search(key + r" = \[([^\]]*)\]", scene)[1].split(",")])
        origin, x, y = vector("origin_m"), vector("x_axis"), vector("y_axis")
        about = self.chance.uniform(0, 2 * np.pi)
        turn = Rotation.from_rotvec(np.radians(2.0) * (x * np.cos(about) + y * np.sin(about))).as_matrix()
        middle = origin + 0.05 * (x + y)
        self.sheet_x, self.sheet_y = turn @ x, turn @ y
        self.sheet_origin = middle + turn @ (origin - middle) + self.direction() * 6e-3
        self.lay_sheet()

    def lay_sheet(self):
        normal = np.cross(self.sheet_x, self.sheet_y)
        self.control("lay", at=list(self.sheet_origin * 1e3), normal=list(normal * np.sign(normal[2])))

    def on_sheet(self, x_mm, y_mm):
        return self.sheet_origin + (self.sheet_x * x_mm + self.sheet_y * y_mm) * 1e-3

    def tip(self, angles):
        """Where the true tip is."""
        at, turn = self.frame.of_model(angles, self.frame.zeros[4])
        return self.frame.to_file(at + turn @ (self.frame.tip + self.pen_error * 1e-3))

    def pose(self, at, wide):
        """Angles with which the true tip is at a place, as well as a hand brings it there, leant over and turned at will."""
        joints = self.frame.file["joints"]
        lower, upper = (np.array([j[key] for j in joints]) for key in ("lower_rad", "upper_rad"))
        ready = np.array([-0.0020, -0.2344, 0.3043, 1.2391, 0.0])
        goal = at + self.direction() * HAND_M * self.chance.uniform()
        for _ in range(200):
            turned = self.chance.uniform(-1, 1, 5)
            start = ready + np.sign(turned) * np.sqrt(np.abs(turned)) * np.array(wide)
            start = np.clip(start, lower + 0.05, upper - 0.05)
            residual = lambda q: np.r_[(self.tip(q) - goal) * 1e4, (q - start) * KEPT]
            found = least_squares(residual, start, bounds=(lower, upper), max_nfev=60).x
            if np.linalg.norm(self.tip(found) - goal) < 3e-5 and np.abs(found - start).max() < 1.2:
                return found
        raise RuntimeError(f"{at} cannot be touched")

    def stands(self, angles):
        """Brings the joints there and holds them until they are."""
        self.control("hand", q=[float(q) for q in angles], k=300.0)
        goal = np.degrees(angles)
        near = lambda: np.abs(np.array(self.control("state")["q_deg"][:5]) - goal).max() < 0.05
        try:
            wait_for(near, 3, "the hand is not there")
        except RuntimeError:
            pass  # a sheet or a stop is in the way; the counts are what they are
        time.sleep(0.35)


class Guided:
    """Goes through the guide."""

    def __init__(self, arm, person):
        self.arm, self.person = arm, person

    def joints(self):
        arm, person = self.arm, self.person
        person.sees("step 4 of 12: the joints, by hand")
        person.sees("press Enter to begin")
        person.types("\n")
        person.sees("bring every joint to its zero")
        arm.control("lay", at=[0, 0, -900], normal=[0, 0, 1])
        eye = arm.chance.uniform(-1, 1, 5) * np.radians(3.0)
        arm.stands(eye)
        person.sees_redrawn(2)
        person.types("\n")
        for number, joint in enumerate(arm.frame.file["joints"]):
            person.sees(f"move {joint['name']} alone")
            for to in (joint["lower_rad"], 0.0, joint["upper_rad"]):
                eye[number] = to
                arm.stands(eye)
                person.sees_redrawn(2)
            person.types("\n")
        person.sees("write this into the arm's file?")
        person.agrees()
        person.sees("accepted as calibration")
        arm.lay_sheet()

    def touches(self, places):
        """Touches one place after the other until what they say is accepted; what is refused is touched again."""
        arm, person = self.arm, self.person
        person.sees("press Enter to begin")
        person.types("\n")
        for _ in range(TRIES):
            for at, wide, times in places:
                for number in range(1, times + 1):
                    self.touch(f"(touch {number} of {times})", arm.pose(np.array(at), wide))
            which, _ = person.sees(*ASKED_ABOUT_TOUCHES)
            if which < 2:
                person.agrees()
                person.sees("accepted as calibration")
                return
            person.types("discard\n")
            person.sees("press Enter to begin")
            person.types("\n")
        raise RuntimeError(f"refused {TRIES} times")

    def touch(self, prompt, pose):
        """Touches once; again if the guide says that a busy machine did not read the arm."""
        refused = True
        while refused:
            self.person.sees(prompt)
            self.arm.stands(pose)
            self.person.types("\n")
            refused = self.person.sees("nothing was recorded", "(touch ", *ASKED_ABOUT_TOUCHES, keeps=True)[0] == 0

    def zeros(self):
        places = [(CALIBRATOR_M, WIDE, 8)]
        places += [(at, WIDE, 6) for at in ((-0.05, -0.24, 0.05), (0.0, -0.17, 0.06), (0.04, -0.26, 0.03))]
        on_sheet = ((10, 10), (90, 10), (90, 90), (10, 90), (50, 50), (30, 70))
        places += [(self.arm.on_sheet(*at), WIDE, 1) for at in on_sheet]
        self.person.sees("step 5 of 12: the zeros, by touches")
        self.touches(places)

    def tool(self):
        at = (0.0, -0.22, 0.05)
        self.person.sees("step 6 of 12: the pen's tip")
        self.touches([(at, LEANT, 14), (at, UPRIGHT, 1)])

    def sheet(self):
        places = ((0, 0), (100, 0), (0, 100), (100, 100), (50, 50), (50, 0), (70, 30))
        self.person.sees("step 7 of 12: the sheet, by hand")
        self.touches([(self.arm.on_sheet(*at), UPRIGHT, 3) for at in places])

    def moves(self, done):
        """Sees a motion to its end, and returns what was said."""
        while True:
            which, said = self.person.sees(done, "press Enter to try again", "s left", seconds=600)
            if which == 0:
                return said
            if which == 1:
                if "the arm's thread in time" in said:
                    raise Starved
                raise RuntimeError(said[-500:])

    def leave(self):
        self.person.sees("motion must be enabled again")
        self.person.agrees()

    def felt(self):
        """The arm feels the sheet; one that cannot does without, as the guide says."""
        arm, person = self.arm, self.person
        person.sees("step 9 of 12: the sheet, felt by the arm")
        person.types("\n")
        for _ in range(6):
            try:
                said = self.moves("an operator accepts it")
            except RuntimeError:
                arm.operator("reset", "--socket", str(arm.work / "steadyhand" / "bench.sock"))
                person.types("s\n")
                return
            person.sees("write this into the file?", "Write it anyway?")
            person.agrees()
            person.sees("accepted as calibration")
            if "6 points touched" in said:
                return
            self.leave()
        raise RuntimeError("the arm felt for the sheet six times")

    def cross(self):
        arm, person = self.arm, self.person
        across, upwards = longest_marks(arm)
        read = np.array([upwards[:, 0].mean(), across[:, 1].mean()]) + arm.chance.uniform(-1, 1, 2) * RULER_MM
        person.sees("step 11 of 12: the cross, with a ruler")
        person.types("\n")
        person.sees("the middle of the cross")
        person.types("%.1f %.1f\n" % tuple(read))
        which, _ = person.sees("the cross is where it should be", "write this into the file?", "Write it anyway?")
        if which:
            person.agrees()
            person.sees("accepted as calibration")

    def whole(self):
        arm, person = self.arm, self.person
        while person.sees("no problem on", "press Enter to check again")[0]:
            person.types("\n")
        self.joints()
        person.sees("the node restarts with the new zeros")
        self.zeros()
        person.sees("the node restarts with the new zeros")
        self.tool()
        self.sheet()
        person.sees("step 8 of 12: enable motion")
        person.agrees()
        self.felt()
        person.sees("step 10 of 12: align")
        arm.log()
        person.types("\n")
        self.leave()
        self.moves("the pen moved along a cross")
        self.cross()
        arm.log()
        person.sees("step 12 of 12: the first line")
        person.types("\n")
        if person.sees("motion must be enabled again", "the arm moves;")[0] == 0:
            person.agrees()
        self.moves("the first line is drawn")
        return arm.saved()[1]


def longest_marks(arm):
    """The two lines of the cross on the true sheet: the one along it, and the one up."""
    _, ink = arm.saved()
    from_origin = ink[:, 1:4] - arm.sheet_origin * 1e3
    points = np.c_[from_origin @ arm.sheet_x, from_origin @ arm.sheet_y]
    marks = np.split(points, np.flatnonzero(np.diff(ink[:, 0]) > 0.02) + 1)
    longest = sorted(marks, key=lambda mark: np.ptp(mark, axis=0).max())[-2:]
    return sorted(longest, key=lambda mark: np.ptp(mark[:, 1]))


def first_line(binary, work, arm_options, seed=1):
    """Goes the whole way; returns the arm's bench (ended) and the ink of the first line."""
    with WrongArm(binary, work, arm_options, seed) as arm:
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(arm.work), "XDG_STATE_HOME": str(arm.work / "state-home")}
        command = [binary, "--config", str(arm.work / "node.toml"), "first-line", "--scene", "default"]
        person = Person(command, environment, arm.work)
        try:
            ink = Guided(arm, person).whole()
        finally:
            (arm.work / "screen.txt").write_text(person.screen)
            if person.process.poll() is None:
                person.process.terminate()
                person.process.wait(30)
    return arm, ink
