"""Plans a set of icons in one process, and measures the same files with `vpype stat` in another.

Fails where the planner breaks, where more than one icon in a hundred is refused, where a refusal
gives no reason, where the design's length is more than 1 % from vpype's, or where more is drawn than
that. Lines that lie on others are drawn once: where that makes a difference, the icon is named.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

SIZE_MM = 60.0
PLANNED_SHARE = 0.99
LENGTH_SHARE = 0.01
# Lengths below this are compared in millimetres: flattening differs by so much.
LENGTH_MM = 0.05
# The time with the pen up, in what no plan of the same lines in the same order can beat.
PEN_UP_RATIO = 1.45
# Outlines seldom lie on themselves: more such icons would be a planner that loses lines.
ONCE_SHARE = 0.02
AT_A_TIME = 60


def chosen(folder, count):
    """Every so many-th of the set, in the order of names."""
    every = sorted(pathlib.Path(folder).glob("*.svg"))
    if count == "all":
        return every
    step = max(1, len(every) // int(count))
    return every[::step][: int(count)]


def planned(steadyhand, icons, work):
    """The planner's answer to each icon, by its name."""
    folder = pathlib.Path(work) / "chosen"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for icon in icons:
        shutil.copy(icon, folder)
    command = [steadyhand, "plan", "--design", str(folder), "--size", "60mm", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    if run.returncode not in (0, 1):
        sys.exit(f"the planner broke ({run.returncode}): {run.stderr[-2000:]}")
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return {pathlib.Path(answer["design"]).name: answer for answer in answers}


def measured(icons):
    """What `vpype stat` says of each icon, as millimetres at the size that is drawn."""
    lengths = {}
    for begin in range(0, len(icons), AT_A_TIME):
        some = icons[begin : begin + AT_A_TIME]
        command = [sys.executable, "-m", "vpype_cli"]
        for icon in some:
            command += ["ldelete", "all", "read", "-q", "0.002mm", str(icon), "stat"]
        run = subprocess.run(command[:3] + command[5:], capture_output=True, text=True, timeout=1800)
        if run.returncode:
            sys.exit(f"vpype failed: {run.stderr[-2000:]}")
        parts = run.stdout.split("========= Stats =========")[1:]
        assert len(parts) == len(some), f"{len(parts)} answers to {len(some)} icons"
        for icon, part in zip(some, parts):
            bounds = re.search(r"Totals.*?\n\s+Bounds: ([^\n]*)", part, re.S)
            left, top, right, bottom = map(float, re.findall(r"-?\d+\.\d+", bounds[1]))
            length = re.search(r"Totals.*?\n\s+Length: ([\d.]+)", part, re.S)
            lengths[icon.name] = float(length[1]) * SIZE_MM / max(right - left, bottom - top)
    return lengths


def main():
    steadyhand, folder, work, count = sys.argv[1:]
    icons = chosen(folder, count)
    assert icons, f"no icons in {folder}"
    plans, lengths = planned(steadyhand, icons, work), measured(icons)
    assert set(plans) == {icon.name for icon in icons}, "an icon has no answer"
    refused = [name for name, plan in plans.items() if not plan["success"]]
    for name in refused:
        assert plans[name]["refusals"], f"{name} is refused without a reason"
        print(f"refused: {name}: {plans[name]['message']}")
    off, once, slow = [], [], []
    for name, plan in plans.items():
        if name in refused:
            continue
        drawn, design, length = plan["pen_down_mm"], plan["design_mm"], lengths[name]
        if plan["pen_up_s"] > PEN_UP_RATIO * plan["pen_up_bound_s"]:
            slow.append(name)
            print(f"pen up: {name}: {plan['pen_up_s']:.2f} s, at least {plan['pen_up_bound_s']:.2f} s")
        slack = max(LENGTH_SHARE * length, LENGTH_MM)
        if abs(design - length) > slack or drawn > length + slack:
            off.append(name)
            print(f"length: {name}: {design:.2f} mm read, {drawn:.2f} drawn, {length:.2f} by vpype")
        elif drawn < length - slack:
            once.append(name)
            print(f"drawn once: {name}: {drawn:.2f} mm of {length:.2f} mm; the rest lies on it")
    share = 1 - len(refused) / len(plans)
    print(
        f"{len(plans)} icons: {share:.2%} planned without refusal; {len(off)} more than 1 % from vpype's"
        f" length; {len(once)} have lines on lines, drawn once"
    )
    if share < PLANNED_SHARE or off or slow or len(once) > ONCE_SHARE * len(plans):
        sys.exit(1)


main()
