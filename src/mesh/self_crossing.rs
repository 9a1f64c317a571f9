//! Finds places where a mesh crosses itself: there its sides cannot be told.
#![expect(clippy::indexing_slicing, reason = "corners are three")]

use nalgebra::Point3;

use super::topology::Topology;
use super::triangle_tree::{Bounds, TriangleTree};
use super::weld::WELD_M;

/// Returns a place where two triangles cross.
pub(crate) fn crossing(mesh: &Topology, tree: &TriangleTree) -> Option<Point3<f64>> {
    (0..mesh.triangles.len()).find_map(|triangle| {
        let corners = mesh.corners(triangle);
        let mut place = None;
        tree.overlapping(&Bounds::of(&corners), |other, other_corners| {
            // The two share corners where they meet; an edge that ends there does not cross.
            if other > triangle && place.is_none() && !mesh.touches(triangle, other) {
                place = crosses(&corners, other_corners);
            }
        });
        place
    })
}

/// Returns a place where an edge of either goes through the other.
fn crosses(one: &[Point3<f64>; 3], other: &[Point3<f64>; 3]) -> Option<Point3<f64>> {
    let through = |edges: &[Point3<f64>; 3], triangle: &[Point3<f64>; 3]| {
        (0..3).find_map(|edge| pierces(&edges[edge], &edges[(edge + 1) % 3], triangle))
    };
    through(one, other).or_else(|| through(other, one))
}

/// Returns where an edge goes through a triangle: from clearly on one side to clearly on the other,
/// within the triangle.
fn pierces(
    from: &Point3<f64>,
    to: &Point3<f64>,
    [a, b, c]: &[Point3<f64>; 3],
) -> Option<Point3<f64>> {
    let across = (b - a).cross(&(c - a));
    let normal = across.try_normalize(1e-18)?;
    let (above, below) = ((from - a).dot(&normal), (to - a).dot(&normal));
    if above * below >= 0.0 || above.abs().min(below.abs()) < WELD_M {
        return None;
    }
    let at = from + (to - from) * (above / (above - below));
    let square = across.norm_squared();
    let weights = [[b, c], [c, a], [a, b]]
        .map(|[from, to]| (to - from).cross(&(at - from)).dot(&across) / square);
    weights.iter().all(|weight| *weight > -1e-9).then_some(at)
}
