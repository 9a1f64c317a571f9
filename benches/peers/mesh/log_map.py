"""How far this program and two published libraries lay meshes from the truth, and how long it takes, all on the same meshes.

    pip install potpourri3d pygeodesic && python benches/peers/mesh/log_map.py

A ball is compared with its closed form. On a bumpy mesh of 50,000 triangles lengths are compared with the exact ones of pygeodesic.
"""

import math
import subprocess
import time

import numpy as np
import potpourri3d
from pygeodesic import geodesic

RADIUS_M = 0.06
NEAR_M = 0.035


def grid(count, at):
    """A grid of points over u and v from -1 to 1, with diagonals that alternate; its middle is a point."""
    shares = [n / count * 2 - 1 for n in range(count + 1)]
    points = np.array([at(u, v) for v in shares for u in shares])
    triangles = []
    for row in range(count):
        for column in range(count):
            first = row * (count + 1) + column
            a, b, c, d = first, first + 1, first + count + 2, first + count + 1
            even = (row + column) % 2 == 0
            triangles += [[a, b, c], [a, c, d]] if even else [[a, b, d], [b, c, d]]
    return points, np.array(triangles), count // 2 * (count + 1) + count // 2


def ball(u, v):
    towards = np.array([math.tan(u), math.tan(v), 1.0])
    return towards / np.linalg.norm(towards) * RADIUS_M - [0, 0, RADIUS_M]


def bumps(u, v):
    x, y = 0.05 * u, 0.05 * v
    return [x, y, 0.0025 * math.sin(x / 0.012) * math.cos(y / 0.014) + 0.0006 * math.sin((x + y) / 0.007)]


def timed(work):
    begun = time.time()
    made = work()
    return made, time.time() - begun


def here(points, triangles):
    """The places of all points, and the seconds that they took."""
    mesh = "".join(f"v {x!r} {y!r} {z!r}\n" for x, y, z in points.tolist())
    mesh += "".join(f"f {a} {b} {c}\n" for a, b, c in (triangles + 1).tolist())
    command = "cargo run --quiet --release -p steadyhand-mesh --example log_map".split()
    said = subprocess.run(command, input=mesh, capture_output=True, text=True, check=True).stdout
    took, *corners = said.splitlines()
    places = {tuple(word.split()[:3]): word.split()[3:] for word in corners}
    key = lambda point: tuple(np.format_float_positional(value, trim="-") for value in point)
    return np.array([[float(mm) / 1e3 for mm in places[key(point)]] for point in points]), float(took)


def vector_heat(points, triangles, middle):
    return timed(lambda: potpourri3d.MeshVectorHeatSolver(points, triangles).compute_log_map(middle))


def exact(points, triangles, middle):
    solve = lambda: geodesic.PyGeodesicAlgorithmExact(points, triangles).geodesicDistances(np.array([middle]), None)[0]
    return timed(solve)


def report(who, off_m, took):
    print(f"{who}: at most {off_m.max() * 1e3:.3f} mm off, 95 % within {np.quantile(off_m, 0.95) * 1e3:.3f} mm, {took:.2f} s")


def polar(laid):
    return np.hypot(laid[:, 0], laid[:, 1]), np.arctan2(laid[:, 1], laid[:, 0])


def apart(laid, length, angle, near):
    """Distances from places of a closed form. The direction to the right is each program's own."""
    laid_length, laid_angle = polar(laid)
    turn = np.angle(np.exp(1j * (laid_angle - angle))[near].mean())
    return np.abs(laid_length * np.exp(1j * (laid_angle - turn)) - length * np.exp(1j * angle))[near]


points, triangles, middle = grid(80, ball)
across, angle = polar(points)
length = RADIUS_M * np.arctan2(across, points[:, 2] + RADIUS_M)
near = (length < NEAR_M) & (length > 1e-6)
print(f"a ball of {len(triangles)} triangles, places within {NEAR_M * 1e3:.0f} mm")
laid, took = here(points, triangles)
report("  here", apart(laid, length, angle, near), took)
laid, took = vector_heat(points, triangles, middle)
report("  potpourri3d, vector heat", apart(laid, length, angle, near), took)
distance, took = exact(points, triangles, middle)
report("  pygeodesic, lengths only", np.abs(distance - length)[near], took)

points, triangles, middle = grid(158, bumps)
distance, took = exact(points, triangles, middle)
near = (distance < NEAR_M) & (distance > 1e-6)
print(f"a bumpy mesh of {len(triangles)} triangles, lengths within {NEAR_M * 1e3:.0f} mm beside pygeodesic's, which took {took:.2f} s")
laid, took = here(points, triangles)
report("  here", np.abs(polar(laid)[0] - distance)[near], took)
laid, took = vector_heat(points, triangles, middle)
report("  potpourri3d, vector heat", np.abs(polar(laid)[0] - distance)[near], took)
