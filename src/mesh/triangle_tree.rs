//! Finds the triangle nearest to a point by a tree of boxes.
#![expect(
    clippy::indexing_slicing,
    reason = "nodes name nodes and triangles of the same tree"
)]

use nalgebra::Point3;

use super::weld::to_index;

/// Most triangles of a leaf.
const LEAF: usize = 4;

/// A tree of boxes around triangles.
#[derive(Clone, Debug)]
pub(crate) struct TriangleTree {
    nodes: Vec<Node>,
    /// Corners in the order of the leaves, and each triangle's index in the mesh.
    corners: Vec<([Point3<f64>; 3], u32)>,
}

#[derive(Clone, Debug)]
struct Node {
    bounds: Bounds,
    /// First child, with the other behind it, or first triangle of a leaf.
    first: u32,
    /// Number of triangles of a leaf; 0 otherwise.
    count: u32,
}

/// A box along the axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) low: [f64; 3],
    pub(crate) high: [f64; 3],
}

/// The point of a triangle that is nearest to another point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nearest {
    pub(crate) triangle: usize,
    /// Weights of its corners; exactly 0 for those that it does not depend on.
    pub(crate) weights: [f64; 3],
    pub(crate) point: Point3<f64>,
    pub(crate) square: f64,
}

impl Bounds {
    const EMPTY: Self = Self {
        low: [f64::INFINITY; 3],
        high: [f64::NEG_INFINITY; 3],
    };

    pub(crate) fn of(corners: &[Point3<f64>; 3]) -> Self {
        let mut bounds = Self::EMPTY;
        for corner in corners {
            for axis in 0..3 {
                bounds.low[axis] = bounds.low[axis].min(corner[axis]);
                bounds.high[axis] = bounds.high[axis].max(corner[axis]);
            }
        }
        bounds
    }

    fn join(&mut self, other: &Self) {
        for axis in 0..3 {
            self.low[axis] = self.low[axis].min(other.low[axis]);
            self.high[axis] = self.high[axis].max(other.high[axis]);
        }
    }

    /// Returns the longest side and its axis.
    pub(crate) fn longest(&self) -> (f64, usize) {
        let sides = [0, 1, 2].map(|axis| (self.high[axis] - self.low[axis], axis));
        let longest = sides.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        longest.unwrap_or((0.0, 0))
    }

    fn square_to(&self, point: &Point3<f64>) -> f64 {
        let mut square = 0.0;
        for axis in 0..3 {
            let outside = (self.low[axis] - point[axis])
                .max(point[axis] - self.high[axis])
                .max(0.0);
            square += outside * outside;
        }
        square
    }

    fn overlaps(&self, other: &Self) -> bool {
        (0..3).all(|axis| self.low[axis] <= other.high[axis] && other.low[axis] <= self.high[axis])
    }
}

impl TriangleTree {
    /// Builds a tree of triangles, each with its index in the mesh.
    pub(crate) fn new(mut corners: Vec<([Point3<f64>; 3], u32)>) -> Self {
        let mut nodes = vec![Node {
            bounds: Bounds::EMPTY,
            first: 0,
            count: 0,
        }];
        let mut open = vec![(0, 0..corners.len())];
        while let Some((node, range)) = open.pop() {
            let part = &mut corners[range.clone()];
            let mut bounds = Bounds::EMPTY;
            for (triangle, _) in part.iter() {
                bounds.join(&Bounds::of(triangle));
            }
            nodes[node].bounds = bounds;
            if part.len() <= LEAF {
                nodes[node].first = to_index(range.start);
                nodes[node].count = to_index(part.len());
                continue;
            }
            let (_, axis) = bounds.longest();
            let middle = part.len() / 2;
            let key = |(t, _): &([Point3<f64>; 3], u32)| t[0][axis] + t[1][axis] + t[2][axis];
            part.select_nth_unstable_by(middle, |a, b| key(a).total_cmp(&key(b)));
            let first = nodes.len();
            nodes[node].first = to_index(first);
            for _ in 0..2 {
                nodes.push(Node {
                    bounds: Bounds::EMPTY,
                    first: 0,
                    count: 0,
                });
            }
            let split = range.start + middle;
            open.push((first, range.start..split));
            open.push((first + 1, split..range.end));
        }
        Self { nodes, corners }
    }

    /// Returns the nearest point; `None` if there are no triangles.
    pub(crate) fn nearest(&self, point: &Point3<f64>) -> Option<Nearest> {
        let mut best: Option<Nearest> = None;
        let mut open: Vec<(u32, f64)> = Vec::with_capacity(64);
        open.push((0, 0.0));
        while let Some((index, square)) = open.pop() {
            if best.as_ref().is_some_and(|best| square >= best.square) {
                continue;
            }
            let node = &self.nodes[index as usize];
            if node.count > 0 {
                let first = node.first as usize;
                for (corners, triangle) in &self.corners[first..first + node.count as usize] {
                    let (weights, at) = nearest_on(corners, point);
                    let square = (at - point).norm_squared();
                    if best.as_ref().is_none_or(|best| square < best.square) {
                        best = Some(Nearest {
                            triangle: *triangle as usize,
                            weights,
                            point: at,
                            square,
                        });
                    }
                }
            } else if !self.corners.is_empty() {
                let to = |child: u32| (child, self.nodes[child as usize].bounds.square_to(point));
                let (one, other) = (to(node.first), to(node.first + 1));
                // The nearer one is looked at first.
                let ordered = if one.1 < other.1 {
                    [other, one]
                } else {
                    [one, other]
                };
                open.extend(ordered);
            }
        }
        best
    }

    /// Calls with every triangle whose box overlaps another box.
    pub(crate) fn overlapping(
        &self,
        bounds: &Bounds,
        mut found: impl FnMut(usize, &[Point3<f64>; 3]),
    ) {
        let mut open = vec![0_u32];
        while let Some(index) = open.pop() {
            let node = &self.nodes[index as usize];
            if self.corners.is_empty() || !node.bounds.overlaps(bounds) {
                continue;
            }
            if node.count == 0 {
                open.extend([node.first, node.first + 1]);
                continue;
            }
            let first = node.first as usize;
            for (corners, triangle) in &self.corners[first..first + node.count as usize] {
                if Bounds::of(corners).overlaps(bounds) {
                    found(*triangle as usize, corners);
                }
            }
        }
    }
}

/// Returns the point of a triangle nearest to another: by its corners' weights, and itself.
/// (Ericson, Real-Time Collision Detection, 5.1.5.)
pub(crate) fn nearest_on([a, b, c]: &[Point3<f64>; 3], p: &Point3<f64>) -> ([f64; 3], Point3<f64>) {
    let (ab, ac, ap) = (b - a, c - a, p - a);
    let (d1, d2) = (ab.dot(&ap), ac.dot(&ap));
    if d1 <= 0.0 && d2 <= 0.0 {
        return ([1.0, 0.0, 0.0], *a);
    }
    let bp = p - b;
    let (d3, d4) = (ab.dot(&bp), ac.dot(&bp));
    if d3 >= 0.0 && d4 <= d3 {
        return ([0.0, 1.0, 0.0], *b);
    }
    let vc = d1 * d4 - d3 * d2;
    if vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0 {
        let t = ratio(d1, d1 - d3);
        return ([1.0 - t, t, 0.0], a + ab * t);
    }
    let cp = p - c;
    let (d5, d6) = (ab.dot(&cp), ac.dot(&cp));
    if d6 >= 0.0 && d5 <= d6 {
        return ([0.0, 0.0, 1.0], *c);
    }
    let vb = d5 * d2 - d1 * d6;
    if vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0 {
        let t = ratio(d2, d2 - d6);
        return ([1.0 - t, 0.0, t], a + ac * t);
    }
    let va = d3 * d6 - d5 * d4;
    if va <= 0.0 && d4 - d3 >= 0.0 && d5 - d6 >= 0.0 {
        let t = ratio(d4 - d3, (d4 - d3) + (d5 - d6));
        return ([0.0, 1.0 - t, t], b + (c - b) * t);
    }
    let sum = va + vb + vc;
    let (v, w) = (ratio(vb, sum), ratio(vc, sum));
    ([1.0 - v - w, v, w], a + ab * v + ac * w)
}

/// Returns a share; 0 of nothing, on a triangle without an area.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole.abs() > 0.0 { part / whole } else { 0.0 }
}
