//! Makes a clean surface of a file's points: one piece, one side out, without cracks.

use std::fmt;

use nalgebra::Point3;

use super::anchor::Seed;
use super::hole_fill::{HOLE_M, fill_holes};
use super::self_crossing::crossing;
use super::topology::Topology;
use super::triangle_tree::TriangleTree;
use super::weld::{WELD_M, to_index, weld};
use super::{FilePoints, MeshAnchor, MeshError};

/// One in this many triangles may have no area.
pub(crate) const FLAT_SHARE: usize = 20;

/// Twice the area below which a triangle has none.
const FLAT_M2: f64 = 1e-14;

/// Shortest and longest side of a mesh.
const SIZE_M: [f64; 2] = [0.005, 10.0];

/// Least cosine between the normal of an open mesh at the design's middle and the sheet's.
const SIDE_COSINE: f64 = 0.1;

/// A surface of triangles: one piece with its outer side known.
#[derive(Clone)]
pub struct CleanMesh {
    pub(crate) mesh: Topology,
    pub(crate) tree: TriangleTree,
    pub(crate) seed: Seed,
    /// Changes against the file.
    pub report: MeshReport,
}

/// Numbers of changes against the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeshReport {
    /// Triangles of the surface.
    pub triangles: usize,
    /// Points that were made one with another.
    pub welded: usize,
    /// Triangles without an area, or that came twice.
    pub dropped: usize,
    /// Triangles that were turned over.
    pub turned: usize,
    /// Holes that were filled.
    pub filled: usize,
    /// Triangles of other pieces.
    pub left_out: usize,
}

impl fmt::Debug for CleanMesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CleanMesh({:?})", self.report)
    }
}

impl CleanMesh {
    /// Cleans a mesh and finds the design's middle on it.
    ///
    /// # Errors
    /// A defect that is beyond the stated bounds, by its place.
    pub fn new(file: &FilePoints, unit_m: f64, anchor: &MeshAnchor) -> Result<Self, MeshError> {
        let welded = weld(file, unit_m);
        check_size(&welded.points)?;
        let all = file.triangles.len();
        let whole = Topology::new(welded.points, welded.triangles)?;
        let triangles = 0..whole.triangles.len();
        let thin = triangles.filter(|triangle| whole.area_vector(*triangle).norm() < FLAT_M2);
        let flat = thin.count() + welded.collapsed;
        if flat * FLAT_SHARE > all {
            return Err(MeshError::Flat { flat, all });
        }
        let seed = anchor.find(&whole)?;
        let piece = whole.piece_of(seed.triangle)?;
        let (mesh, filled) = fill_holes(piece.mesh)?;
        let mut clean = Self {
            report: MeshReport {
                triangles: mesh.triangles.len(),
                welded: welded.welded,
                dropped: welded.collapsed + welded.repeated,
                turned: piece.turned,
                filled,
                left_out: piece.left_out,
            },
            tree: mesh.tree(),
            mesh,
            seed: Seed {
                triangle: piece.seed,
                ..seed
            },
        };
        if let Some(at_m) = crossing(&clean.mesh, &clean.tree) {
            return Err(MeshError::Crosses { at_m });
        }
        clean.face_outwards()?;
        Ok(clean)
    }

    /// Turns the outer side out: of a closed mesh the outer one, of an open one that which faces the
    /// sheet's normal.
    fn face_outwards(&mut self) -> Result<(), MeshError> {
        let is_outwards = if self.mesh.is_closed() {
            self.mesh.volume() > 0.0
        } else {
            let normal = self.mesh.area_vector(self.seed.triangle).normalize();
            if normal.z.is_nan() || normal.z.abs() < SIDE_COSINE {
                return Err(MeshError::UnknownSide {
                    at_m: self.seed.point,
                });
            }
            normal.z > 0.0
        };
        if !is_outwards {
            self.mesh.turn_over();
            let kept = self.report.triangles.saturating_sub(self.report.turned);
            self.report.turned = kept;
        }
        Ok(())
    }
}

impl Topology {
    pub(crate) fn tree(&self) -> TriangleTree {
        let all = 0..self.triangles.len();
        TriangleTree::new(all.map(|t| (self.corners(t), to_index(t))).collect())
    }
}

fn check_size(points: &[Point3<f64>]) -> Result<(), MeshError> {
    let axes = [0, 1, 2].map(|axis: usize| {
        let along = points.iter().filter_map(|point| point.coords.get(axis));
        let low = along.clone().copied().fold(f64::INFINITY, f64::min);
        along.copied().fold(f64::NEG_INFINITY, f64::max) - low
    });
    let size_m = axes.into_iter().fold(0.0, f64::max);
    match (SIZE_M[0]..=SIZE_M[1]).contains(&size_m) {
        true => Ok(()),
        false => Err(MeshError::Size { size_m }),
    }
}

impl MeshReport {
    /// Returns a line for each kind of change.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let (weld_mm, hole_mm) = (WELD_M * 1e3, HOLE_M * 1e3);
        let counted = [
            (self.welded, format!("points within {weld_mm} mm of another point were merged with it")),
            (self.dropped, "triangles were dropped, because they have no area or are duplicates".to_owned()),
            (self.turned, "triangles were turned, so that their outer sides face out".to_owned()),
            (self.filled, format!("holes with an edge of at most {hole_mm} mm were filled")),
            (
                self.left_out,
                "triangles of other pieces were left out, so the arm does not avoid them. Next: add `[[keep_outs]]` for other things that stand there"
                    .to_owned(),
            ),
        ];
        let said = counted.into_iter().filter(|(count, _)| *count > 0);
        said.map(|(count, words)| format!("{count} {words}"))
            .collect()
    }
}
