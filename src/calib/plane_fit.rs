//! Fits the place and the curvature of a sheet from touches of it.

use nalgebra::{DMatrix, DVector, Matrix3, Point3, Unit, Vector3};

use super::FitError;
use super::stats::{FitRows, ResidualKind, TouchFit, TouchOutlier, f3_95, robust, touch_fit};

/// Least number of touches. Any three touches make a plane; two more show whether they lie on one.
pub const PLANE_TOUCHES_MIN: usize = 5;

/// Touches that are needed to say how a sheet is bent.
const CURVATURE_TOUCHES_MIN: usize = 9;

/// The second extent of the touches over the first, at least.
const EXTENT_RATIO_MIN: f64 = 0.3;

const UNKNOWNS: usize = 3;

/// A plane through touches.
#[derive(Clone, Debug)]
pub struct PlaneFit {
    /// The middle of the touches.
    pub centre_m: Point3<f64>,
    /// Towards the arm's side of the sheet.
    pub normal: Unit<Vector3<f64>>,
    /// Per touch, its height over the plane; those of touches that were left out too.
    pub residuals_m: Vec<f64>,
    /// The second extent over the first.
    pub extent_ratio: f64,
    /// Of the height at the middle and of the slopes along both extents (m², m, 1).
    pub covariance: Matrix3<f64>,
    /// The touch that was left out.
    pub outlier: Option<TouchOutlier>,
    along: [Vector3<f64>; 2],
    freedom: f64,
}

impl PlaneFit {
    /// Returns the height of a point above the plane.
    #[must_use]
    pub fn height_m(&self, point: &Point3<f64>) -> f64 {
        self.normal.dot(&(point - self.centre_m))
    }

    /// The standard deviation of the plane's height under a point.
    #[must_use]
    pub fn sigma_at_m(&self, point: &Point3<f64>) -> f64 {
        let off = point - self.centre_m;
        let [u, v] = self.along;
        let row = Vector3::new(1.0, u.dot(&off), v.dot(&off));
        (row.transpose() * self.covariance * row).x.max(0.0).sqrt()
    }

    /// The standard deviation of a touch, as far as this fit knows it.
    #[must_use]
    pub fn touch_sigma_m(&self) -> f64 {
        let squares: f64 = self.kept().map(|off| off * off).sum();
        (squares / self.freedom).sqrt()
    }

    /// Touches more than unknowns, at least 1.
    #[must_use]
    pub fn freedom(&self) -> f64 {
        self.freedom
    }

    /// The standard deviation of its direction, the worse way.
    #[must_use]
    pub fn tilt_sigma_rad(&self) -> f64 {
        let slopes = self.covariance.fixed_view::<2, 2>(1, 1).into_owned();
        slopes.symmetric_eigenvalues().max().max(0.0).sqrt()
    }

    /// Returns whether a second plane lies within the region that holds the true one in 19 cases of 20.
    #[must_use]
    pub fn covers(&self, centre_m: &Point3<f64>, normal: &Unit<Vector3<f64>>) -> bool {
        let facing = self.normal.dot(normal);
        let [u, v] = self.along;
        let height = normal.dot(&(centre_m - self.centre_m)) / facing;
        let off = Vector3::new(height, -normal.dot(&u) / facing, -normal.dot(&v) / facing);
        let Some(inverse) = self.covariance.try_inverse() else {
            return false;
        };
        (off.transpose() * inverse * off).x <= 3.0 * f3_95(self.freedom)
    }
}

touch_fit!(PlaneFit, off => *off);

/// Fits a plane: through the middle, across the direction in which the touches spread least.
/// `up` says which side the arm is on.
///
/// # Errors
/// Fewer than three touches, or all on a line. Three or four make a plane; whether they are
/// enough to be believed is for [`super::judge_plane`].
pub fn plane(points: &[Point3<f64>], up: &Vector3<f64>) -> Result<PlaneFit, FitError> {
    fit(points, up, None)
}

/// As [`plane`]; one touch is left out if it is more than three median deviations off, not by chance, and enough
/// are left.
///
/// # Errors
/// As [`plane`].
pub fn plane_robust(points: &[Point3<f64>], up: &Vector3<f64>) -> Result<PlaneFit, FitError> {
    let rows = FitRows {
        each: ResidualKind::Height,
        all: points.len().saturating_sub(1),
        unknowns: UNKNOWNS,
    };
    robust(points.len(), PLANE_TOUCHES_MIN, rows, |without| {
        fit(points, up, without.map(|(_, index)| index))
    })
}

#[expect(clippy::cast_precision_loss, reason = "a few touches")]
fn count(touches: usize) -> f64 {
    touches as f64
}

fn fit(
    points: &[Point3<f64>],
    up: &Vector3<f64>,
    without: Option<usize>,
) -> Result<PlaneFit, FitError> {
    let used: Vec<Vector3<f64>> = points
        .iter()
        .enumerate()
        .filter(|(index, _)| Some(*index) != without)
        .map(|(_, point)| point.coords)
        .collect();
    if used.len() < 3 {
        return Err(FitError::TooFew {
            what: "the sheet",
            have: used.len(),
            need: 3,
        });
    }
    if !used
        .iter()
        .flat_map(|point| point.iter())
        .all(|v| v.is_finite())
    {
        return Err(FitError::NotFinite);
    }
    let n = count(used.len());
    let centre = used.iter().sum::<Vector3<f64>>() / n;
    let scatter: Matrix3<f64> = used
        .iter()
        .map(|point| (point - centre) * (point - centre).transpose())
        .sum();
    let [(first, u), (second, v), (least, normal)] = spread(&scatter);
    let extent_ratio = (second / first.max(f64::MIN_POSITIVE)).sqrt();
    if extent_ratio < EXTENT_RATIO_MIN {
        let span_mm = |value: f64| 2e3 * (value / n).sqrt();
        return Err(FitError::OnALine {
            across_mm: span_mm(second),
            along_mm: span_mm(first),
        });
    }
    let normal = if normal.dot(up) < 0.0 {
        -normal
    } else {
        normal
    };
    let freedom = (n - count(UNKNOWNS)).max(1.0);
    let variance_m2 = least.max(0.0) / freedom;
    let inverse = Vector3::new(1.0 / n, 1.0 / first, 1.0 / second);
    let centre_m = Point3::from(centre);
    let heights = points.iter().map(|point| normal.dot(&(point - centre_m)));
    Ok(PlaneFit {
        residuals_m: heights.collect(),
        centre_m,
        normal: Unit::new_normalize(normal),
        extent_ratio,
        covariance: Matrix3::from_diagonal(&(inverse * variance_m2)),
        outlier: None,
        along: [u, v],
        freedom,
    })
}

/// Directions of a scatter with its size along each, the largest first.
fn spread(scatter: &Matrix3<f64>) -> [(f64, Vector3<f64>); 3] {
    let eigen = scatter.symmetric_eigen();
    let of = |index: usize| {
        let value = eigen.eigenvalues.get(index).copied().unwrap_or(0.0);
        (value, eigen.eigenvectors.column(index).into_owned())
    };
    let mut all = [of(0), of(1), of(2)];
    all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    all
}

/// Curvature of a sheet along two directions on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SheetCurvature {
    /// One over the radius, along x and along y; positive where the sheet bulges towards the arm.
    pub per_m: [f64; 2],
    /// Their standard deviations.
    pub sigma_per_m: [f64; 2],
}

impl SheetCurvature {
    /// The radius along x or y, where it is more than three standard deviations from flat.
    #[must_use]
    pub fn radius_mm(&self, along: usize) -> Option<f64> {
        let (value, sigma) = (self.per_m.get(along)?, self.sigma_per_m.get(along)?);
        (value.abs() > 3.0 * sigma).then(|| 1e3 / value)
    }
}

/// Fits a bowl to touches over a plane; `None` with fewer than nine.
#[must_use]
pub fn curvature(
    points: &[Point3<f64>],
    plane: &PlaneFit,
    x: &Vector3<f64>,
) -> Option<SheetCurvature> {
    if points.len() < CURVATURE_TOUCHES_MIN {
        return None;
    }
    let x = (x - plane.normal.scale(plane.normal.dot(x))).try_normalize(1e-9)?;
    let y = plane.normal.cross(&x);
    let mut matrix = DMatrix::zeros(points.len(), 6);
    let mut right = DVector::zeros(points.len());
    for (row, point) in points.iter().enumerate() {
        let off = point - plane.centre_m;
        let (u, v) = (x.dot(&off), y.dot(&off));
        let terms = [1.0, u, v, u * u, u * v, v * v];
        matrix.row_mut(row).copy_from_slice(&terms);
        right.row_mut(row).fill(plane.normal.dot(&off));
    }
    let inverse = (matrix.transpose() * &matrix).try_inverse()?;
    let found = &inverse * matrix.transpose() * &right;
    let freedom = (count(points.len()) - 6.0).max(1.0);
    let variance = (&matrix * &found - &right).norm_squared() / freedom;
    let value = |term: usize| found.get(term).map(|value| -2.0 * value);
    let sigma = |term: usize| {
        inverse
            .get((term, term))
            .map(|v| 2.0 * (v * variance).sqrt())
    };
    Some(SheetCurvature {
        per_m: [value(3)?, value(5)?],
        sigma_per_m: [sigma(3)?, sigma(5)?],
    })
}
