"""Plans HP-GL and measures what hp2xx draws of the same file.

Fails where a file is refused, or where the length of line differs by more than 1 % of itself from
hp2xx's drawing of it, both as shares of the drawing's longer side. Labels are in letters of each
program's own, so a file with labels is only planned.
"""

import json
import math
import pathlib
import re
import subprocess
import sys

SIZE_MM = 60.0
LENGTH_SHARE = 0.01
# Drawn with text in letters of each program's own.
LABELLED = {"gnuplot.plt"}


def made_by_vpype(folder, work):
    """Every SVG of the folder, as vpype writes it for a plotter."""
    made = []
    for svg in sorted(folder.glob("*.svg")):
        hpgl = work / (svg.stem + ".hpgl")
        command = [sys.executable, "-m", "vpype_cli", "read", str(svg), "lmove", "all", "1"]
        command += ["layout", "--fit-to-margins", "3cm", "--landscape", "a4"]
        command += ["write", "--device", "hp7475a", "--page-size", "a4", "--landscape", str(hpgl)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if run.returncode or not hpgl.exists():
            sys.exit(f"vpype failed on {svg.name}: {run.stderr[-2000:]}")
        made.append(hpgl)
    return made


def drawn_by_hp2xx(path, work):
    """The pieces of lines of hp2xx's drawing."""
    svg = work / "judged.svg"
    command = ["hp2xx", "-q", "-m", "svg", "-f", str(svg), str(path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    if run.returncode:
        sys.exit(f"hp2xx failed on {path.name}: {run.stderr[-2000:]}")
    pieces = []
    for data in re.findall(r'<path d="([^"]*)"', svg.read_text()):
        points = [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+)\s*,\s*(-?[\d.]+)", data)]
        pieces += list(zip(points, points[1:]))
    return pieces


def relative_length(pieces):
    """Length of line as a share of the longer side, pieces drawn twice counted once."""
    once = {tuple(sorted(piece)) for piece in pieces}
    points = [point for piece in once for point in piece]
    sides = [max(p[axis] for p in points) - min(p[axis] for p in points) for axis in (0, 1)]
    return sum(math.dist(a, b) for a, b in once) / max(sides)


def main():
    steadyhand, fixtures, work = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    files = sorted(p for p in (fixtures / "hpgl").iterdir() if p.suffix in (".hpgl", ".plt"))
    files += made_by_vpype(fixtures / "svg", work)
    wrong = []
    for path in files:
        command = [steadyhand, "plan", "--design", str(path), "--size", "60mm", "--json"]
        command[2:2] = ["two_pens"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=600)
        plan = json.loads(run.stdout)
        if "design_mm" not in plan:
            wrong.append(f"{path.name}: {plan.get('message')}")
            continue
        if path.name in LABELLED:
            print(f"{path.name}: planned")
            continue
        ours = plan["pen_down_mm"] / SIZE_MM
        theirs = relative_length(drawn_by_hp2xx(path, work))
        print(f"{path.name}: {ours:.4f} of the longer side, by hp2xx {theirs:.4f}")
        if abs(ours - theirs) > LENGTH_SHARE * theirs:
            wrong.append(f"{path.name}: {ours:.4f}, by hp2xx {theirs:.4f}")
    print(f"{len(files)} files, {len(wrong)} of them wrong")
    sys.exit("\n".join(wrong) or None)


main()
