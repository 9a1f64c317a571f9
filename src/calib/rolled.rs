//! Where a sheet on a cylinder lies and how far it is rolled, from touches of it.
//!
//! The scene's own shape is asked where a touch is on the sheet and how far off it, so that what is fitted is what is drawn on.
//! Heights say where the cylinder is and how thick; the touches of origin, +x and +y say where on it the sheet begins.

use nalgebra::{
    DVector, Isometry3, OMatrix, Point3, SMatrix, SVector, Translation3, U7, UnitQuaternion,
    Vector3,
};

use super::frame::{SQUARE_MAX_RAD, scale};
use super::record::Role;
use super::stats::{Each, Outlier, Rows, largest, outlier, rms};
use super::{Asked, FitError};
use scene::{Surface, pose};

/// Fewer touches are not fitted: each gives a height, and origin, +x and +y four numbers more.
pub const ROLLED_TOUCHES_MIN: usize = 6;

/// A shift and a turn in the sheet's own frame, in m and rad, and one over the radius in m.
const UNKNOWNS: usize = 7;

type Unknowns = SVector<f64, UNKNOWNS>;

/// Steps of the difference quotients.
const STEPS: [f64; UNKNOWNS] = [1e-6, 1e-6, 1e-6, 1e-5, 1e-5, 1e-5, 1e-4];

const ROUNDS: usize = 60;

/// What +x being up the cylinder, or +y to the side, counts for against a height: a hand lays a sheet along a cylinder no better.
const ASKEW: f64 = 0.2;

/// Radii that are fitted; beyond them a sheet is flat, or a thread.
const RADIUS_M: [f64; 2] = [0.003, 20.0];

/// A touch of the sheet.
#[derive(Clone, Copy, Debug)]
pub struct RolledTouch {
    /// Where the tip was.
    pub at_m: Point3<f64>,
    /// What was touched: origin, +x and +y say more than a height.
    pub role: Role,
}

/// A sheet on a cylinder, fitted.
#[derive(Clone, Debug)]
pub struct Rolled {
    /// The sheet where the touches put it.
    pub surface: Surface,
    /// Its radius.
    pub radius_mm: f64,
    /// The radius's standard deviation.
    pub radius_sigma_mm: f64,
    /// Per touch, its height over the sheet; those of touches that were left out too.
    pub residuals_m: Vec<f64>,
    /// How far the touches of +x are up the sheet, and those of +y to its right; in mm.
    pub askew_mm: [f64; 2],
    /// Measured over asked, along x and y on the sheet.
    pub scale: [f64; 2],
    /// The touch that was left out.
    pub outlier: Option<Outlier>,
    covariance: OMatrix<f64, U7, U7>,
    state: State,
}

impl Rolled {
    /// The heights' root mean square, touches that were left out aside.
    #[must_use]
    pub fn rms_m(&self) -> f64 {
        rms(self.kept())
    }

    /// The largest height, touches that were left out aside.
    #[must_use]
    pub fn max_m(&self) -> f64 {
        largest(self.kept())
    }

    /// How far a point is over the sheet.
    #[must_use]
    pub fn height_m(&self, at_m: &Point3<f64>) -> f64 {
        self.surface.project(at_m).height_mm / 1e3
    }

    /// The standard deviation of the height of a place of the sheet.
    #[must_use]
    pub fn sigma_at_m(&self, at_mm: [f64; 2]) -> f64 {
        let at = self.surface.at(at_mm).point_m;
        let height = |by: &Unknowns| {
            let moved = self.state.moved(by).surface(&self.surface);
            moved.map_or(0.0, |surface| surface.project(&at).height_mm / 1e3)
        };
        let slope = Unknowns::from_fn(|row, _| {
            let by = nudge(row);
            (height(&by) - height(&-by)) / (2.0 * by.sum())
        });
        (slope.transpose() * self.covariance * slope)
            .x
            .max(0.0)
            .sqrt()
    }

    fn kept(&self) -> impl Iterator<Item = f64> {
        let left_out = self.outlier.map(|outlier| outlier.index);
        let all = self.residuals_m.iter().enumerate();
        all.filter(move |(index, _)| Some(*index) != left_out)
            .map(|(_, residual)| *residual)
    }
}

/// Fits a sheet on a cylinder, beginning with the radius that `believed` has. `up` says on which side of it the arm is.
///
/// # Errors
/// Too few touches, none of origin, +x or +y, or touches that make another sheet than was asked: swapped, askew, of another size,
/// hollow, or hardly bent.
pub fn rolled(
    believed: &Surface,
    touches: &[RolledTouch],
    asked: Asked,
    up: &Vector3<f64>,
) -> Result<Rolled, FitError> {
    let problem = Problem::new(believed, touches, asked)?;
    problem.fit(&problem.start(up)?, None)
}

/// As [`rolled`]; one touch is left out if it is more than three median deviations off, not by chance, and enough are left.
///
/// # Errors
/// As [`rolled`].
pub fn rolled_robust(
    believed: &Surface,
    touches: &[RolledTouch],
    asked: Asked,
    up: &Vector3<f64>,
) -> Result<Rolled, FitError> {
    let problem = Problem::new(believed, touches, asked)?;
    let start = problem.start(up)?;
    let plain = problem.fit(&start, None)?;
    if touches.len() <= ROLLED_TOUCHES_MIN {
        return Ok(plain);
    }
    // Heights are judged. The origin's place on the sheet uses up two unknowns, and what counts for less hardly any.
    let rows = Rows {
        each: Each::Height,
        all: touches.len() - 1,
        unknowns: UNKNOWNS - 2,
    };
    let heights = |without| Some(problem.fit(&plain.state, Some(without)).ok()?.residuals_m);
    match outlier(touches.len(), rows, heights) {
        None => Ok(plain),
        Some(found) => {
            let mut fit = problem.fit(&plain.state, Some(found.index))?;
            fit.outlier = Some(found);
            Ok(fit)
        }
    }
}

/// Where a sheet is believed while it is fitted.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Of the flat sheet that touches the cylinder along its middle.
    flat: Isometry3<f64>,
    per_m: f64,
}

impl State {
    fn moved(&self, by: &Unknowns) -> Self {
        let [x, y, z, a, b, c, per_m] = <[f64; UNKNOWNS]>::from(*by);
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

/// A step along one unknown.
fn nudge(unknown: usize) -> Unknowns {
    Unknowns::from_fn(|row, _| match STEPS.get(row) {
        Some(step) if row == unknown => *step,
        _ => 0.0,
    })
}

struct Problem<'a> {
    believed: &'a Surface,
    touches: &'a [RolledTouch],
    asked: Asked,
}

impl<'a> Problem<'a> {
    fn new(
        believed: &'a Surface,
        touches: &'a [RolledTouch],
        asked: Asked,
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
    #[expect(clippy::cast_precision_loss, reason = "some touches")]
    fn freedom(&self, rows: usize, without: Option<usize>) -> f64 {
        let touches = self.touches.iter().enumerate();
        let is_light = |index: usize, touch: &RolledTouch| {
            Some(index) != without && matches!(touch.role, Role::X | Role::Y)
        };
        let light = touches.filter(|(index, touch)| is_light(*index, touch));
        let rows = rows as f64 - light.count() as f64 * (1.0 - ASKEW * ASKEW);
        (rows - UNKNOWNS as f64).max(1.0)
    }

    fn mean(&self, role: Role, what: &'static str) -> Result<Point3<f64>, FitError> {
        let of = self.touches.iter().filter(|touch| touch.role == role);
        let (sum, count) = of.fold((Vector3::zeros(), 0.0), |(sum, count), touch| {
            (sum + touch.at_m.coords, count + 1.0)
        });
        if count > 0.0 {
            return Ok(Point3::from(sum / count));
        }
        Err(FitError::TooFew {
            what,
            have: 0,
            need: 1,
        })
    }

    /// The sheet with the radius that is believed, its corner and its edges where they were touched.
    fn start(&self, up: &Vector3<f64>) -> Result<State, FitError> {
        let origin = self.mean(Role::Origin, "the origin")?;
        let (x, y) = (self.mean(Role::X, "+x")?, self.mean(Role::Y, "+y")?);
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
        Ok(State {
            flat: at * Translation3::from(-corner.coords),
            per_m: 1e3 / self.believed.radius_mm().ok_or(FitError::NotRolled)?,
        })
    }

    /// From the sheet as it is believed to what was touched, in m.
    fn off(&self, state: &State, without: Option<usize>) -> Option<DVector<f64>> {
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
                Role::Origin => off.extend([x, y]),
                Role::X => off.push(y * ASKEW),
                Role::Y => off.push(x * ASKEW),
                _ => {}
            }
        }
        Some(DVector::from_vec(off))
    }

    /// The normal equations of a step.
    fn equations(
        &self,
        state: &State,
        off: &DVector<f64>,
        without: Option<usize>,
    ) -> Option<(SMatrix<f64, UNKNOWNS, UNKNOWNS>, Unknowns)> {
        let mut slopes = Vec::with_capacity(UNKNOWNS);
        for unknown in 0..UNKNOWNS {
            let by = nudge(unknown);
            let [on, back] = [by, -by].map(|by| self.off(&state.moved(&by), without));
            slopes.push((on? - back?) / (2.0 * by.sum()));
        }
        let dot = |row: usize, other: &DVector<f64>| slopes.get(row).map_or(0.0, |s| s.dot(other));
        let none = DVector::zeros(off.len());
        let normal = SMatrix::from_fn(|row, column| dot(row, slopes.get(column).unwrap_or(&none)));
        Some((normal, Unknowns::from_fn(|row, _| dot(row, off))))
    }

    /// Levenberg and Marquardt.
    fn fit(&self, start: &State, without: Option<usize>) -> Result<Rolled, FitError> {
        let used = self.touches.len() - usize::from(without.is_some());
        if used < ROLLED_TOUCHES_MIN {
            return Err(FitError::TooFew {
                what: "the rolled sheet",
                have: used,
                need: ROLLED_TOUCHES_MIN,
            });
        }
        let (mut state, mut damping) = (*start, 1e-3);
        let mut off = self.off(&state, without).ok_or(FitError::NotRolled)?;
        for _ in 0..ROUNDS {
            let equations = self.equations(&state, &off, without);
            let (mut normal, slope) = equations.ok_or(FitError::NotRolled)?;
            for diagonal in 0..UNKNOWNS {
                if let Some(value) = normal.get_mut((diagonal, diagonal)) {
                    *value *= 1.0 + damping;
                }
            }
            let Some(step) = normal.lu().solve(&-slope) else {
                break;
            };
            let next = state.moved(&step);
            match self.off(&next, without) {
                Some(better) if better.norm_squared() < off.norm_squared() => {
                    let gained = off.norm_squared() - better.norm_squared();
                    let is_done = gained <= 1e-9 * off.norm_squared();
                    (state, off) = (next, better);
                    damping = (damping * 0.2_f64).max(1e-12);
                    if is_done {
                        break;
                    }
                }
                _ if damping > 1e9 => break,
                _ => damping *= 10.0,
            }
        }
        self.made(state, &off, without)
    }

    fn made(
        &self,
        state: State,
        off: &DVector<f64>,
        without: Option<usize>,
    ) -> Result<Rolled, FitError> {
        let surface = state.surface(self.believed).ok_or(FitError::NotRolled)?;
        let (normal, _) = self
            .equations(&state, off, without)
            .ok_or(FitError::NotRolled)?;
        let inverse = normal.try_inverse().ok_or(FitError::NotRolled)?;
        let freedom = self.freedom(off.len(), without);
        let covariance = inverse * (off.norm_squared() / freedom);
        let place = |role, what| self.mean(role, what).map(|at| surface.project(&at).at_mm);
        let ([ox, oy], [xx, xy], [yx, yy]) = (
            place(Role::Origin, "the origin")?,
            place(Role::X, "+x")?,
            place(Role::Y, "+y")?,
        );
        let heights = self
            .touches
            .iter()
            .map(|t| surface.project(&t.at_m).height_mm / 1e3);
        let radius_m = 1.0 / state.per_m;
        let sigma_per_m = covariance
            .get((UNKNOWNS - 1, UNKNOWNS - 1))
            .map_or(0.0, |v| v.max(0.0).sqrt());
        Ok(Rolled {
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
