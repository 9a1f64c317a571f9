//! Fills small holes, such as a scanner leaves.
#![expect(clippy::indexing_slicing, reason = "loops name points of the mesh")]

use nalgebra::{Point3, Vector3};

use super::MeshError;
use super::topology::Topology;
use super::weld::to_index;

/// Longest way around a hole that is filled; longer ones are the surface's edge.
pub(crate) const HOLE_M: f64 = 0.01;

/// Fills every hole that is short around by a fan about its middle. Returns the mesh and the number
/// of holes.
pub(crate) fn fill_holes(mesh: Topology) -> Result<(Topology, usize), MeshError> {
    let loops = mesh.edge_loops().into_iter();
    let small: Vec<Vec<u32>> = loops
        .filter(|points| points.len() > 2 && length_m(&mesh, points) <= HOLE_M)
        .collect();
    if small.is_empty() {
        return Ok((mesh, 0));
    }
    let Topology {
        mut points,
        mut triangles,
        ..
    } = mesh;
    for hole in &small {
        let corners = hole.iter().map(|point| points[*point as usize].coords);
        let middle: Vector3<f64> = corners.sum::<Vector3<f64>>() / hole.len() as f64;
        let index = to_index(points.len());
        points.push(Point3::from(middle));
        let pairs = hole.iter().zip(hole.iter().cycle().skip(1));
        triangles.extend(pairs.map(|(from, to)| [*from, *to, index]));
    }
    Ok((Topology::new(points, triangles)?, small.len()))
}

fn length_m(mesh: &Topology, hole: &[u32]) -> f64 {
    let pairs = hole.iter().zip(hole.iter().cycle().skip(1));
    pairs
        .map(|(from, to)| (mesh.points[*to as usize] - mesh.points[*from as usize]).norm())
        .sum()
}
