//! Meshes of known shapes for tests.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use nalgebra::{Point3, Vector3};

use super::{CleanMesh, FilePoints, MeshAnchor, MeshError, MeshPatch};

/// A grid of points over `u` and `v`, each from -1 to 1, with two triangles for each cell; the
/// diagonals alternate.
pub(crate) fn grid(count: usize, at: impl Fn(f64, f64) -> Point3<f64>) -> FilePoints {
    let mut mesh = FilePoints::default();
    let share = |n: usize| n as f64 / count as f64 * 2.0 - 1.0;
    for row in 0..=count {
        for column in 0..=count {
            let point = at(share(column), share(row));
            mesh.add_point(point.coords.into()).unwrap();
        }
    }
    for row in 0..count {
        for column in 0..count {
            let index = |dx: usize, dy: usize| ((row + dy) * (count + 1) + column + dx) as i64;
            let [a, b, c, d] = [index(0, 0), index(1, 0), index(1, 1), index(0, 1)];
            let faces = if (row + column) % 2 == 0 {
                [[a, b, c], [a, c, d]]
            } else {
                [[a, b, d], [b, c, d]]
            };
            for face in faces {
                mesh.add_face(&face).unwrap();
            }
        }
    }
    mesh
}

pub(crate) fn patch(mesh: &FilePoints) -> Result<MeshPatch, MeshError> {
    let middle = MeshAnchor::Above { xy_m: [0.0; 2] };
    let clean = CleanMesh::new(mesh, 1.0, &middle)?;
    MeshPatch::new(clean, &Vector3::x(), SHEET_MM)
}

/// A sheet around the origin.
pub(crate) const SHEET_MM: [[f64; 2]; 2] = [[-40.0; 2], [40.0; 2]];

/// Half of the side of a shape's sheet.
pub(crate) const HALF_M: f64 = 0.045;

pub(crate) fn plane(count: usize) -> FilePoints {
    // Cells of different sizes.
    let bent = |u: f64| u + 0.1 * (3.0 * u).sin();
    grid(count, |u, v| {
        Point3::new(bent(u) * HALF_M, bent(v) * HALF_M, 0.0)
    })
}

pub(crate) const CYLINDER_M: f64 = 0.045;

pub(crate) fn cylinder(count: usize) -> FilePoints {
    grid(count, |u, v| {
        cylinder_at([u * HALF_M * 1e3, v * HALF_M * 1e3])
    })
}

pub(crate) fn cylinder_at([x_mm, y_mm]: [f64; 2]) -> Point3<f64> {
    let angle = x_mm / 1e3 / CYLINDER_M;
    Point3::new(
        CYLINDER_M * angle.sin(),
        y_mm / 1e3,
        CYLINDER_M * (angle.cos() - 1.0),
    )
}

pub(crate) const BALL_M: f64 = 0.06;

pub(crate) fn ball(count: usize) -> FilePoints {
    grid(count, |u, v| {
        let towards = Vector3::new(u.tan(), v.tan(), 1.0).normalize();
        Point3::from(towards * BALL_M - Vector3::z() * BALL_M)
    })
}

/// A ball whose points are moved by up to a quarter of an edge along it.
pub(crate) fn uneven_ball(count: usize) -> FilePoints {
    let by = std::cell::Cell::new(7_u64);
    let chance = || {
        by.set(
            by.get()
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        );
        ((by.get() >> 40) as f64 / f64::from(1_u32 << 24) - 0.5) / count as f64
    };
    grid(count, |u, v| {
        let towards = Vector3::new((u + chance()).tan(), (v + chance()).tan(), 1.0).normalize();
        Point3::from(towards * BALL_M - Vector3::z() * BALL_M)
    })
}

pub(crate) fn ball_at([x_mm, y_mm]: [f64; 2]) -> Point3<f64> {
    let angle = x_mm.hypot(y_mm) / 1e3 / BALL_M;
    let share = if angle > 0.0 {
        angle.sin() / angle
    } else {
        1.0
    };
    Point3::new(
        x_mm / 1e3 * share,
        y_mm / 1e3 * share,
        BALL_M * (angle.cos() - 1.0),
    )
}

/// Radius to the middle of a ring's tube, and of the tube.
pub(crate) const RING_M: [f64; 2] = [0.06, 0.04];

pub(crate) fn ring(count: usize) -> FilePoints {
    grid(count, |u, v| ring_at(u * 0.6, v * 1.2))
}

/// A point of a ring around the y axis by its two angles; (0, 0) is the origin, with the normal z.
pub(crate) fn ring_at(around: f64, tube: f64) -> Point3<f64> {
    let [ring, small] = RING_M;
    let out = ring + small * tube.cos();
    Point3::new(
        out * around.sin(),
        small * tube.sin(),
        out * around.cos() - ring - small,
    )
}

/// Returns the point of a ring at the end of the geodesic of this length and direction from
/// (0, 0), by its differential equation.
pub(crate) fn ring_geodesic([x_mm, y_mm]: [f64; 2]) -> Point3<f64> {
    let [ring, small] = RING_M;
    let (length, steps) = (x_mm.hypot(y_mm) / 1e3, 2000_u32);
    let direction = y_mm.atan2(x_mm);
    // Angles around and in the tube, and their speeds.
    let mut state = [
        0.0,
        0.0,
        direction.cos() / (ring + small),
        direction.sin() / small,
    ];
    let change = |[_, tube, da, dt]: [f64; 4]| {
        let out = ring + small * tube.cos();
        [
            da,
            dt,
            2.0 * small * tube.sin() / out * da * dt,
            -out * tube.sin() / small * da * da,
        ]
    };
    let step = length / f64::from(steps);
    let moved = |state: [f64; 4], by: [f64; 4], step: f64| {
        let mut moved = state;
        for (value, by) in moved.iter_mut().zip(by) {
            *value += by * step;
        }
        moved
    };
    for _ in 0..steps {
        let one = change(state);
        let two = change(moved(state, one, step / 2.0));
        let three = change(moved(state, two, step / 2.0));
        let four = change(moved(state, three, step));
        for (index, value) in state.iter_mut().enumerate() {
            let [one, two, three, four] = [one, two, three, four].map(|by| by[index]);
            *value += step / 6.0 * (one + 2.0 * two + 2.0 * three + four);
        }
    }
    ring_at(state[0], state[1])
}

/// A surface of waves of a few millimetres with chance bumps.
pub(crate) fn bumps(count: usize, seed: u64) -> FilePoints {
    let chance = |n: u64| {
        let mixed = (seed.wrapping_add(n)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 32)) & 0xFFFF) as f64 / 65_535.0 * 2.0 - 1.0
    };
    let waves: Vec<[f64; 4]> = (0..6)
        .map(|wave| [0, 1, 2, 3].map(|term| chance(wave * 4 + term)))
        .collect();
    grid(count, |u, v| {
        let heights = waves
            .iter()
            .map(|[a, b, c, d]| 0.0015 * a * (3.0 * (b * u + c * v) + 3.0 * d).sin());
        Point3::new(u * HALF_M, v * HALF_M, heights.sum())
    })
}
