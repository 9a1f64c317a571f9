//! Makes one point of points that lie together, and drops triangles that say nothing.

use std::collections::HashMap;
use std::collections::HashSet;

use nalgebra::Point3;

use super::FilePoints;

/// Points nearer than this to each other, along each axis, are one.
pub(crate) const WELD_M: f64 = 1e-6;

/// Side of the cells by which points are found: few points lie near two cells.
const CELL_M: f64 = 16.0 * WELD_M;

/// A mesh whose points are all different.
#[derive(Debug, Default)]
pub(crate) struct WeldedMesh {
    pub(crate) points: Vec<Point3<f64>>,
    pub(crate) triangles: Vec<[u32; 3]>,
    /// Points of the file that were made one with another.
    pub(crate) welded: usize,
    /// Triangles that came twice.
    pub(crate) repeated: usize,
    /// Triangles that had two equal corners.
    pub(crate) collapsed: usize,
}

/// Welds a file's points, scaled to metres.
pub(crate) fn weld(file: &FilePoints, unit_m: f64) -> WeldedMesh {
    let mut mesh = WeldedMesh::default();
    let mut cells: HashMap<[i64; 3], Vec<u32>> = HashMap::new();
    let mut indices = Vec::with_capacity(file.points.len());
    for point in &file.points {
        let point = point * unit_m;
        let found = near(&point, &cells, &mesh.points);
        let index = found.unwrap_or_else(|| {
            let index = to_index(mesh.points.len());
            cells.entry(cell(&point, 0.0)).or_default().push(index);
            mesh.points.push(point);
            index
        });
        mesh.welded += usize::from(found.is_some());
        indices.push(index);
    }
    add_triangles(&mut mesh, file, &indices);
    mesh
}

fn add_triangles(mesh: &mut WeldedMesh, file: &FilePoints, indices: &[u32]) {
    let mut known: HashSet<[u32; 3]> = HashSet::new();
    for corners in &file.triangles {
        let index = |corner: u32| indices.get(corner as usize).copied().unwrap_or(corner);
        let corners = corners.map(index);
        let mut sorted = corners;
        sorted.sort_unstable();
        let [low, middle, high] = sorted;
        if low == middle || middle == high {
            mesh.collapsed += 1;
        } else if known.insert(sorted) {
            mesh.triangles.push(corners);
        } else {
            mesh.repeated += 1;
        }
    }
}

/// Returns a known point that lies together with this one.
fn near(
    point: &Point3<f64>,
    cells: &HashMap<[i64; 3], Vec<u32>>,
    points: &[Point3<f64>],
) -> Option<u32> {
    let (low, high) = (cell(point, -WELD_M), cell(point, WELD_M));
    let [xs, ys, zs] = [0, 1, 2].map(|axis: usize| {
        let bound = |cell: [i64; 3]| cell.get(axis).copied().unwrap_or_default();
        bound(low)..=bound(high)
    });
    let cells_near = xs.flat_map(|x| ys.clone().map(move |y| (x, y)));
    let mut cells_near = cells_near.flat_map(|(x, y)| zs.clone().map(move |z| [x, y, z]));
    cells_near.find_map(|cell| {
        let mut known = cells.get(&cell)?.iter().copied();
        known.find(|index| {
            let other = points.get(*index as usize);
            other.is_some_and(|other| (other - point).amax() <= WELD_M)
        })
    })
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn cell(point: &Point3<f64>, by_m: f64) -> [i64; 3] {
    let coordinates: [f64; 3] = point.coords.into();
    coordinates.map(|metres| ((metres + by_m) / CELL_M).floor() as i64)
}

#[expect(clippy::cast_possible_truncation, reason = "a file has fewer points")]
pub(crate) fn to_index(number: usize) -> u32 {
    number as u32
}
