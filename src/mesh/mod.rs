//! Surfaces of triangles: meshes are read, cleaned, searched for nearest points, and laid out flat
//! around a point by their geodesics.
//!
//! Mathematics only: no scenes, no arms, no time. Points are metres in the mesh's own frame; places
//! on a [`MeshPatch`] are millimetres.

mod anchor;
mod clean;
mod file_points;
mod geodesic_polar;
mod hole_fill;
mod mesh_error;
mod obj;
mod patch;
mod ply;
mod scan;
mod scan_bins;
mod scan_fit;
mod self_crossing;
mod smooth_sheet;
mod stl;
mod topology;
mod triangle_tree;
mod weld;

pub use anchor::MeshAnchor;
pub use clean::{CleanMesh, MeshReport};
pub use file_points::{FilePoints, read};
pub use mesh_error::MeshError;
pub use patch::{MeshPatch, PatchPoint, PatchProjection};
pub use scan::ScanReport;

/// Most bytes of a file.
pub const BYTES_MAX: u64 = 64 << 20;

/// Most triangles of a mesh.
pub const TRIANGLES_MAX: usize = 100_000;

/// Most points of a file: those of a depth camera with a million pixels.
pub const POINTS_MAX: usize = 1_000_000;

#[cfg(test)]
mod test_shapes;
#[cfg(test)]
mod tests;
