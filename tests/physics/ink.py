"""Ink of a run against the design of its scene, in millimetres of the sheet."""
import math
import re
import xml.etree.ElementTree

import numpy as np
from scipy.spatial import cKDTree


class Sheet:
    """The sheet of a scene, and the lines of the design on it."""

    def __init__(self, scene, designs):
        sheet, design = scene["sheet"], scene["design"]
        design_file = designs / design["file"]
        self.origin = np.array(sheet["origin_m"]) * 1e3
        self.x, self.y = np.array(sheet["x_axis"]), np.array(sheet["y_axis"])
        self.design = dense(lines_of(design_file, design["size_mm"], sheet["size_mm"]))

    def lay(self, origin_mm, x, y):
        self.origin, self.x, self.y = origin_mm, x, y

    def points(self, base_mm):
        from_origin = base_mm - self.origin
        return np.c_[from_origin @ self.x, from_origin @ self.y]


def lines_of(path, size_mm, sheet_mm):
    """The polylines of an SVG of paths, in the middle of the sheet, y upwards."""
    root = xml.etree.ElementTree.parse(path).getroot()
    box = [float(x) for x in root.get("viewBox").split()]
    scale = size_mm / max(box[2], box[3])
    margin = [(sheet_mm[0] - box[2] * scale) / 2, (sheet_mm[1] - box[3] * scale) / 2]
    lines = []
    for element in root.iter():
        if element.tag.endswith("path"):
            for line in polylines(element.get("d")):
                points = np.array(line)
                lines.append(np.c_[margin[0] + points[:, 0] * scale, margin[1] + (box[3] - points[:, 1]) * scale])
    return lines


def polylines(text):
    """The subpaths of a `d` with absolute M, L, H, V, Q, C, A and Z."""
    tokens = re.findall(r"[A-Za-z]|-?\d*\.?\d+", text)
    at, here, line, command, done = 0, None, [], None, []
    counts = {"M": 2, "L": 2, "H": 1, "V": 1, "Q": 4, "C": 6, "A": 7, "Z": 0}
    while at < len(tokens):
        if tokens[at].isalpha():
            command, at = tokens[at], at + 1
        numbers = [float(t) for t in tokens[at : at + counts[command]]]
        at += counts[command]
        if command == "M":
            done += [line] if line else []
            line, command = [tuple(numbers)], "L"
        elif command == "Z":
            line.append(line[0])
        else:
            line += curve(command, here, numbers)
        here = line[-1]
    return done + ([line] if line else [])


def curve(command, start, numbers):
    if command == "H":
        return [(numbers[0], start[1])]
    if command == "V":
        return [(start[0], numbers[0])]
    if command == "L":
        return [tuple(numbers)]
    if command == "A":
        return arc(start, numbers)
    controls = np.array([start, *zip(numbers[::2], numbers[1::2])])
    degree = len(controls) - 1
    t = np.linspace(0, 1, 100)[1:, None]
    weights = [math.comb(degree, k) * t**k * (1 - t) ** (degree - k) for k in range(degree + 1)]
    return [tuple(p) for p in sum(w * c for w, c in zip(weights, controls))]


def arc(start, numbers):
    """An arc whose ellipse is not turned."""
    rx, ry, _, large, sweep, x, y = numbers
    dx, dy = (start[0] - x) / 2, (start[1] - y) / 2
    room = dx * dx / rx / rx + dy * dy / ry / ry
    rx, ry, room = (rx * math.sqrt(room), ry * math.sqrt(room), 1) if room > 1 else (rx, ry, room)
    side = math.sqrt(max(0, (1 - room) / room)) * (1 if large != sweep else -1)
    cx, cy = side * rx * dy / ry, -side * ry * dx / rx
    mx, my = (start[0] + x) / 2, (start[1] + y) / 2
    first = math.atan2((dy - cy) / ry, (dx - cx) / rx)
    turn = math.atan2((-dy - cy) / ry, (-dx - cx) / rx) - first
    turn += 2 * math.pi if sweep and turn < 0 else -2 * math.pi if not sweep and turn > 0 else 0
    angles = first + turn * np.linspace(0, 1, 200)[1:]
    return list(zip(mx + cx + rx * np.cos(angles), my + cy + ry * np.sin(angles)))


def dense(lines, step=0.05):
    """Points along polylines, so near to each other that the nearest one is the nearest of the line."""
    points = []
    for line in lines:
        for a, b in zip(line[:-1], line[1:]):
            count = max(1, int(np.hypot(*(b - a)) / step))
            points += [a + (b - a) * k / count for k in range(count)]
        points.append(line[-1])
    return np.array(points)


def by_length(times, points, step=0.1):
    """Ink evenly along its marks: a pen that stands counts once."""
    kept, last, before = [], None, None
    for time, point in zip(times, points):
        is_new = before is None or time - before > 0.003
        if is_new or np.hypot(*(point - last)) >= step:
            kept.append(point)
            last = point
        before = time
    return np.array(kept)


def judged(sheet, ink):
    """Deviation of the ink from the design (95 %, largest), the share of the design without ink within 1 mm, and forces."""
    if len(ink) < 10:
        return {"p95": math.inf, "max": math.inf, "missing": 1.0, "force": 0.0}
    points = by_length(ink[:, 0], sheet.points(ink[:, 1:4]))
    off = cKDTree(sheet.design).query(points)[0]
    without = cKDTree(points).query(sheet.design)[0]
    return {"p95": float(np.percentile(off, 95)), "max": float(off.max()), "missing": float(np.mean(without > 1.0)),
            "force": float(ink[:, 4].max())}
