"""Writes drawings with ezdxf, has them planned, and compares with ezdxf's own reading of each file.

Each drawing is a frame of 60 by 40 mm with a curve or block in each of six cells, so that nothing touches and the planned
size is the drawn one. Fails where a file is refused, where the number of strokes differs, or where the length of line differs
by more than 0.1 % from ezdxf's, flattened far finer than either is drawn.
"""

import json
import pathlib
import random
import subprocess
import sys

import ezdxf
from ezdxf import disassemble, units

WIDE_MM, HIGH_MM = 60.0, 40.0
CELL_MM = 20.0
FLATTENED_MM = 0.0005
LENGTH_SHARE = 0.001
VERSIONS = ["R12", "R2000", "R2007", "R2010", "R2018"]


def entities(layout, chance, middle, version):
    """One entity within 7 mm of the middle of its cell."""
    x, y = middle
    size = chance.uniform(2.0, 6.5)
    turn = chance.uniform(0, 360)
    at = lambda: (x + chance.uniform(-6, 6), y + chance.uniform(-6, 6))
    kinds = ["line", "circle", "arc", "old polyline"]
    if version != "R12":
        kinds += ["polyline", "ellipse", "spline"]
    match chance.choice(kinds):
        case "line":
            layout.add_line((x - size, y), (x + size, y + chance.uniform(-5, 5)))
        case "circle":
            layout.add_circle(middle, size)
        case "arc":
            layout.add_arc(middle, size, turn, turn + chance.uniform(20, 330))
        case "old polyline":
            layout.add_polyline2d([at() for _ in range(4)])
        case "polyline":
            points = [(*at(), chance.choice([0, 0, chance.uniform(-0.6, 0.6)])) for _ in range(4)]
            layout.add_lwpolyline(points, format="xyb", close=chance.random() < 0.5)
        case "ellipse":
            layout.add_ellipse(middle, major_axis=(size, 0), ratio=chance.uniform(0.2, 1), start_param=0, end_param=chance.uniform(1, 6))
        case "spline":
            layout.add_open_spline([at() for _ in range(6)])


def drawing(chance, version):
    doc = ezdxf.new(version)
    doc.units = units.MM
    space = doc.modelspace()
    corners = [(0, 0), (WIDE_MM, 0), (WIDE_MM, HIGH_MM), (0, HIGH_MM)]
    space.add_polyline2d(corners, close=True)
    for cell in range(6):
        middle = (CELL_MM * (cell % 3) + CELL_MM / 2, CELL_MM * (cell // 3) + CELL_MM / 2)
        if chance.random() < 0.3:
            block = doc.blocks.new(f"B{cell}")
            entities(block, chance, (0.0, 0.0), version)
            # Scaled alike both ways: a circle stays one.
            share = chance.uniform(0.3, 1.0)
            space.add_blockref(block.name, middle, dxfattribs={"xscale": share, "yscale": share, "rotation": chance.uniform(0, 360)})
        else:
            entities(space, chance, middle, version)
    return doc


def judged(doc):
    """Strokes and their length in mm, as ezdxf reads them."""
    lengths = []
    for primitive in disassemble.to_primitives(disassemble.recursive_decompose(doc.modelspace())):
        points = list(primitive.path.flattening(FLATTENED_MM))
        lengths.append(sum(a.distance(b) for a, b in zip(points, points[1:])))
    return len(lengths), sum(lengths)


def main():
    steadyhand, work = sys.argv[1], pathlib.Path(sys.argv[2])
    count, seed = int(sys.argv[3]), int(sys.argv[4])
    wrong = []
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        version = VERSIONS[number % len(VERSIONS)]
        path = work / f"judged-{number}.dxf"
        drawing(chance, version).saveas(path)
        strokes, length_mm = judged(ezdxf.readfile(path))
        command = [steadyhand, "plan", "two_pens", "--design", str(path), "--size", f"{WIDE_MM}mm", "--one-pen", "--json"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=600)
        plan = json.loads(run.stdout) if run.stdout else {"message": run.stderr}
        if "design_mm" not in plan:
            wrong.append(f"{path.name} ({version}): {plan.get('message')}")
            continue
        ours = (plan["design_strokes"], plan["design_mm"])
        print(f"{path.name} ({version}): {ours[0]} strokes, {ours[1]:.2f} mm, by ezdxf {strokes}, {length_mm:.2f} mm")
        if ours[0] != strokes or abs(ours[1] - length_mm) > LENGTH_SHARE * length_mm:
            wrong.append(f"{path.name} ({version}): {ours}, by ezdxf {(strokes, length_mm)}")
    print(f"{count} files, {len(wrong)} of them wrong")
    sys.exit("\n".join(wrong) or None)


main()
