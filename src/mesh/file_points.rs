//! Reads the points and triangles of a file. What a file claims is never allocated: every row is
//! read before it is kept.

use nalgebra::Point3;

use super::scan::{POINTS_MIN, surface};
use super::{BYTES_MAX, MeshError, POINTS_MAX, ScanReport, TRIANGLES_MAX, obj, ply, stl};

/// Points and triangles as a file has them, in the file's unit.
#[derive(Clone, Debug, Default)]
pub struct FilePoints {
    pub(crate) points: Vec<Point3<f64>>,
    pub(crate) triangles: Vec<[u32; 3]>,
    /// Points with a number that is not finite, such as a pixel without a depth, and the first of them.
    pub(crate) unseen: usize,
    first_unseen: Option<usize>,
}

/// Reads a PLY, STL or OBJ file; the end of its name says which.
///
/// # Errors
/// A defect of the file, by its place.
pub fn read(name: &str, bytes: &[u8]) -> Result<FilePoints, MeshError> {
    let length = bytes.len() as u64;
    if length > BYTES_MAX {
        return Err(MeshError::Bytes { bytes: length });
    }
    let (_, ending) = name.rsplit_once('.').ok_or(MeshError::Format)?;
    let mut read = match ending.to_ascii_lowercase().as_str() {
        "ply" => ply::read(bytes)?,
        "stl" => stl::read(bytes)?,
        "obj" => obj::read(bytes)?,
        _ => return Err(MeshError::Format),
    };
    let points = read.points.len() - read.unseen;
    let is_scan = read.triangles.is_empty() && points >= POINTS_MIN;
    match (read.first_unseen, is_scan) {
        (Some(number), false) => Err(MeshError::NotFinite { number }),
        (None, false) if read.triangles.is_empty() => Err(MeshError::NoTriangle { points }),
        _ => {
            if is_scan {
                read.points.retain(is_finite);
            }
            Ok(read)
        }
    }
}

impl FilePoints {
    /// Returns whether it has points alone.
    #[must_use]
    pub fn is_scan(&self) -> bool {
        self.triangles.is_empty()
    }

    /// Makes a surface of points alone within a rectangle, in metres, as it is seen against z.
    ///
    /// # Errors
    /// Too few points, or none of their places is known well enough.
    pub fn scanned(
        &self,
        unit_m: f64,
        around_m: [[f64; 2]; 2],
    ) -> Result<(Self, ScanReport), MeshError> {
        let points: Vec<Point3<f64>> = self.points.iter().map(|point| point * unit_m).collect();
        let (made, report) = surface(&points, around_m)?;
        let unseen = self.unseen;
        Ok((made, ScanReport { unseen, ..report }))
    }

    /// Adds a point.
    pub(crate) fn add_point(&mut self, at: [f64; 3]) -> Result<(), MeshError> {
        let number = self.points.len() + 1;
        check_count("points", number as u64)?;
        let point = Point3::from(at);
        if !is_finite(&point) {
            self.unseen += 1;
            self.first_unseen.get_or_insert(number);
        }
        self.points.push(point);
        Ok(())
    }

    /// Adds a face of three or more corners as a fan of triangles. Points may follow their faces, so
    /// [`FilePoints::check_indices`] compares the indices at the end.
    pub(crate) fn add_face(&mut self, corners: &[i64]) -> Result<(), MeshError> {
        let [first, rest @ ..] = corners else {
            return Ok(());
        };
        for pair in rest.windows(2) {
            let [second, third] = pair else { continue };
            let triangle = self.triangles.len() + 1;
            check_count("triangles", triangle as u64)?;
            let mut indices = [0; 3];
            for (kept, index) in indices.iter_mut().zip([first, second, third]) {
                *kept = u32::try_from(*index).map_err(|_| MeshError::Index {
                    triangle,
                    index: index.saturating_add(1),
                    points: self.points.len(),
                })?;
            }
            self.triangles.push(indices);
        }
        Ok(())
    }

    /// Refuses triangles that name points which are not there.
    pub(crate) fn check_indices(self) -> Result<Self, MeshError> {
        let points = self.points.len();
        let mut named = self.triangles.iter().enumerate();
        let wrong = named.find_map(|(triangle, corners)| {
            let beyond = corners.iter().find(|index| **index as usize >= points)?;
            Some((triangle + 1, i64::from(*beyond) + 1))
        });
        match wrong {
            Some((triangle, index)) => Err(MeshError::Index {
                triangle,
                index,
                points,
            }),
            None => Ok(self),
        }
    }
}

fn is_finite(point: &Point3<f64>) -> bool {
    point.iter().all(|value| value.is_finite())
}

/// Refuses more points or triangles than are read.
pub(crate) fn check_count(what: &'static str, count: u64) -> Result<(), MeshError> {
    let most = match what {
        "points" => POINTS_MAX,
        _ => TRIANGLES_MAX,
    };
    match count > most as u64 {
        true => Err(MeshError::TooMany { what, count }),
        false => Ok(()),
    }
}
