"""Cases that a node has to pass on an arm that nobody of this project wrote; each says what it found.

A run that the node itself ends because the machine did not run the arm's thread in time is repeated, three times at most, and
counted. No other failure is.
"""
import os
import shutil
import sys
import time

import numpy as np

from first_line import first_line
from ink import judged
from node import FORCE, POINTS, ROOT, TIME, TIP, Bench, Starved, wait_for

# Public figures of one servo differ by a factor of 56, so every figure names its arm. Two servos were measured.
ARMS = {
    "12v": ["--measured", "12v"],
    "12v-p16": ["--measured", "12v", "--p", "16"],
    "7v4": ["--measured", "7v4"],
    "7v4-p16": ["--measured", "7v4", "--p", "16"],
    "middle": ["--p", "60"],
    "stiff": ["--servo", "mjcf"],
}
MEASURED = ["12v", "12v-p16", "7v4", "7v4-p16"]
REPEATS = 3

# What has to be true of a drawing on an arm that was measured and not calibrated: millimetres, shares.
DRAWN_P95_MM, DRAWN_MISSING = 1.2, 0.002
TOUCHED_P95_MM = FIRST_LINE_P95_MM = 1.0
INKED_P95_MM = 0.6
# Drawings that must all succeed: icons that others drew, scenes with designs, and how many one node draws in a row.
ICONS, SCENES, IN_A_ROW = 20, ("default", "a5_sheet", "tagged", "hatched", "letters"), 10
# Of `align` and accept, at most.
ROUNDS = 4
# A stop decelerates within 0.3 s; the softest arm follows a tenth of a second late.
STILL_S, ENDED_S = 0.4, 1.0
# How soon a probe that felt nothing is refused.
REFUSED_S = 8
# How long planning and the first probe may take on a busy machine.
TOUCHED_S = 120


class Wrong(Exception):
    """An expectation that did not hold."""


def must(holds, what):
    if not holds:
        raise Wrong(what)


def scenes_of_its_own(folder):
    shutil.copytree(ROOT / "scenes", folder, dirs_exist_ok=True)


class Judge:
    def __init__(self, binary, work):
        self.binary, self.work = binary, work
        self.repeated = 0

    def bench(self, arm, **more):
        return Bench(self.binary, self.work, [*ARMS[arm], *more.pop("options", [])], **more)

    def clean(self, bench):
        """What no run may leave: damaged frames, or a byte written to memory that outlives the power."""
        state = bench.control("state")
        must(state["damaged"] == 0, f"{state['damaged']} damaged frames")
        must(not state["persistent_writes"], f"memory that outlives the power was written: {state['persistent_writes']}")

    def draw(self, bench, again=False):
        bench.log()
        answer = bench.call("stroke", {"scene": bench.scenes[0], **({"again": True} if again else {})})
        log, ink = bench.saved()
        figures = judged(bench.sheet, ink)
        said = "95 %% %.2f mm, largest %.2f, missing %.1f %%, %.1f N" % (
            figures["p95"], figures["max"], 100 * figures["missing"], figures["force"])
        speed = tip_speed(log)
        at = int(speed.argmax())
        height = log[at, TIP.start + 2] - bench.sheet.origin[2]
        seconds = log[-1, TIME] - log[0, TIME]
        return answer, figures, f"{said}; {speed[at]:.0f} mm/s at most, {height:.1f} mm over the sheet; {seconds:.1f} s"

    # The cases.

    def drawn(self, arm):
        with self.bench(arm) as bench:
            is_reset, said = bench.reset()
            must(is_reset, f"reset: {said}")
            answer, figures, found = self.draw(bench)
            must(answer.get("success"), f"{found}; stroke: {answer.get('message')}")
            must(figures["missing"] <= DRAWN_MISSING, f"ink is missing: {found}")
            must(figures["p95"] <= DRAWN_P95_MM, f"the ink is too far off: {found}")
            is_reset, said = bench.reset()
            must(is_reset, f"{found}; reset after it: {said}")
            self.clean(bench)
        return found

    def reset(self, arm):
        with self.bench(arm) as bench:
            is_reset, said = bench.reset()
            must(is_reset, said)
            self.clean(bench)
        return said

    def touch(self, arm):
        """The first contact that `align` reports is where the tip presses on the sheet; an arm whose loads do not tell says so."""
        with self.bench(arm) as bench:
            bench.log()
            sheet_mm = bench.sheet.origin[2]
            for _ in range(2):  # a proposal of sag comes first
                call = bench.start_call("align", {"scene": "default", "touch": True})
                wait_for(lambda: call.poll() is not None or has_turned_back(bench, sheet_mm), TOUCHED_S, "no contact")
                if call.poll() is None:
                    time.sleep(REFUSED_S)
                    bench.call("stop")
                answer = bench.finish_call(call)
                if not answer.get("success"):
                    break
            log, _ = bench.saved()
            heights, forces = lowest_points(log, sheet_mm)
            must(heights, f"the tip never turned back over the sheet: {answer.get('message')}")
            found = "turned back at %.2f mm with %.2f N: %s" % (heights[0], forces[0], answer.get("code"))
            must(forces[0] > 0.0, f"a sheet was felt that was not touched: {found}")
            must(forces[0] < 5.0, f"the tip was pressed too hard: {found}")
            if answer.get("code") == "no_contact":
                must("does not feel" in answer["message"], f"{found}; the refusal does not say why: {answer['message']}")
            self.clean(bench)
        return found

    def act_while_drawing(self, bench, act, after_s=6.0, seconds=60):
        """Starts a drawing, acts, and returns the answer, the log and the arm's time of the act."""
        bench.log()
        call = bench.start_call("stroke", {"scene": "default", "again": True})
        time.sleep(after_s)
        begun = bench.control("state")["t"]
        act(bench)
        answer = bench.finish_call(call, seconds)
        time.sleep(0.7)
        log, ink = bench.saved()
        return answer, log, ink, begun

    def limp(self, arm):
        """A motor gives no torque, and its registers do not say so."""
        with self.bench(arm) as bench:
            act = lambda b: b.control("set", id=3, attr={"limp": True})
            answer, log, _, begun = self.act_while_drawing(bench, act)
            ended = last_motion(log, others=3) - begun
            found = "%.2f s until the others stood: %s" % (ended, answer.get("message"))
            must(not answer.get("success"), f"the drawing is called a success: {found}")
            must(ended <= ENDED_S, f"went on too long: {found}")
        return found

    def stop(self, arm):
        with self.bench(arm) as bench:
            answers = []
            act = lambda b: answers.append(b.ask("stop"))
            _, log, _, begun = self.act_while_drawing(bench, act)
            still = standstill(log, begun) - begun
            is_stopped, said = answers[0]
            found = "still after %.0f ms; %s" % (still * 1e3, said)
            must(is_stopped, f"stop: {found}")
            must(still <= STILL_S, f"stood too late: {found}")
            is_reset, said = bench.reset()
            must(is_reset, f"{found}; reset: {said}")
            self.clean(bench)
        return found

    def fault(self, arm, before=None, act=None, answers=("sheet", "hold", "held", "limp", "obstacle", "presses", "torque")):
        """Something is wrong with arm or world: the drawing ends, and not as a success."""
        with self.bench(arm) as bench:
            if before:
                bench.control(**before)
            answer, log, _, begun = self.act_while_drawing(bench, lambda b: act and b.control(**act), 6.0 if act else 0.2)
            pressed = log[log[:, FORCE] > 5.0]
            found = "at most %.1f N on the sheet, %.2f s over 5 N: %s" % (
                log[:, FORCE].max(), len(pressed) * 1e-3, answer.get("message"))
            must(not answer.get("success"), f"called a success: {found}")
            must(len(pressed) * 1e-3 <= ENDED_S, f"pressed on: {found}")
        return found

    def seen_by_camera(self, bench):
        """Where the camera stands, which every new place of the sheet makes uncertain."""
        for words in (("camera", "--scene", bench.scenes[0]), ("accept",)):
            code, said = bench.operator("calibrate", *words, answer="yes\n")
            must(not code, f"calibrate {words[0]}: {said}")

    def accepted(self, bench, mode):
        """Rounds of `align` with touch or ink until the sheet was touched, or the ink proposes nothing; how many it took."""
        for rounds in range(1, ROUNDS + 1):
            bench.operator("enable", "--scene", bench.scenes[0], "--for", "60m", "--socket", bench.socket)
            if mode == "ink":
                self.seen_by_camera(bench)
                bench.log()  # clean paper
            answer = bench.call("align", {"scene": bench.scenes[0], mode: True}, 600)
            must(answer.get("success"), f"align {mode}: {answer.get('message')}")
            code, said = bench.operator("calibrate", "accept", answer="yes\n")
            if code or "nothing" in said or (mode == "touch" and answer.get("points")):
                break
        return rounds

    def calibrated(self, arm):
        """A drawing as the arm came, one after rounds of touches, and one after rounds of ink that a camera reads."""
        with self.bench(arm, scenes=("tagged",), own_scenes=scenes_of_its_own, has_camera=True) as bench:
            is_reset, said = bench.reset()
            must(is_reset, f"reset: {said}")
            found, within = [], {}
            for mode in ("", "touch", "ink"):
                rounds = f"after {self.accepted(bench, mode)} of {mode}" if mode else "as it came"
                self.seen_by_camera(bench)
                bench.operator("enable", "--scene", "tagged", "--for", "60m", "--socket", bench.socket)
                answer, figures, said = self.draw(bench, again=bool(mode))
                found.append(f"{rounds}: {said}")
                must(answer.get("success"), f"{'; '.join(found)}; stroke: {answer.get('message')}")
                within[mode] = figures["p95"]
            for mode, most in (("touch", TOUCHED_P95_MM), ("ink", INKED_P95_MM)):
                must(within[mode] <= most, f"the ink is too far off after {mode}: {'; '.join(found)}")
            self.clean(bench)
        return "; ".join(found)

    def first_line(self, arm="middle", seed=1):
        """From the box to ink by the guide, with wrong zeros, tip and sheet."""
        try:
            wrong, ink = first_line(self.binary, self.work, ARMS[arm], seed)
        except RuntimeError as error:
            raise Wrong(str(error)) from None
        sheet = wrong.sheet
        sheet.lay(wrong.sheet_origin * 1e3, wrong.sheet_x, wrong.sheet_y)
        figures = judged(sheet, ink)
        found = "95 %% %.2f mm, largest %.2f, missing %.1f %%" % (figures["p95"], figures["max"], 100 * figures["missing"])
        must(figures["p95"] <= FIRST_LINE_P95_MM, f"the ink is too far off: {found}")
        return found

    def drawings(self, arm="12v"):
        """Twenty icons that others drew, twice, and five scenes four times: none ends as anything but a success."""
        icons = sorted((ROOT / os.environ["ICONS"]).glob("*.svg"))
        icons = icons[:: len(icons) // ICONS][:ICONS]
        calls = [{"scene": "canvas", "svg": icon.read_text(), "size_mm": 50, "again": True} for icon in icons] * 2
        calls += [{"scene": scene, "again": True} for scene in SCENES] * 4
        for first in range(0, len(calls), IN_A_ROW):
            self.tried(lambda: self.succeed(arm, calls[first : first + IN_A_ROW]))
        return f"{len(calls)} drawings"

    def succeed(self, arm, calls):
        """So many drawings in a row by one node."""
        with self.bench(arm, scenes=("default", "canvas", *SCENES[1:])) as bench:
            for call in calls:
                answer = bench.call("stroke", call)
                must(answer.get("success"), f"{call['scene']}: {answer.get('message')}")
            self.clean(bench)

    def tried(self, case):
        """Runs a case again where the machine was at fault."""
        for attempt in range(REPEATS + 1):
            try:
                return case()
            except Starved:
                self.repeated += 1
                if attempt == REPEATS:
                    raise Wrong(f"this machine did not run the arm in time in {REPEATS + 1} runs") from None


def has_turned_back(bench, sheet_mm):
    """Whether the tip came within 6 mm of the sheet, and is as high over it again as a probe begins."""
    height = bench.control("state")["tip_mm"][2] - sheet_mm
    bench.lowest = min(getattr(bench, "lowest", height), height)
    return bench.lowest < 6.0 and height > bench.lowest + 3.0


def lowest_points(log, sheet_mm):
    """Where the tip turned back upwards within 6 mm of the sheet: heights over it, and the largest force just before."""
    height = log[:, TIP.start + 2] - sheet_mm
    window = 100
    heights, forces = [], []
    at = window
    while at < len(log) - window:
        is_low = height[at] < 6.0 and height[at] <= height[at - window : at + window].min()
        rises = height[min(at + 4 * window, len(log) - 1)] > height[at] + 1.0
        if is_low and rises:
            heights.append(float(height[at]))
            forces.append(float(log[at - window : at + window, FORCE].max()))
            at += 10 * window
        at += 1
    return heights, forces


def last_motion(log, others):
    """When the set point of another servo than `others` last moved."""
    points = np.delete(log[:, POINTS], [others - 1, 5], axis=1)
    moved = np.abs(np.diff(points, axis=0)).max(axis=1) > 0.05
    return log[np.flatnonzero(moved)[-1] + 1, TIME]


def tip_speed(log, axes=3, span=20):
    """How fast the tip was over so many milliseconds, along its first axes."""
    tip = log[:, TIP.start : TIP.start + axes]
    speed = np.zeros(len(log))
    speed[span:] = np.linalg.norm(tip[span:] - tip[:-span], axis=1) / (log[span:, TIME] - log[:-span, TIME])
    return speed


def standstill(log, since):
    """When the tip was first slower than 2 mm/s along the sheet for 20 ms; the lift goes away from it."""
    speed = tip_speed(log, axes=2, span=10)
    for at in range(int(np.searchsorted(log[:, TIME], since)), len(log) - 20):
        if (speed[at : at + 20] < 2.0).all():
            return log[at, TIME]
    return float("inf")


def cases(judge):
    """All cases by name."""
    found = {"drawings": judge.drawings, "first-line": judge.first_line}
    for arm in ARMS:
        found[f"drawn:{arm}"] = lambda arm=arm: judge.drawn(arm)
        found[f"reset:{arm}"] = lambda arm=arm: judge.reset(arm)
        found[f"calibrated:{arm}"] = lambda arm=arm: judge.calibrated(arm)
        found[f"touch:{arm}"] = lambda arm=arm: judge.touch(arm)
    for arm in ("12v", "7v4-p16", "middle", "stiff"):
        found[f"sheet-8mm-high:{arm}"] = lambda arm=arm: judge.fault(arm, before={"cmd": "sheet", "dz": 8.0})
        found[f"pushed-down:{arm}"] = lambda arm=arm: judge.fault(arm, act={"cmd": "push", "f": [0, 0, -12], "s": 4})
        found[f"pushed-aside:{arm}"] = lambda arm=arm: judge.fault(arm, act={"cmd": "push", "f": [8, 0, 0], "s": 5})
        found[f"elbow-jams:{arm}"] = lambda arm=arm: judge.fault(arm, act={"cmd": "jam", "joint": 2, "nm": 50.0})
        found[f"limp:{arm}"] = lambda arm=arm: judge.limp(arm)
        found[f"stop:{arm}"] = lambda arm=arm: judge.stop(arm)
    return found


# What `.ci/run` asks for: a drawing begins with a reset, and a stop ends with one.
QUICK = ["drawn:12v", "drawn:stiff", "reset:7v4-p16", "touch:stiff", "limp:12v", "stop:stiff", "stop:middle"]


def main():
    binary, work, *asked = sys.argv[1:]
    judge = Judge(binary, work)
    known = cases(judge)
    if asked == ["list"]:
        print("\n".join(known))
        return
    chosen = QUICK if asked == ["quick"] else list(known) if asked == ["all"] else asked
    failed = []
    for name in chosen:
        began = time.monotonic()
        try:
            said, is_right = judge.tried(known[name]), True
        except Wrong as wrong:
            said, is_right = str(wrong), False
            failed.append(name)
        print("%-5s %-22s %3.0f s  %s" % ("ok" if is_right else "WRONG", name, time.monotonic() - began, said), flush=True)
    print(f"{len(chosen) - len(failed)} of {len(chosen)} as expected, {judge.repeated} runs repeated")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
