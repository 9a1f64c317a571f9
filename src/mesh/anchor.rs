//! The place of a design on a mesh.

use nalgebra::Point3;

use super::MeshError;
use super::topology::Topology;

/// The place of a design on a mesh, in the mesh's frame.
#[derive(Clone, Debug, PartialEq)]
pub enum MeshAnchor {
    /// Where the line along z through a point of the plane x, y meets the mesh, the highest of them.
    Above {
        /// The point, in metres.
        xy_m: [f64; 2],
    },
    /// The point of the mesh nearest to a point.
    Nearest(Point3<f64>),
}

/// A point of a mesh.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed {
    pub(crate) triangle: usize,
    pub(crate) point: Point3<f64>,
}

/// Largest distance of a named point from the mesh.
const OFF_M: f64 = 0.005;

impl MeshAnchor {
    /// Finds the point on a mesh.
    pub(crate) fn find(&self, mesh: &Topology) -> Result<Seed, MeshError> {
        match self {
            Self::Above { xy_m } => highest(mesh, *xy_m).ok_or(MeshError::Misses {
                x_mm: (xy_m[0] * 1e6).round() / 1e3,
                y_mm: (xy_m[1] * 1e6).round() / 1e3,
            }),
            Self::Nearest(point) => {
                let tree = mesh.tree();
                let nearest = tree.nearest(point);
                let nearest = nearest.ok_or(MeshError::NoTriangle { points: 0 })?;
                let off_m = nearest.square.sqrt();
                if off_m > OFF_M {
                    return Err(MeshError::OffMesh {
                        off_mm: (off_m * 1e5).round() / 1e2,
                        limit_mm: OFF_M * 1e3,
                        nearest_m: nearest.point,
                    });
                }
                Ok(Seed {
                    triangle: nearest.triangle,
                    point: nearest.point,
                })
            }
        }
    }
}

/// Returns the highest point of a mesh at a place of the plane.
fn highest(mesh: &Topology, [x, y]: [f64; 2]) -> Option<Seed> {
    let meets = |triangle: usize| {
        let [a, b, c] = mesh.corners(triangle);
        let turn = |p: &Point3<f64>, q: &Point3<f64>| (p.x - x) * (q.y - y) - (p.y - y) * (q.x - x);
        let (wa, wb, wc) = (turn(&b, &c), turn(&c, &a), turn(&a, &b));
        let sum = wa + wb + wc;
        let is_inside = [wa, wb, wc].iter().all(|weight| weight * sum >= 0.0);
        (is_inside && sum.abs() > 1e-18).then(|| Seed {
            triangle,
            point: Point3::new(x, y, (wa * a.z + wb * b.z + wc * c.z) / sum),
        })
    };
    let met = (0..mesh.triangles.len()).filter_map(meets);
    met.max_by(|a, b| a.point.z.total_cmp(&b.point.z))
}
