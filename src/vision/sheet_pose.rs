//! Estimates the pose of the sheet relative to the camera from all tags' corners, by least squares in pixels.
#![expect(
    clippy::indexing_slicing,
    reason = "matrices of six columns and vectors of six, indexed within their sizes"
)]

use nalgebra::{
    DMatrix, DVector, Isometry3, Matrix3, Matrix6, Point3, Rotation3, Translation3, UnitQuaternion,
    Vector3, Vector6,
};

use super::homography::homography;
use super::{DetectedTag, LensModel, TagLayout, VisionError};

/// Largest root mean square distance of the corners; above it they do not all belong to one sheet.
pub const CORNER_RMS_PX_MAX: f64 = 1.2;

/// Smallest uncertainty of a corner: four corners may fit the six parameters better by chance.
const CORNER_SIGMA_PX: f64 = 0.1;

/// Maximum number of iterations of the fit.
const ROUNDS: usize = 60;

/// Step of the numeric derivatives, in rad and m.
const STEP: f64 = 1e-6;

/// A sheet in a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct SheetLocation {
    /// Transform to the camera's frame from the sheet's, which has its origin at the lower left corner, x to the
    /// right, y up and z towards the reader; in m.
    pub sheet: Isometry3<f64>,
    /// Root mean square distance of the corners from their places in this pose.
    pub rms_px: f64,
    /// Uncertainty of the sheet's least certain corner in space, one sigma.
    pub sigma_mm: f64,
    /// Tags that the pose is based on.
    pub used: Vec<u16>,
    /// Tags that were not detected.
    pub missing: Vec<u16>,
    /// Tags that were detected but do not fit: moved on the sheet, or misread.
    pub left_out: Vec<u16>,
}

/// A corner on the sheet, in m, and in the picture, in pixels.
type CornerPair = (Point3<f64>, [f64; 2]);

/// The corners of a detected tag.
struct TagCorners {
    id: u16,
    corners: [CornerPair; 4],
}

struct PoseFit {
    sheet: Isometry3<f64>,
    rms_px: f64,
}

/// Locates a sheet of this size with these tags. Leaves out tags that do not fit the others, as long as
/// at least two remain that agree.
///
/// # Errors
/// No tag, tags that contradict each other, or corners on one line.
pub fn locate(
    detected: &[DetectedTag],
    layout: &TagLayout,
    lens: &LensModel,
    sheet_mm: [f64; 2],
) -> Result<SheetLocation, VisionError> {
    let mut tags = matched_tags(detected, layout);
    if tags.is_empty() {
        let of = layout.tags.len();
        return Err(VisionError::NoTag { of });
    }
    let mut left_out = Vec::new();
    let mut fit = fit(&corners(&tags), lens)?;
    while fit.rms_px > CORNER_RMS_PX_MAX {
        let Some((index, better)) = best_fit_without_one(&tags, lens) else {
            return Err(VisionError::Misfit {
                rms_px: fit.rms_px,
                most_px: CORNER_RMS_PX_MAX,
            });
        };
        left_out.push(tags.remove(index).id);
        fit = better;
    }
    let corners = corners(&tags);
    let sigma_mm = sigma_mm(&fit, &corners, lens, sheet_mm).ok_or(VisionError::Flat)?;
    let used: Vec<u16> = tags.iter().map(|tag| tag.id).collect();
    let is_detected = |id: u16| used.contains(&id) || left_out.contains(&id);
    let ids = layout.tags.iter().map(|tag| tag.id);
    Ok(SheetLocation {
        sheet: fit.sheet,
        rms_px: fit.rms_px,
        sigma_mm,
        missing: ids.filter(|id| !is_detected(*id)).collect(),
        used,
        left_out,
    })
}

/// Pairs the corners of the layout's tags with those detected in the picture.
fn matched_tags(detected: &[DetectedTag], layout: &TagLayout) -> Vec<TagCorners> {
    let match_tag = |tag: &super::SheetTag| {
        let found = detected.iter().find(|found| found.id == tag.id)?;
        let corners_mm = tag.corners_mm();
        let is_finite = found.corners_px.iter().flatten().all(|v| v.is_finite());
        is_finite.then(|| TagCorners {
            id: tag.id,
            corners: std::array::from_fn(|corner| {
                let [x, y] = corners_mm[corner];
                (Point3::new(x / 1e3, y / 1e3, 0.0), found.corners_px[corner])
            }),
        })
    };
    layout.tags.iter().filter_map(match_tag).collect()
}

fn corners(tags: &[TagCorners]) -> Vec<CornerPair> {
    tags.iter().flat_map(|tag| tag.corners).collect()
}

/// Returns the best fit with one tag left out, and that tag's index; `None` with fewer than three tags.
fn best_fit_without_one(tags: &[TagCorners], lens: &LensModel) -> Option<(usize, PoseFit)> {
    if tags.len() < 3 {
        return None;
    }
    let fit_without = |omitted: usize| {
        let kept = tags.iter().enumerate().filter(|(i, _)| *i != omitted);
        let corners: Vec<CornerPair> = kept.flat_map(|(_, tag)| tag.corners).collect();
        fit(&corners, lens).ok().map(|fit| (omitted, fit))
    };
    let fits = (0..tags.len()).filter_map(fit_without);
    fits.min_by(|(_, a), (_, b)| a.rms_px.total_cmp(&b.rms_px))
}

/// Fits a pose from two starts, the plane's homography and its mirror image, and returns the better. The mirror
/// image fits nearly as well if the sheet is small or distant.
fn fit(corners: &[CornerPair], lens: &LensModel) -> Result<PoseFit, VisionError> {
    let start = initial_pose(corners, lens).ok_or(VisionError::Flat)?;
    let starts = [start, mirror(&start, corners)];
    let fits = starts.iter().map(|start| refine(start, corners, lens));
    let best = fits
        .filter(|fit| fit.rms_px.is_finite())
        .min_by(|a, b| a.rms_px.total_cmp(&b.rms_px));
    best.ok_or(VisionError::Flat)
}

/// Returns the pose from the homography between the sheet's plane and the viewing directions.
fn initial_pose(corners: &[CornerPair], lens: &LensModel) -> Option<Isometry3<f64>> {
    let pair = |(at, px): &CornerPair| ([at.x, at.y], lens.ray(*px));
    let pairs: Vec<_> = corners.iter().map(pair).collect();
    let h = homography(&pairs)?;
    let (x, y, t) = (h.column(0), h.column(1), h.column(2));
    let scale = 2.0 / (x.norm() + y.norm());
    // The sheet is in front of the camera.
    let scale = if t[2] < 0.0 { -scale } else { scale };
    let (x, y, t) = (x * scale, y * scale, t * scale);
    let axes = Matrix3::from_columns(&[x, y, x.cross(&y)]);
    let svd = axes.try_svd(true, true, f64::EPSILON, 100)?;
    let (u, v_t) = (svd.u?, svd.v_t?);
    let rotation =
        u * Matrix3::from_diagonal(&Vector3::new(1.0, 1.0, (u * v_t).determinant())) * v_t;
    let rotation =
        UnitQuaternion::from_rotation_matrix(&Rotation3::from_matrix_unchecked(rotation));
    let mut coordinates = t.iter().chain(rotation.coords.iter());
    let is_finite = coordinates.all(|v| v.is_finite());
    is_finite.then(|| Isometry3::from_parts(Translation3::from(t), rotation))
}

/// Returns the pose of the sheet leaning the other way against the line of sight.
fn mirror(sheet: &Isometry3<f64>, corners: &[CornerPair]) -> Isometry3<f64> {
    let count = corners.len().max(1) as f64;
    let sum: Vector3<f64> = corners.iter().map(|(at, _)| at.coords).sum();
    let centre = Point3::from(sum / count);
    let camera_m = sheet * centre;
    let Some(sight) = camera_m.coords.try_normalize(1e-9) else {
        return *sheet;
    };
    let normal = sheet * Vector3::z();
    let is_away = normal.dot(&sight) > 0.0;
    let axis = if is_away { sight } else { -sight };
    let Some(half) = UnitQuaternion::rotation_between(&normal, &axis) else {
        return *sheet;
    };
    let rotation = half * half * sheet.rotation;
    let shift = camera_m.coords - rotation * centre.coords;
    Isometry3::from_parts(Translation3::from(shift), rotation)
}

/// Refines a pose by Levenberg-Marquardt over six parameters: a rotation and a shift in the camera's frame.
fn refine(start: &Isometry3<f64>, corners: &[CornerPair], lens: &LensModel) -> PoseFit {
    let mut sheet = *start;
    let (mut damping, mut errors) = (1e-3, residuals(&sheet, corners, lens));
    for _ in 0..ROUNDS {
        let Some(off) = &errors else { break };
        let j = jacobian(&sheet, corners, lens, off.len());
        let (normal, gradient) = (j.transpose() * &j, j.transpose() * off);
        let mut normal = Matrix6::from_fn(|row, column| normal[(row, column)]);
        for axis in 0..6 {
            normal[(axis, axis)] *= 1.0 + damping;
        }
        let gradient = Vector6::from_fn(|row, _| gradient[row]);
        let Some(step) = normal.lu().solve(&-gradient) else {
            break;
        };
        let next = apply_step(&sheet, &step);
        match residuals(&next, corners, lens) {
            Some(better) if better.norm_squared() < off.norm_squared() => {
                let gain = off.norm_squared() - better.norm_squared();
                let is_done = gain <= 1e-12 * off.norm_squared();
                (sheet, errors) = (next, Some(better));
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
        rms_px: errors.map_or(f64::INFINITY, |off| (off.norm_squared() / count).sqrt()),
    }
}

/// Rotates and shifts a pose by a small step in the camera's frame.
fn apply_step(sheet: &Isometry3<f64>, step: &Vector6<f64>) -> Isometry3<f64> {
    let rotation = UnitQuaternion::from_scaled_axis(Vector3::new(step[0], step[1], step[2]));
    let shift = sheet.translation.vector + Vector3::new(step[3], step[4], step[5]);
    Isometry3::from_parts(Translation3::from(shift), rotation * sheet.rotation)
}

/// Returns the differences between the corners' places by this pose and in the picture; `None` if one is behind the camera.
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
    let mut jacobian = DMatrix::zeros(rows, 6);
    for axis in 0..6 {
        let mut step = Vector6::zeros();
        step[axis] = STEP;
        let [ahead, back] =
            [step, -step].map(|step| residuals(&apply_step(sheet, &step), corners, lens));
        if let (Some(ahead), Some(back)) = (ahead, back) {
            jacobian.set_column(axis, &((ahead - back) / (2.0 * STEP)));
        }
    }
    jacobian
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
    let sheet_corners = [[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]];
    let sigmas_mm = sheet_corners.map(|[x, y]| {
        let lever = fit.sheet.rotation * Vector3::new(x / 1e3, y / 1e3, 0.0);
        // A corner moves with the shift, and with the rotation times its lever.
        let rotation = -lever.cross_matrix();
        let motion = nalgebra::Matrix3x6::from_fn(|row, column| match column {
            0..3 => rotation[(row, column)],
            _ => f64::from(u8::from(row + 3 == column)),
        });
        let variance = (motion * covariance * motion.transpose()).trace();
        variance.max(0.0).sqrt() * px * 1e3
    });
    let worst = sigmas_mm.into_iter().fold(0.0, f64::max);
    worst.is_finite().then_some(worst)
}
