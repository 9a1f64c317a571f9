//! Fits the place of a sheet on a cylinder and the cylinder's radius to touches of the sheet.
//!
//! The scene's own surface gives the place and the height of each touch, so the fit is made with the surface to be drawn on.
//! Heights determine the cylinder's place and radius; the touches of origin, +x and +y the sheet's place on it.

use nalgebra::{DMatrix, DVector, Isometry3, Point3, Translation3, UnitQuaternion, Vector3};

use super::calibration_record::TouchRole;
use super::fit::{self, FitModel, step_along};
use super::sheet_frame::{SQUARE_MAX_RAD, scale, touched_axes};
use super::stats::{FitRows, ResidualKind, TouchOutlier, robust, touch_fit};
use super::{FitError, RulerDistances};
use scene::{Surface, pose};

/// Smallest number of touches: each gives a height, and origin, +x and +y four more values.
pub const ROLLED_TOUCHES_MIN: usize = 6;

/// Number of unknowns: a shift and a rotation in the sheet's own frame, in m and rad, and one over the radius in m.
const UNKNOWNS: usize = 7;

/// Steps of the difference quotients.
const STEPS: [f64; UNKNOWNS] = [1e-6, 1e-6, 1e-6, 1e-5, 1e-5, 1e-5, 1e-4];

/// Weight of the offset of +x up the cylinder, or of +y to the side, relative to a height: points are aligned by hand.
const ASKEW: f64 = 0.2;

/// Smallest and largest radius of a fit.
const RADIUS_M: [f64; 2] = [0.003, 20.0];

/// A touch of the sheet.
#[derive(Clone, Copy, Debug)]
pub struct CylinderTouch {
    /// Place of the tip.
    pub at_m: Point3<f64>,
    /// Role of the touched point: origin, +x and +y give more than a height.
    pub role: TouchRole,
}

/// Fit of a sheet on a cylinder.
#[derive(Clone, Debug)]
pub struct CylinderFit {
    /// The fitted sheet.
    pub surface: Surface,
    /// Its radius.
    pub radius_mm: f64,
    /// The radius's standard deviation.
    pub radius_sigma_mm: f64,
    /// Each touch's height over the sheet, including touches that were left out.
    pub residuals_m: Vec<f64>,
    /// Offset of +x up the sheet, and of +y to its right, in mm.
    pub askew_mm: [f64; 2],
    /// Ratio of measured to expected length, along x and y on the sheet.
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

    /// Returns the standard deviation of the height at a place on the sheet.
    #[must_use]
    pub fn sigma_at_m(&self, at_mm: [f64; 2]) -> f64 {
        let at = self.surface.at(at_mm).point_m;
        let height = |step: &DVector<f64>| {
            let surface = self.state.step_by(step).surface(&self.surface);
            surface.map_or(0.0, |surface| surface.project(&at).height_mm / 1e3)
        };
        let slope = DVector::from_fn(UNKNOWNS, |row, _| {
            let step = step_along(&STEPS, row);
            (height(&step) - height(&-step.clone())) / (2.0 * step.sum())
        });
        slope.dot(&(&self.covariance * &slope)).max(0.0).sqrt()
    }
}

touch_fit!(CylinderFit, residuals => *residuals);

/// Fits a sheet on a cylinder, starting from the radius of `assumed`. Leaves out one touch if it is more than three median
/// deviations off, chance does not explain it, and enough touches remain. `up` points to the arm's side.
///
/// # Errors
/// Too few touches, none of origin, +x or +y, or touches that do not match the expected sheet: swapped, not at a right angle, of
/// another size, hollow, or hardly bent.
pub fn rolled_robust(
    assumed: &Surface,
    touches: &[CylinderTouch],
    expected: RulerDistances,
    up: &Vector3<f64>,
) -> Result<CylinderFit, FitError> {
    let problem = CylinderProblem::new(assumed, touches, expected)?;
    let start = problem.start(up)?;
    // Only heights are examined for outliers. The origin's place on the sheet determines two unknowns, and the reduced rows hardly any.
    let rows = FitRows {
        each: ResidualKind::Height,
        all: touches.len().saturating_sub(1),
        unknowns: UNKNOWNS - 2,
    };
    robust(touches.len(), ROLLED_TOUCHES_MIN, rows, |without| {
        let from = without.map_or(&start, |(full, _): (&CylinderFit, _)| &full.state);
        problem.fit(from, without.map(|(_, index)| index))
    })
}

/// Estimated pose and curvature of the sheet during the fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct CylinderEstimate {
    /// Pose of the flat sheet that touches the cylinder along its middle line.
    flat: Isometry3<f64>,
    per_m: f64,
}

impl CylinderEstimate {
    fn step_by(&self, step: &DVector<f64>) -> Self {
        let [x, y, z, a, b, c, per_m] =
            std::array::from_fn(|row| step.get(row).copied().unwrap_or(0.0));
        let rotation = UnitQuaternion::from_scaled_axis(Vector3::new(a, b, c));
        let motion = Isometry3::from_parts(Translation3::new(x, y, z), rotation);
        Self {
            flat: self.flat * motion,
            per_m: self.per_m + per_m,
        }
    }

    /// Returns the surface; `None` if the sheet is practically flat, hollow, or rolled too tightly.
    fn surface(&self, like: &Surface) -> Option<Surface> {
        let [least, most] = RADIUS_M;
        let radius_m = 1.0 / self.per_m;
        let is_within = (least..=most).contains(&radius_m);
        is_within.then(|| like.rolled(&self.flat, radius_m * 1e3))?
    }
}

pub(super) struct CylinderProblem<'a> {
    assumed: &'a Surface,
    touches: &'a [CylinderTouch],
    expected: RulerDistances,
}

impl<'a> CylinderProblem<'a> {
    pub(super) fn new(
        assumed: &'a Surface,
        touches: &'a [CylinderTouch],
        expected: RulerDistances,
    ) -> Result<Self, FitError> {
        let mut numbers = touches.iter().flat_map(|touch| touch.at_m.iter());
        if !numbers.all(|value| value.is_finite()) {
            return Err(FitError::NotFinite);
        }
        Ok(Self {
            assumed,
            touches,
            expected,
        })
    }

    /// Returns the degrees of freedom, at least 1; rows of reduced weight count by their weight.
    fn freedom(&self, rows: usize, without: Option<usize>) -> f64 {
        let touches = self.touches.iter().enumerate();
        let is_reduced = |index: usize, touch: &CylinderTouch| {
            Some(index) != without && matches!(touch.role, TouchRole::X | TouchRole::Y)
        };
        let reduced = touches.filter(|(index, touch)| is_reduced(*index, touch));
        let rows = rows as f64 - reduced.count() as f64 * (1.0 - ASKEW * ASKEW);
        (rows - UNKNOWNS as f64).max(1.0)
    }

    fn axes(&self) -> Result<[Point3<f64>; 3], FitError> {
        touched_axes(&self.touches.iter().map(|touch| (touch.role, touch.at_m)))
    }

    /// Returns the sheet with the assumed radius, its corner and its edges where they were touched.
    pub(super) fn start(&self, up: &Vector3<f64>) -> Result<CylinderEstimate, FitError> {
        let [origin, x, y] = self.axes()?;
        let direction = |to: Point3<f64>| (to - origin).try_normalize(1e-6);
        let (Some(x), Some(y)) = (direction(x), direction(y)) else {
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
        let corner_pose = pose(&origin, &x, &normal.normalize());
        // The corner of a rolled sheet lies inside and below that of the flat one.
        let assumed = self.assumed.flat();
        let corner = assumed.inverse() * self.assumed.at([0.0, 0.0]).point_m;
        Ok(CylinderEstimate {
            flat: corner_pose * Translation3::from(-corner.coords),
            per_m: 1e3 / self.assumed.radius_mm().ok_or(FitError::NotRolled)?,
        })
    }

    /// Returns the residuals of the touches from an estimate, in m.
    fn residuals(&self, state: &CylinderEstimate, without: Option<usize>) -> Option<DVector<f64>> {
        let surface = state.surface(self.assumed)?;
        let mut residuals = Vec::with_capacity(self.touches.len() * 2);
        for (index, touch) in self.touches.iter().enumerate() {
            if Some(index) == without {
                continue;
            }
            let projected = surface.project(&touch.at_m);
            let [x, y] = projected.at_mm.map(|mm| mm / 1e3);
            residuals.push(projected.height_mm / 1e3);
            match touch.role {
                TouchRole::Origin => residuals.extend([x, y]),
                TouchRole::X => residuals.push(y * ASKEW),
                TouchRole::Y => residuals.push(x * ASKEW),
                _ => {}
            }
        }
        Some(DVector::from_vec(residuals))
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
        let model = FitModel {
            residuals: &|state| self.residuals(state, without),
            step_from: &CylinderEstimate::step_by,
            steps: &STEPS,
        };
        let (state, residuals) = fit::least_squares(&model, *start).ok_or(FitError::NotRolled)?;
        let surface = state.surface(self.assumed).ok_or(FitError::NotRolled)?;
        let slopes = fit::slopes(&model, &state).ok_or(FitError::NotRolled)?;
        let inverse = slopes.tr_mul(&slopes).try_inverse();
        let inverse = inverse.ok_or(FitError::NotRolled)?;
        let freedom = self.freedom(residuals.len(), without);
        let covariance = inverse * (residuals.norm_squared() / freedom);
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
                scale("+x", (xx - ox) / 1e3, self.expected.x_mm)?,
                scale("+y", (yy - oy) / 1e3, self.expected.y_mm)?,
            ],
            outlier: None,
            surface,
            covariance,
            state,
        })
    }
}
