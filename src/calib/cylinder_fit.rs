//! Fits the place of a sheet on a cylinder and the cylinder's radius, from touches of the sheet.
//!
//! The scene's own shape gives the place and the height of each touch, so the fitted surface is the one to be drawn on.
//! Heights give the cylinder's place and radius; the touches of origin, +x and +y give the sheet's place on it.

use nalgebra::{DMatrix, DVector, Isometry3, Point3, Translation3, UnitQuaternion, Vector3};

use super::calibration_record::TouchRole;
use super::fit::{self, FitModel, nudge};
use super::sheet_frame::{SQUARE_MAX_RAD, scale, touched_axes};
use super::stats::{FitRows, ResidualKind, TouchOutlier, robust, touch_fit};
use super::{FitError, RulerDistances};
use scene::{Surface, pose};

/// Fewer touches are not fitted: each gives a height, and origin, +x and +y four numbers more.
pub const ROLLED_TOUCHES_MIN: usize = 6;

/// A shift and a turn in the sheet's own frame, in m and rad, and one over the radius in m.
const UNKNOWNS: usize = 7;

/// Steps of the difference quotients.
const STEPS: [f64; UNKNOWNS] = [1e-6, 1e-6, 1e-6, 1e-5, 1e-5, 1e-5, 1e-4];

/// Weight of +x up the cylinder, or +y to the side, relative to a height: alignment by hand is no better.
const ASKEW: f64 = 0.2;

/// Radii that are fitted; beyond them a sheet is flat, or a thread.
const RADIUS_M: [f64; 2] = [0.003, 20.0];

/// A touch of the sheet.
#[derive(Clone, Copy, Debug)]
pub struct CylinderTouch {
    /// Place of the tip.
    pub at_m: Point3<f64>,
    /// Role of the touched point: origin, +x and +y give more than a height.
    pub role: TouchRole,
}

/// A sheet on a cylinder, fitted.
#[derive(Clone, Debug)]
pub struct CylinderFit {
    /// The sheet where the touches put it.
    pub surface: Surface,
    /// Its radius.
    pub radius_mm: f64,
    /// The radius's standard deviation.
    pub radius_sigma_mm: f64,
    /// Per touch, its height over the sheet; those of touches that were left out too.
    pub residuals_m: Vec<f64>,
    /// Offsets of the touches of +x up the sheet, and of those of +y to its right; in mm.
    pub askew_mm: [f64; 2],
    /// Measured over asked, along x and y on the sheet.
    pub scale: [f64; 2],
    /// The touch that was left out.
    pub outlier: Option<TouchOutlier>,
    covariance: DMatrix<f64>,
    state: CylinderEstimate,
}

impl CylinderFit {
    /// Returns the height of a point over the sheet.
    #[must_use]
    pub fn height_m(&self, at_m: &Point3<f64>) -> f64 {
        self.surface.project(at_m).height_mm / 1e3
    }

    /// The standard deviation of the height of a place of the sheet.
    #[must_use]
    pub fn sigma_at_m(&self, at_mm: [f64; 2]) -> f64 {
        let at = self.surface.at(at_mm).point_m;
        let height = |by: &DVector<f64>| {
            let moved = self.state.moved(by).surface(&self.surface);
            moved.map_or(0.0, |surface| surface.project(&at).height_mm / 1e3)
        };
        let slope = DVector::from_fn(UNKNOWNS, |row, _| {
            let by = nudge(&STEPS, row);
            (height(&by) - height(&-by.clone())) / (2.0 * by.sum())
        });
        slope.dot(&(&self.covariance * &slope)).max(0.0).sqrt()
    }
}

touch_fit!(CylinderFit, off => *off);

/// Fits a sheet on a cylinder, beginning with the radius that `believed` has. One touch is left out if it is more than three median
/// deviations off, not by chance, and enough are left. `up` says on which side of it the arm is.
///
/// # Errors
/// Too few touches, none of origin, +x or +y, or touches that make another sheet than was asked: swapped, askew, of another size,
/// hollow, or hardly bent.
pub fn rolled_robust(
    believed: &Surface,
    touches: &[CylinderTouch],
    asked: RulerDistances,
    up: &Vector3<f64>,
) -> Result<CylinderFit, FitError> {
    let problem = CylinderProblem::new(believed, touches, asked)?;
    let start = problem.start(up)?;
    // Heights are judged. The origin's place on the sheet uses up two unknowns, and what counts for less hardly any.
    let rows = FitRows {
        each: ResidualKind::Height,
        all: touches.len().saturating_sub(1),
        unknowns: UNKNOWNS - 2,
    };
    robust(touches.len(), ROLLED_TOUCHES_MIN, rows, |without| {
        let from = without.map_or(&start, |(plain, _): (&CylinderFit, _)| &plain.state);
        problem.fit(from, without.map(|(_, index)| index))
    })
}

/// Believed pose and curvature of the sheet during the fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct CylinderEstimate {
    /// Of the flat sheet that touches the cylinder along its middle.
    flat: Isometry3<f64>,
    per_m: f64,
}

impl CylinderEstimate {
    fn moved(&self, by: &DVector<f64>) -> Self {
        let [x, y, z, a, b, c, per_m] =
            std::array::from_fn(|row| by.get(row).copied().unwrap_or(0.0));
        let turn = UnitQuaternion::from_scaled_axis(Vector3::new(a, b, c));
        let step = Isometry3::from_parts(Translation3::new(x, y, z), turn);
        Self {
            flat: self.flat * step,
            per_m: self.per_m + per_m,
        }
    }

    /// `None` where the sheet is no more rolled than a flat one, hollow, or rolled to nothing.
    fn surface(&self, like: &Surface) -> Option<Surface> {
        let [least, most] = RADIUS_M;
        let radius_m = 1.0 / self.per_m;
        let is_fit = (least..=most).contains(&radius_m);
        is_fit.then(|| like.rolled(&self.flat, radius_m * 1e3))?
    }
}

pub(super) struct CylinderProblem<'a> {
    believed: &'a Surface,
    touches: &'a [CylinderTouch],
    asked: RulerDistances,
}

impl<'a> CylinderProblem<'a> {
    pub(super) fn new(
        believed: &'a Surface,
        touches: &'a [CylinderTouch],
        asked: RulerDistances,
    ) -> Result<Self, FitError> {
        let mut numbers = touches.iter().flat_map(|touch| touch.at_m.iter());
        if !numbers.all(|value| value.is_finite()) {
            return Err(FitError::NotFinite);
        }
        Ok(Self {
            believed,
            touches,
            asked,
        })
    }

    /// Rows more than unknowns, at least 1; those that count for less, for as much less.
    fn freedom(&self, rows: usize, without: Option<usize>) -> f64 {
        let touches = self.touches.iter().enumerate();
        let is_light = |index: usize, touch: &CylinderTouch| {
            Some(index) != without && matches!(touch.role, TouchRole::X | TouchRole::Y)
        };
        let light = touches.filter(|(index, touch)| is_light(*index, touch));
        let rows = rows as f64 - light.count() as f64 * (1.0 - ASKEW * ASKEW);
        (rows - UNKNOWNS as f64).max(1.0)
    }

    fn axes(&self) -> Result<[Point3<f64>; 3], FitError> {
        touched_axes(&self.touches.iter().map(|touch| (touch.role, touch.at_m)))
    }

    /// The sheet with the radius that is believed, its corner and its edges where they were touched.
    pub(super) fn start(&self, up: &Vector3<f64>) -> Result<CylinderEstimate, FitError> {
        let [origin, x, y] = self.axes()?;
        let apart = |to: Point3<f64>| (to - origin).try_normalize(1e-6);
        let (Some(x), Some(y)) = (apart(x), apart(y)) else {
            return Err(FitError::OnALine {
                across_mm: 0.0,
                along_mm: 0.0,
            });
        };
        let normal = x.cross(&y);
        if normal.norm() < SQUARE_MAX_RAD.cos() {
            return Err(FitError::NotSquare(x.angle(&y).to_degrees()));
        }
        if normal.dot(up) < 0.0 {
            return Err(FitError::Swapped);
        }
        let at = pose(&origin, &x, &normal.normalize());
        // The corner of a rolled sheet lies beside and below the flat one's.
        let believed = self.believed.flat();
        let corner = believed.inverse() * self.believed.at([0.0, 0.0]).point_m;
        Ok(CylinderEstimate {
            flat: at * Translation3::from(-corner.coords),
            per_m: 1e3 / self.believed.radius_mm().ok_or(FitError::NotRolled)?,
        })
    }

    /// From the sheet as it is believed to what was touched, in m.
    fn off(&self, state: &CylinderEstimate, without: Option<usize>) -> Option<DVector<f64>> {
        let surface = state.surface(self.believed)?;
        let mut off = Vec::with_capacity(self.touches.len() * 2);
        for (index, touch) in self.touches.iter().enumerate() {
            if Some(index) == without {
                continue;
            }
            let seen = surface.project(&touch.at_m);
            let [x, y] = seen.at_mm.map(|mm| mm / 1e3);
            off.push(seen.height_mm / 1e3);
            match touch.role {
                TouchRole::Origin => off.extend([x, y]),
                TouchRole::X => off.push(y * ASKEW),
                TouchRole::Y => off.push(x * ASKEW),
                _ => {}
            }
        }
        Some(DVector::from_vec(off))
    }

    pub(super) fn fit(
        &self,
        start: &CylinderEstimate,
        without: Option<usize>,
    ) -> Result<CylinderFit, FitError> {
        let used = self.touches.len() - usize::from(without.is_some());
        if used < ROLLED_TOUCHES_MIN {
            return Err(FitError::TooFew {
                what: "the rolled sheet",
                have: used,
                need: ROLLED_TOUCHES_MIN,
            });
        }
        let sheet = FitModel {
            off: &|state| self.off(state, without),
            moved: &CylinderEstimate::moved,
            steps: &STEPS,
        };
        let (state, off) = fit::least_squares(&sheet, *start).ok_or(FitError::NotRolled)?;
        let surface = state.surface(self.believed).ok_or(FitError::NotRolled)?;
        let slopes = fit::slopes(&sheet, &state).ok_or(FitError::NotRolled)?;
        let inverse = slopes.tr_mul(&slopes).try_inverse();
        let inverse = inverse.ok_or(FitError::NotRolled)?;
        let freedom = self.freedom(off.len(), without);
        let covariance = inverse * (off.norm_squared() / freedom);
        let axes_mm = self.axes()?.map(|at| surface.project(&at).at_mm);
        let [[ox, oy], [xx, xy], [yx, yy]] = axes_mm;
        let touches = self.touches.iter();
        let heights = touches.map(|touch| surface.project(&touch.at_m).height_mm / 1e3);
        let radius_m = 1.0 / state.per_m;
        let sigma_per_m = covariance
            .get((UNKNOWNS - 1, UNKNOWNS - 1))
            .map_or(0.0, |v| v.max(0.0).sqrt());
        Ok(CylinderFit {
            residuals_m: heights.collect(),
            radius_mm: radius_m * 1e3,
            radius_sigma_mm: radius_m * radius_m * sigma_per_m * 1e3,
            askew_mm: [xy - oy, yx - ox],
            scale: [
                scale("+x", (xx - ox) / 1e3, self.asked.x_mm)?,
                scale("+y", (yy - oy) / 1e3, self.asked.y_mm)?,
            ],
            outlier: None,
            surface,
            covariance,
            state,
        })
    }
}
