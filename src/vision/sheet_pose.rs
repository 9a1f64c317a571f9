//! Pose of the sheet relative to the camera: all tags' corners at once, by least squares in pixels.
#![expect(
    clippy::indexing_slicing,
    reason = "matrices of six columns and vectors of six, walked by their own sizes"
)]

use nalgebra::{
    DMatrix, DVector, Isometry3, Matrix3, Matrix6, Point3, Rotation3, Translation3, UnitQuaternion,
    Vector3, Vector6,
};

use super::homography::homography;
use super::{DetectedTag, LensModel, TagLayout, VisionError};

/// Corners that are further off than this, on the average, are not all of one sheet.
pub const CORNER_RMS_PX_MAX: f64 = 1.2;

/// A corner is never known better than this, however well four of them fit six numbers.
const CORNER_SIGMA_PX: f64 = 0.1;

/// Rounds of the fit.
const ROUNDS: usize = 60;

/// A step of the derivatives, in rad and m.
const STEP: f64 = 1e-6;

/// A sheet in a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct SheetLocation {
    /// From the sheet's frame, its lower left corner with x to the right, y up and z towards the
    /// reader, to the camera's, in m.
    pub sheet: Isometry3<f64>,
    /// Distance of the corners from their places by that pose.
    pub rms_px: f64,
    /// Uncertainty of the sheet's worst known corner in space, one sigma.
    pub sigma_mm: f64,
    /// Tags that it rests on.
    pub used: Vec<u16>,
    /// Tags that were not seen.
    pub missing: Vec<u16>,
    /// Tags that were seen and fit nowhere: moved on the sheet, or taken for others.
    pub left_out: Vec<u16>,
}

/// A corner on the sheet, in m, and in the picture.
type CornerPair = (Point3<f64>, [f64; 2]);

/// A tag's corners.
struct TagCorners {
    id: u16,
    corners: [CornerPair; 4],
}

struct PoseFit {
    sheet: Isometry3<f64>,
    rms_px: f64,
}

/// Locates a sheet of this size with these tags. Leaves out a tag that does not fit the others,
/// provided that two remain that agree.
///
/// # Errors
/// No tag, tags that contradict each other, or corners on one line.
pub fn locate(
    seen: &[DetectedTag],
    layout: &TagLayout,
    lens: &LensModel,
    sheet_mm: [f64; 2],
) -> Result<SheetLocation, VisionError> {
    let mut marks = marks(seen, layout);
    if marks.is_empty() {
        let of = layout.tags.len();
        return Err(VisionError::NoTag { of });
    }
    let mut left_out = Vec::new();
    let mut fit = fit(&corners(&marks), lens)?;
    while fit.rms_px > CORNER_RMS_PX_MAX {
        let Some((without, better)) = best_without(&marks, lens) else {
            return Err(VisionError::Misfit {
                rms_px: fit.rms_px,
                most_px: CORNER_RMS_PX_MAX,
            });
        };
        left_out.push(marks.remove(without).id);
        fit = better;
    }
    let corners = corners(&marks);
    let sigma_mm = sigma_mm(&fit, &corners, lens, sheet_mm).ok_or(VisionError::Flat)?;
    let used: Vec<u16> = marks.iter().map(|mark| mark.id).collect();
    let known = |id: u16| used.contains(&id) || left_out.contains(&id);
    let missing = layout.tags.iter().map(|tag| tag.id);
    Ok(SheetLocation {
        sheet: fit.sheet,
        rms_px: fit.rms_px,
        sigma_mm,
        missing: missing.filter(|id| !known(*id)).collect(),
        used,
        left_out,
    })
}

fn marks(seen: &[DetectedTag], layout: &TagLayout) -> Vec<TagCorners> {
    let of = |tag: &super::SheetTag| {
        let seen = seen.iter().find(|seen| seen.id == tag.id)?;
        let corners_mm = tag.corners_mm();
        let is_finite = seen.corners_px.iter().flatten().all(|v| v.is_finite());
        is_finite.then(|| TagCorners {
            id: tag.id,
            corners: std::array::from_fn(|corner| {
                let [x, y] = corners_mm[corner];
                (Point3::new(x / 1e3, y / 1e3, 0.0), seen.corners_px[corner])
            }),
        })
    };
    layout.tags.iter().filter_map(of).collect()
}

fn corners(marks: &[TagCorners]) -> Vec<CornerPair> {
    marks.iter().flat_map(|mark| mark.corners).collect()
}

/// The best fit with one tag less, where at least two are left.
fn best_without(marks: &[TagCorners], lens: &LensModel) -> Option<(usize, PoseFit)> {
    if marks.len() < 3 {
        return None;
    }
    let without = |left: usize| {
        let kept = marks.iter().enumerate().filter(|(index, _)| *index != left);
        let corners: Vec<CornerPair> = kept.flat_map(|(_, mark)| mark.corners).collect();
        fit(&corners, lens).ok().map(|fit| (left, fit))
    };
    let fits = (0..marks.len()).filter_map(without);
    fits.min_by(|(_, a), (_, b)| a.rms_px.total_cmp(&b.rms_px))
}

/// From the plane's homography, and from its mirror image, which fits nearly as well where the sheet
/// is small or far: the better of the two.
fn fit(corners: &[CornerPair], lens: &LensModel) -> Result<PoseFit, VisionError> {
    let first = first(corners, lens).ok_or(VisionError::Flat)?;
    let starts = [first, mirrored(&first, corners)];
    let fits = starts.iter().map(|start| refined(start, corners, lens));
    let best = fits
        .filter(|fit| fit.rms_px.is_finite())
        .min_by(|a, b| a.rms_px.total_cmp(&b.rms_px));
    best.ok_or(VisionError::Flat)
}

/// A pose from the homography of the sheet's plane to directions.
fn first(corners: &[CornerPair], lens: &LensModel) -> Option<Isometry3<f64>> {
    let pair = |(at, px): &CornerPair| ([at.x, at.y], lens.ray(*px));
    let pairs: Vec<_> = corners.iter().map(pair).collect();
    let h = homography(&pairs)?;
    let (x, y, t) = (h.column(0), h.column(1), h.column(2));
    let scale = 2.0 / (x.norm() + y.norm());
    // The sheet is before the camera, not behind it.
    let scale = if t[2] < 0.0 { -scale } else { scale };
    let (x, y, t) = (x * scale, y * scale, t * scale);
    let turned = Matrix3::from_columns(&[x, y, x.cross(&y)]);
    let svd = turned.try_svd(true, true, f64::EPSILON, 100)?;
    let (u, v_t) = (svd.u?, svd.v_t?);
    let rotation =
        u * Matrix3::from_diagonal(&Vector3::new(1.0, 1.0, (u * v_t).determinant())) * v_t;
    let rotation =
        UnitQuaternion::from_rotation_matrix(&Rotation3::from_matrix_unchecked(rotation));
    let mut all = t.iter().chain(rotation.coords.iter());
    let is_finite = all.all(|v| v.is_finite());
    is_finite.then(|| Isometry3::from_parts(Translation3::from(t), rotation))
}

/// The sheet leaning the other way against the line of sight.
fn mirrored(sheet: &Isometry3<f64>, corners: &[CornerPair]) -> Isometry3<f64> {
    let count = corners.len().max(1) as f64;
    let sum: Vector3<f64> = corners.iter().map(|(at, _)| at.coords).sum();
    let middle = Point3::from(sum / count);
    let seen = sheet * middle;
    let Some(sight) = seen.coords.try_normalize(1e-9) else {
        return *sheet;
    };
    let normal = sheet * Vector3::z();
    let is_away = normal.dot(&sight) > 0.0;
    let towards = if is_away { sight } else { -sight };
    let Some(half) = UnitQuaternion::rotation_between(&normal, &towards) else {
        return *sheet;
    };
    let rotation = half * half * sheet.rotation;
    let shift = seen.coords - rotation * middle.coords;
    Isometry3::from_parts(Translation3::from(shift), rotation)
}

/// Levenberg and Marquardt over six numbers: a turn and a shift in the camera's frame.
fn refined(start: &Isometry3<f64>, corners: &[CornerPair], lens: &LensModel) -> PoseFit {
    let mut sheet = *start;
    let (mut damping, mut now) = (1e-3, residuals(&sheet, corners, lens));
    for _ in 0..ROUNDS {
        let Some(off) = &now else { break };
        let j = jacobian(&sheet, corners, lens, off.len());
        let (normal, slope) = (j.transpose() * &j, j.transpose() * off);
        let mut normal = Matrix6::from_fn(|row, column| normal[(row, column)]);
        for axis in 0..6 {
            normal[(axis, axis)] *= 1.0 + damping;
        }
        let slope = Vector6::from_fn(|row, _| slope[row]);
        let Some(step) = normal.lu().solve(&-slope) else {
            break;
        };
        let next = nudged(&sheet, &step);
        match residuals(&next, corners, lens) {
            Some(better) if better.norm_squared() < off.norm_squared() => {
                let gained = off.norm_squared() - better.norm_squared();
                let is_done = gained <= 1e-12 * off.norm_squared();
                (sheet, now) = (next, Some(better));
                damping = (damping * 0.2_f64).max(1e-12);
                if is_done {
                    break;
                }
            }
            _ if damping > 1e9 => break,
            _ => damping *= 10.0,
        }
    }
    let count = corners.len().max(1) as f64;
    PoseFit {
        sheet,
        rms_px: now.map_or(f64::INFINITY, |off| (off.norm_squared() / count).sqrt()),
    }
}

/// Turned and shifted a little, in the camera's frame.
fn nudged(sheet: &Isometry3<f64>, by: &Vector6<f64>) -> Isometry3<f64> {
    let turn = UnitQuaternion::from_scaled_axis(Vector3::new(by[0], by[1], by[2]));
    let shift = sheet.translation.vector + Vector3::new(by[3], by[4], by[5]);
    Isometry3::from_parts(Translation3::from(shift), turn * sheet.rotation)
}

/// From where the corners were seen to where this pose puts them; `None` where one is behind.
fn residuals(
    sheet: &Isometry3<f64>,
    corners: &[CornerPair],
    lens: &LensModel,
) -> Option<DVector<f64>> {
    let mut off = Vec::with_capacity(2 * corners.len());
    for (at, [u, v]) in corners {
        let [x, y] = lens.project(&(sheet * at))?;
        off.extend([x - u, y - v]);
    }
    Some(DVector::from_vec(off))
}

fn jacobian(
    sheet: &Isometry3<f64>,
    corners: &[CornerPair],
    lens: &LensModel,
    rows: usize,
) -> DMatrix<f64> {
    let mut all = DMatrix::zeros(rows, 6);
    for axis in 0..6 {
        let mut by = Vector6::zeros();
        by[axis] = STEP;
        let [on, back] = [by, -by].map(|by| residuals(&nudged(sheet, &by), corners, lens));
        if let (Some(on), Some(back)) = (on, back) {
            all.set_column(axis, &((on - back) / (2.0 * STEP)));
        }
    }
    all
}

/// Returns the uncertainty of the sheet's worst corner; `None` if it is unbounded.
fn sigma_mm(
    fit: &PoseFit,
    corners: &[CornerPair],
    lens: &LensModel,
    [width, height]: [f64; 2],
) -> Option<f64> {
    let j = jacobian(&fit.sheet, corners, lens, 2 * corners.len());
    let information = j.transpose() * &j;
    let covariance = Matrix6::from_fn(|row, column| information[(row, column)]).try_inverse()?;
    let px = fit.rms_px.max(CORNER_SIGMA_PX);
    let ends = [[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]];
    let worst = ends.map(|[x, y]| {
        let lever = fit.sheet.rotation * Vector3::new(x / 1e3, y / 1e3, 0.0);
        // A corner goes with the shift, and with the turn across its lever.
        let turn = -lever.cross_matrix();
        let both = nalgebra::Matrix3x6::from_fn(|row, column| match column {
            0..3 => turn[(row, column)],
            _ => f64::from(u8::from(row + 3 == column)),
        });
        let variance = (both * covariance * both.transpose()).trace();
        variance.max(0.0).sqrt() * px * 1e3
    });
    let worst = worst.into_iter().fold(0.0, f64::max);
    worst.is_finite().then_some(worst)
}
