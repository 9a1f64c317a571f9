"""How far two published libraries lay a ball from its closed form, on the mesh of `src/mesh/tests.rs`.

    pip install potpourri3d pygeodesic && python benches/peers/mesh/log_map.py
"""

import math
import time

import numpy as np
import potpourri3d
from pygeodesic import geodesic

RADIUS_M = 0.06
COUNT = 80


def ball():
    shares = [n / COUNT * 2 - 1 for n in range(COUNT + 1)]
    towards = np.array([[math.tan(u), math.tan(v), 1.0] for v in shares for u in shares])
    points = towards / np.linalg.norm(towards, axis=1)[:, None] * RADIUS_M
    triangles = []
    for row in range(COUNT):
        for column in range(COUNT):
            first = row * (COUNT + 1) + column
            a, b, c, d = first, first + 1, first + COUNT + 2, first + COUNT + 1
            even = (row + column) % 2 == 0
            triangles += [[a, b, c], [a, c, d]] if even else [[a, b, d], [b, c, d]]
    return points, np.array(triangles)


def polar(x, y):
    return np.hypot(x, y), np.arctan2(y, x)


points, triangles = ball()
middle = COUNT // 2 * (COUNT + 1) + COUNT // 2
across, angle = polar(points[:, 0], points[:, 1])
length = RADIUS_M * np.arctan2(across, points[:, 2])
near = (length < 0.035) & (length > 1e-6)

begun = time.time()
solver = potpourri3d.MeshVectorHeatSolver(points, triangles)
laid = solver.compute_log_map(middle)
took = time.time() - begun
laid_length, laid_angle = polar(laid[:, 0], laid[:, 1])
# Its direction to the right is its own.
laid_angle -= np.angle(np.exp(1j * (laid_angle - angle))[near].mean())
off = np.abs(laid_length * np.exp(1j * laid_angle) - length * np.exp(1j * angle))[near] * 1e3
print(f"potpourri3d, vector heat: at most {off.max():.3f} mm, {took:.2f} s")

begun = time.time()
exact = geodesic.PyGeodesicAlgorithmExact(points, triangles)
distance, _ = exact.geodesicDistances(np.array([middle]), None)
took = time.time() - begun
off = np.abs(distance - length)[near] * 1e3
print(f"pygeodesic, lengths only: at most {off.max():.4f} mm, {took:.2f} s")
