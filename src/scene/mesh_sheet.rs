//! A sheet on a mesh, and the meshes of a library's scenes.

use std::sync::{Arc, Mutex};

use nalgebra::{Isometry3, Point3, Unit, Vector3};

use super::SceneError;
use super::file::{MeshUnit, SceneFile, SurfaceFile};
use super::library::{SceneLibrary, hash_part, is_plain_name, unknown};
use super::surface::{SheetShape, SurfacePoint, SurfaceProjection};
use base::lock::MutexExt;
use base::units::Finite;
use config::toml::FileError;
use mesh::{BYTES_MAX, CleanMesh, MeshAnchor, MeshError, MeshPatch};

/// A mesh in the frame of a sheet.
#[derive(Clone, Debug)]
pub(super) struct MeshSheet {
    patch: Arc<MeshPatch>,
    /// Pose of the sheet in the arm's base frame.
    frame: Isometry3<f64>,
}

impl MeshSheet {
    pub(super) const fn new(patch: Arc<MeshPatch>, frame: Isometry3<f64>) -> Self {
        Self { patch, frame }
    }
}

impl SheetShape for MeshSheet {
    fn at(&self, at_mm: [f64; 2]) -> SurfacePoint {
        let at = self.patch.at(at_mm);
        let turned = |axis: Unit<Vector3<f64>>| Unit::new_unchecked(self.frame.rotation * *axis);
        SurfacePoint {
            point_m: self.frame * at.point_m,
            normal: turned(at.normal),
            x: turned(at.x),
            hold: turned(at.hold),
        }
    }

    fn project(&self, point_m: &Point3<f64>) -> SurfaceProjection {
        let projected = self.patch.project_from(&self.frame, point_m);
        SurfaceProjection {
            at_mm: projected.at_mm,
            height_mm: projected.height_mm,
            obstacle_mm: Some(projected.obstacle_mm),
        }
    }

    fn is_on(&self, at_mm: [f64; 2]) -> bool {
        self.patch.is_on(at_mm)
    }

    fn frame(&self) -> Option<&Isometry3<f64>> {
        Some(&self.frame)
    }

    fn in_frame(&self, frame: &Isometry3<f64>) -> Option<Arc<dyn SheetShape>> {
        Some(Arc::new(Self::new(Arc::clone(&self.patch), *frame)))
    }

    fn uncertainty_mm(&self) -> f64 {
        self.patch.uncertainty_mm()
    }
}

/// Laid out meshes of the last scenes, by the hash of all that they depend on: every call loads its
/// scene.
pub(super) type MeshCache = Arc<Mutex<Vec<([u8; 32], Arc<MeshPatch>)>>>;

/// Number of meshes that are kept.
const KEPT: usize = 4;

impl SceneLibrary {
    /// Returns the mesh of a scene, laid out around the sheet's middle; `None` for a scene without one.
    pub(super) fn mesh(
        &self,
        scene: &str,
        file: &SceneFile,
        hash: &mut blake3::Hasher,
    ) -> Result<Option<Arc<MeshPatch>>, SceneError> {
        let Some(surface) = &file.surface else {
            return Ok(None);
        };
        let bytes = self.mesh_bytes(scene, &surface.mesh)?;
        hash_part(hash, &bytes);
        let key = key(surface, file.sheet.size_mm, &bytes);
        let kept = self.meshes.locked();
        if let Some((_, patch)) = kept.iter().find(|(other, _)| *other == key) {
            return Ok(Some(Arc::clone(patch)));
        }
        drop(kept);
        let size_mm = file.sheet.size_mm.map(Finite::get);
        let patch = lay_out(surface, size_mm, &bytes).map_err(|source| SceneError::Mesh {
            file: format!("{scene}: mesh {}", surface.mesh),
            source,
        })?;
        let patch = Arc::new(patch);
        let mut kept = self.meshes.locked();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((key, Arc::clone(&patch)));
        Ok(Some(patch))
    }

    fn mesh_bytes(&self, scene: &str, name: &str) -> Result<Vec<u8>, SceneError> {
        if !is_plain_name(name) {
            let why = format!("`surface.mesh` is `{name}`; it must be a file name without folders");
            return Err(FileError::single(scene, why).into());
        }
        for folder in ["", FOLDER] {
            if let Some(bytes) = self.bytes_at_most(&format!("{folder}{name}"), BYTES_MAX)? {
                return Ok(bytes);
            }
        }
        let known = self.files(FOLDER).into_iter();
        Err(unknown("mesh", name, known.collect()))
    }
}

/// Folder of meshes below that of the scenes.
const FOLDER: &str = "meshes/";

/// Distance around a sheet in which a scan is made a surface.
const SCANNED_BEYOND_M: f64 = 0.1;

/// Hashes all that a laid out mesh depends on.
fn key(surface: &SurfaceFile, size_mm: [Finite; 2], bytes: &[u8]) -> [u8; 32] {
    let mut hash = blake3::Hasher::new();
    let place = format!("{surface:?} {size_mm:?}");
    hash_part(&mut hash, place.as_bytes());
    hash_part(&mut hash, bytes);
    *hash.finalize().as_bytes()
}

fn lay_out(surface: &SurfaceFile, size_mm: [f64; 2], bytes: &[u8]) -> Result<MeshPatch, MeshError> {
    let read = mesh::read(&surface.mesh, bytes)?;
    let unit_m = match surface.unit {
        MeshUnit::M => 1.0,
        MeshUnit::Mm => 1e-3,
    };
    let (file, unit_m, scan) = match read.is_scan() {
        true => {
            let (made, report) = read.scanned(unit_m, scanned_around_m(surface, size_mm))?;
            (made, 1.0, Some(report))
        }
        false => (read, unit_m, None),
    };
    let middle_mm = size_mm.map(|side| side / 2.0);
    let anchor = match surface.point_m {
        Some(point_m) => MeshAnchor::Nearest(Point3::from(point_m.map(Finite::get))),
        None => MeshAnchor::Above {
            xy_m: middle_mm.map(|mm| mm / 1e3),
        },
    };
    let direction = surface.direction.map(|axis| axis.map(Finite::get));
    let right = direction.map_or_else(Vector3::x, Vector3::from);
    let clean = CleanMesh::new(&file, unit_m, &anchor)?;
    let patch = MeshPatch::new(clean, &right, [[0.0; 2], size_mm])?;
    Ok(patch.known_to(scan, surface.uncertainty_mm.get()))
}

/// Returns the rectangle of a scan in which a surface is made: a camera sees the room too.
fn scanned_around_m(surface: &SurfaceFile, size_mm: [f64; 2]) -> [[f64; 2]; 2] {
    let half_m = size_mm.map(|side_mm| side_mm / 2e3);
    let Some([x_m, y_m, _]) = surface.point_m else {
        let [right_m, upper_m] = size_mm.map(|side_mm| side_mm / 1e3 + SCANNED_BEYOND_M);
        return [[-SCANNED_BEYOND_M; 2], [right_m, upper_m]];
    };
    let reach_m = half_m[0].hypot(half_m[1]) + SCANNED_BEYOND_M;
    let middle_m = [x_m, y_m].map(Finite::get);
    [-reach_m, reach_m].map(|by_m| middle_m.map(|at_m| at_m + by_m))
}
