//! Geodesic distance and direction of every point of a mesh from one point on it: Discrete Geodesic
//! Polar Coordinates (Melvær and Reimers, 2012).
//!
//! Points are visited by distance, as in Dijkstra's algorithm. A point's values come from those of
//! the two others of a triangle: the triangle is unfolded beside the place from which both are as far
//! as they are. Exact on surfaces that unfold to a plane.
#![expect(
    clippy::indexing_slicing,
    reason = "triangles name points of the same mesh"
)]

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::f64::consts::{FRAC_PI_2, TAU};

use nalgebra::{Vector2, Vector3};

use super::MeshError;
use super::anchor::Seed;
use super::topology::Topology;

/// Geodesic distance and direction from the start; the direction is counter-clockwise from the right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolarPoint {
    pub(crate) distance_m: f64,
    pub(crate) angle_rad: f64,
    /// Distance between neighbouring geodesics, as a share of that on a plane.
    pub(crate) spread: f64,
}

/// A value is replaced by one that is shorter by more than this share.
const SHORTER: f64 = 1e-10;
/// Share of an edge by which a straight way may miss it.
const BESIDE: f64 = 0.05;
/// Share of an edge by which two ways that are equally far may differ.
const EQUALLY_FAR: f64 = 5e-3;
/// Weight of what one edge says about the spread of geodesics.
const SPREAD_WEIGHT: f64 = 0.5;
/// Range of the spread that is believed.
const SPREAD: [f64; 2] = [0.65, 1.6];
/// Number of edges around the start whose spread says nothing yet.
const NEAR_EDGES: f64 = 3.0;
/// Most points around a corner that are laid out.
const SPOKES_MAX: usize = 100;
/// Least sine of the angle between the direction to the right and the normal.
const SINE_MIN: f64 = 1e-3;

/// Returns the polar coordinates of every point.
pub(crate) fn polar_map(
    mesh: &Topology,
    seed: &Seed,
    right: &Vector3<f64>,
) -> Result<Vec<PolarPoint>, MeshError> {
    let mut front = Front::new(mesh);
    front.start(seed, right)?;
    while let Some(Visit { distance_m, point }) = front.open.pop() {
        if distance_m > front.polar[point as usize].distance_m {
            continue;
        }
        let (first, end) = (
            front.starts[point as usize],
            front.starts[point as usize + 1],
        );
        for place in first..end {
            let [next, last, one] = front.corners_before(front.around[place], point as usize);
            front.reach([one, next, last]);
            front.reach([last, one, next]);
        }
    }
    front.settle();
    Ok(front.polar)
}

/// A point that waits for its turn, the nearest first.
#[derive(Clone, Copy, Debug)]
struct Visit {
    distance_m: f64,
    point: u32,
}

impl Ord for Visit {
    fn cmp(&self, other: &Self) -> Ordering {
        let nearer = other.distance_m.total_cmp(&self.distance_m);
        nearer.then(other.point.cmp(&self.point))
    }
}

impl PartialOrd for Visit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Visit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Visit {}

/// The points reached so far.
struct Front<'m> {
    mesh: &'m Topology,
    polar: Vec<PolarPoint>,
    /// True for the points around the start.
    is_set: Vec<bool>,
    open: BinaryHeap<Visit>,
    /// The triangles around each point, and where its own begin.
    around: Vec<usize>,
    starts: Vec<usize>,
}

impl<'m> Front<'m> {
    fn new(mesh: &'m Topology) -> Self {
        let mut starts = vec![0; mesh.points.len() + 1];
        for corner in mesh.triangles.iter().flatten() {
            starts[*corner as usize + 1] += 1;
        }
        for point in 0..mesh.points.len() {
            starts[point + 1] += starts[point];
        }
        let (mut next, mut around) = (starts.clone(), vec![0; mesh.triangles.len() * 3]);
        for (triangle, corners) in mesh.triangles.iter().enumerate() {
            for corner in corners {
                around[next[*corner as usize]] = triangle;
                next[*corner as usize] += 1;
            }
        }
        let unknown = PolarPoint {
            distance_m: f64::INFINITY,
            angle_rad: 0.0,
            spread: 1.0,
        };
        Self {
            mesh,
            polar: vec![unknown; mesh.points.len()],
            is_set: vec![false; mesh.points.len()],
            open: BinaryHeap::new(),
            around,
            starts,
        }
    }

    /// Sets the points around the triangle of the start. Values so near to it tell no direction to
    /// triangles that unfold, so they are set by the fans around its corners and stay.
    fn start(&mut self, seed: &Seed, right: &Vector3<f64>) -> Result<(), MeshError> {
        let normal = self.mesh.area_vector(seed.triangle).normalize();
        let x = right - normal.scale(right.dot(&normal));
        let x = x.try_normalize(SINE_MIN * right.norm());
        let x = x.ok_or(MeshError::Direction)?;
        let y = normal.cross(&x);
        let corners = self.mesh.triangles[seed.triangle];
        let flat = corners.map(|corner| {
            let from_start = self.mesh.points[corner as usize] - seed.point;
            Vector2::new(from_start.dot(&x), from_start.dot(&y))
        });
        let mut around: BTreeMap<u32, Vec<Vector2<f64>>> = BTreeMap::new();
        for corner in 0..3 {
            for (point, at) in fan(self.mesh, seed.triangle, corner, &flat) {
                around.entry(point).or_default().push(at);
            }
        }
        around.extend(corners.into_iter().zip(flat.map(|at| vec![at])));
        for (point, places) in around {
            let at = places.iter().sum::<Vector2<f64>>() / places.len() as f64;
            self.is_set[point as usize] = true;
            self.set(
                point,
                PolarPoint {
                    distance_m: at.norm(),
                    angle_rad: at.y.atan2(at.x),
                    spread: 1.0,
                },
            );
        }
        Ok(())
    }

    /// Sets each direction to the mean of those by all triangles that lead to it equally far, weighted by their widths: one
    /// that lies on a line through points would drift to the side that was looked at first.
    fn settle(&mut self) {
        let count = self.polar.len();
        let mut order: Vec<usize> = (0..count).filter(|point| !self.is_set[*point]).collect();
        let distance_m = |point: usize| self.polar[point].distance_m;
        order.sort_by(|a, b| distance_m(*a).total_cmp(&distance_m(*b)));
        for point in order {
            let known = self.polar[point];
            let (mut turn_rad, mut spread, mut widths) = (0.0, 0.0, 0.0);
            for place in self.starts[point]..self.starts[point + 1] {
                let [from, to, target] = self.corners_before(self.around[place], point);
                let [at_from, at_to, at_target] =
                    [from, to, target].map(|corner| self.mesh.points[corner as usize]);
                let ends = [self.polar[from as usize], self.polar[to as usize]];
                let way = unfold(at_to - at_from, at_target - at_from, ends);
                let limit_m = known.distance_m + EQUALLY_FAR * (at_to - at_from).norm();
                if let Some((way, width)) = way.filter(|(way, _)| way.distance_m < limit_m) {
                    let half = TAU / 2.0;
                    let turn = (way.angle_rad - known.angle_rad + half).rem_euclid(TAU) - half;
                    turn_rad += turn * width;
                    spread += way.spread * width;
                    widths += width;
                }
            }
            if widths > 0.0 {
                self.polar[point].angle_rad += turn_rad / widths;
                self.polar[point].spread = spread / widths;
            }
        }
    }

    /// Returns the corners of a triangle, in their order, with this one last.
    fn corners_before(&self, triangle: usize, last: usize) -> [u32; 3] {
        let [a, b, c] = self.mesh.triangles[triangle];
        match last {
            last if last == a as usize => [b, c, a],
            last if last == b as usize => [c, a, b],
            _ => [a, b, c],
        }
    }

    fn set(&mut self, point: u32, polar: PolarPoint) {
        self.polar[point as usize] = polar;
        self.open.push(Visit {
            distance_m: polar.distance_m,
            point,
        });
    }

    /// Reaches the last corner of a triangle across the edge of the first two, or along an edge.
    fn reach(&mut self, [from, to, target]: [u32; 3]) {
        let [at_from, at_to, at_target] =
            [from, to, target].map(|corner| self.mesh.points[corner as usize]);
        let (along, across) = (at_to - at_from, at_target - at_from);
        let ends = [self.polar[from as usize], self.polar[to as usize]];
        let over_edge = unfold(along, across, ends);
        let [start, end] = ends;
        let by = |end: PolarPoint, length_m: f64| PolarPoint {
            distance_m: end.distance_m + length_m,
            ..end
        };
        let reached = over_edge.map(|(reached, _)| reached).unwrap_or_else(|| {
            let ways = [by(start, across.norm()), by(end, (across - along).norm())];
            let [one, other] = ways;
            if other.distance_m < one.distance_m {
                other
            } else {
                one
            }
        });
        let is_shorter =
            reached.distance_m < self.polar[target as usize].distance_m * (1.0 - SHORTER);
        if is_shorter && !self.is_set[target as usize] {
            self.set(target, reached);
        }
    }
}

/// Lays out the points around a corner of a triangle in its plane, in which the corners of the
/// triangle are at `flat`. The angles around the corner are scaled to a full turn.
fn fan(
    mesh: &Topology,
    triangle: usize,
    corner: usize,
    flat: &[Vector2<f64>; 3],
) -> Vec<(u32, Vector2<f64>)> {
    let (mut around, is_closed) = spokes(mesh, [triangle, corner], true);
    let own = around.first().map_or(0.0, |(_, own)| *own);
    let turn = around.last().map_or(TAU, |(_, turn)| *turn);
    let scale = if is_closed { TAU / turn } else { 1.0 };
    if !is_closed {
        let (rest, _) = spokes(mesh, [triangle, corner], false);
        around.extend(rest.into_iter().map(|(point, turn)| (point, own - turn)));
    }
    let middle = mesh.points[mesh.triangles[triangle][corner] as usize];
    let along = flat[(corner + 1) % 3] - flat[corner];
    let base = along.y.atan2(along.x) + own * (1.0 - scale) / 2.0;
    let place = |(point, turn): (u32, f64)| {
        let (sin, cos) = (base + turn * scale).sin_cos();
        let length = (mesh.points[point as usize] - middle).norm();
        (point, flat[corner] + Vector2::new(cos, sin) * length)
    };
    around.into_iter().map(place).collect()
}

/// Returns the points around a corner of a triangle, to the left or to the right, each with the angle
/// to it from the triangle's first edge on that side; true if they come round to that edge.
fn spokes(mesh: &Topology, start: [usize; 2], is_left: bool) -> (Vec<(u32, f64)>, bool) {
    let [mut triangle, mut corner] = start;
    let middle = mesh.triangles[triangle][corner];
    let side = |point: u32| mesh.points[point as usize] - mesh.points[middle as usize];
    let ends = |triangle: usize, corner: usize| {
        let corners = mesh.triangles[triangle];
        let [next, last] = [1, 2].map(|step| corners[(corner + step) % 3]);
        if is_left { [next, last] } else { [last, next] }
    };
    let [first, _] = ends(triangle, corner);
    let (mut around, mut turn) = (Vec::new(), 0.0);
    while around.len() < SPOKES_MAX {
        let [from, to] = ends(triangle, corner);
        turn += side(from).angle(&side(to));
        around.push((to, turn));
        if to == first {
            return (around, true);
        }
        let edge = if is_left { (corner + 2) % 3 } else { corner };
        triangle = mesh.neighbours[triangle][edge] as usize;
        let corners = mesh.triangles.get(triangle);
        let next = corners.and_then(|corners| corners.iter().position(|point| *point == middle));
        let Some(next) = next else { break };
        corner = next;
    }
    (around, false)
}

/// A triangle unfolded beside the start: the first end of an edge is the origin, the other lies on the
/// x axis, the corner above it and the start below it.
struct Unfolded {
    /// Length of the edge.
    length: f64,
    corner: [f64; 2],
}

/// Where the corner is seen from the start.
struct Sight {
    distance: f64,
    /// Angle between the ends, and from the first to the corner.
    all_rad: f64,
    part_rad: f64,
    /// True if the straight way to the corner crosses the edge.
    is_across: bool,
}

impl Unfolded {
    /// Looks from the place that is as far from the ends as they are from the start.
    fn sight(&self, near: f64, far: f64) -> Option<Sight> {
        let length = self.length;
        let x = (length * length + near * near - far * far) / (2.0 * length);
        let square = near * near - x * x;
        if square.is_nan() || square < 0.0 || near <= 0.0 || far <= 0.0 {
            return None;
        }
        let y = -square.sqrt();
        let slack = length * BESIDE;
        let [right, up] = [self.corner[0] - x, self.corner[1] - y];
        // Seen from the start, the edge runs clockwise.
        let clockwise = |[to_x, to_y]: [f64; 2]| {
            let (from_x, from_y) = (-x, -y);
            (from_y * to_x - from_x * to_y).atan2(from_x * to_x + from_y * to_y)
        };
        Some(Sight {
            distance: right.hypot(up),
            all_rad: clockwise([length - x, -y]),
            part_rad: clockwise([right, up]),
            is_across: up > 0.0 && (-slack..=length + slack).contains(&(x - right * y / up)),
        })
    }
}

/// Unfolds a triangle beside the start: from the vector `along` an edge, that to the third corner,
/// and the values at the edge's ends. Returns the values of the corner, and the width of the edge as
/// seen from the start; `None` if the straight way to the corner misses the edge.
///
/// Where the surface is curved, geodesics spread less or more than on a plane. So the triangle is
/// looked at from the place at which those through the ends would meet, which is nearer or farther
/// than the start.
fn unfold(
    along: Vector3<f64>,
    across: Vector3<f64>,
    [from, to]: [PolarPoint; 2],
) -> Option<(PolarPoint, f64)> {
    let length = along.norm();
    if !to.distance_m.is_finite() || !from.distance_m.is_finite() || length <= 0.0 {
        return None;
    }
    let unfolded = Unfolded {
        length,
        corner: [
            across.dot(&along) / length,
            across.cross(&along).norm() / length,
        ],
    };
    let (near, far) = (from.distance_m, to.distance_m);
    let flat = unfolded.sight(near, far)?;
    let turn = (from.angle_rad - to.angle_rad + FRAC_PI_2).rem_euclid(TAU) - FRAC_PI_2;
    let mean = (near + far) / 2.0;
    let known = (from.spread + to.spread) / 2.0;
    let spread = if turn > 0.0 && flat.all_rad > 0.0 {
        let weight = (flat.all_rad * mean / length).min(1.0).powi(2) * SPREAD_WEIGHT;
        let seen = (flat.all_rad / turn).clamp(SPREAD[0], SPREAD[1]);
        known + (seen - known) * weight
    } else {
        known
    };
    let behind = match mean > NEAR_EDGES * length {
        true => mean * (1.0 - 1.0 / (2.0 * spread - 1.0)),
        false => 0.0,
    };
    let sight = unfolded.sight(near - behind, far - behind)?;
    if !sight.is_across {
        return None;
    }
    let share = match sight.all_rad > 0.0 {
        true => sight.part_rad / sight.all_rad,
        false => 0.5,
    };
    let polar = PolarPoint {
        distance_m: sight.distance + behind,
        angle_rad: from.angle_rad - share * turn,
        spread,
    };
    Some((polar, flat.all_rad * mean))
}
