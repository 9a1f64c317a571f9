//! Fits the place and the curvature of a sheet from touches of it.

use nalgebra::{DMatrix, DVector, Matrix3, Point3, Unit, Vector3};

use super::FitError;
use super::stats::{FitRows, ResidualKind, TouchOutlier, beyond, but, rms, robust, touch_fit};

/// Least number of touches. Any three touches make a plane; two more show whether they lie on one.
pub const PLANE_TOUCHES_MIN: usize = 5;

/// Touches that are nearer to each other than this, along the sheet, are touches of one place.
const SAME_PLACE_M: f64 = 0.005;

/// Unknowns of a bowl: a height, two slopes, two curvatures and a twist.
const BOWL_UNKNOWNS: usize = 6;

/// Share of the strongest of these unknowns below which the weakest does not show: the places do not separate them.
const BOWL_CONDITION_MIN: f64 = 0.1;

/// Chance at most that a flat sheet is called bent along one direction.
const FLAT_CALLED_BENT: f64 = 0.001;

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
    /// Of the height at the middle and of the slopes along both extents (m², m, 1).
    pub covariance: Matrix3<f64>,
    /// The touch that was left out.
    pub outlier: Option<TouchOutlier>,
    pub(super) along: [Vector3<f64>; 2],
    /// The standard deviation of a place's height, as far as this fit knows it.
    pub(super) place_sigma_m: f64,
    /// Touched places more than unknowns, at least 1.
    pub freedom: usize,
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

    /// The standard deviation of its direction, the worse way.
    #[must_use]
    pub fn tilt_sigma_rad(&self) -> f64 {
        let slopes = self.covariance.fixed_view::<2, 2>(1, 1).into_owned();
        slopes.symmetric_eigenvalues().max().max(0.0).sqrt()
    }
}

touch_fit!(PlaneFit, off => *off);

/// Fits a plane: through the middle, across the direction in which the touches spread least. One touch is left out if it is more
/// than three median deviations off, not by chance, and enough are left. `up` says which side the arm is on.
///
/// # Errors
/// Fewer than three touches, or all on a line. Three or four make a plane; whether they are
/// enough to be believed is for [`super::judge_plane`].
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

/// Fits all touches but one.
pub(super) fn fit(
    points: &[Point3<f64>],
    up: &Vector3<f64>,
    without: Option<usize>,
) -> Result<PlaneFit, FitError> {
    let used: Vec<Vector3<f64>> = but(points, without).map(|point| point.coords).collect();
    if used.len() < 3 {
        return Err(FitError::TooFew {
            what: "the sheet",
            have: used.len(),
            need: 3,
        });
    }
    let mut numbers = used.iter().flat_map(|point| point.iter());
    if !numbers.all(|value| value.is_finite()) {
        return Err(FitError::NotFinite);
    }
    // Touches of one place have what is wrong there in common, and so count as one, where enough places are left.
    let places = touched_places(used.iter().copied(), |touch| *touch);
    let used = if places.len() > UNKNOWNS {
        places
    } else {
        used
    };
    let n = used.len() as f64;
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
    let freedom = used.len().saturating_sub(UNKNOWNS).max(1);
    let variance_m2 = least.max(0.0) / freedom as f64;
    let inverse = Vector3::new(1.0 / n, 1.0 / first, 1.0 / second);
    let centre_m = Point3::from(centre);
    let heights = points.iter().map(|point| normal.dot(&(point - centre_m)));
    Ok(PlaneFit {
        residuals_m: heights.collect(),
        centre_m,
        normal: Unit::new_normalize(normal),
        covariance: Matrix3::from_diagonal(&(inverse * variance_m2)),
        outlier: None,
        along: [u, v],
        place_sigma_m: variance_m2.sqrt(),
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
    /// Places beyond those that a bowl needs.
    pub freedom: usize,
}

impl SheetCurvature {
    /// Returns the radius along x or y, where chance does not explain it.
    #[must_use]
    pub fn radius_mm(&self, along: usize) -> Option<f64> {
        let (value, sigma) = (self.per_m.get(along)?, self.sigma_per_m.get(along)?);
        let by_chance = beyond((value / sigma).powi(2), ResidualKind::Height, self.freedom);
        (by_chance < FLAT_CALLED_BENT).then(|| 1e3 / value)
    }
}

/// Fits a bowl to touches over a plane; `None` where the places that were touched cannot tell a bowl from a tilt. Touches of one
/// place have what is wrong there in common, and so count as one.
#[must_use]
pub fn curvature(
    points: &[Point3<f64>],
    plane: &PlaneFit,
    x: &Vector3<f64>,
) -> Option<SheetCurvature> {
    let x = (x - plane.normal.scale(plane.normal.dot(x))).try_normalize(1e-9)?;
    let y = plane.normal.cross(&x);
    let on_sheet = points.iter().map(|point| {
        let off = point - plane.centre_m;
        Vector3::new(x.dot(&off), y.dot(&off), plane.normal.dot(&off))
    });
    let places = touched_places(on_sheet, |touch| Vector3::new(touch.x, touch.y, 0.0));
    let freedom = places.len().checked_sub(BOWL_UNKNOWNS).filter(|n| *n > 0)?;
    let extent_m = rms(places.iter().flat_map(|place| [place.x, place.y])).max(SAME_PLACE_M);
    let mut matrix = DMatrix::zeros(places.len(), BOWL_UNKNOWNS);
    let mut heights = DVector::zeros(places.len());
    for (row, place) in places.iter().enumerate() {
        let (u, v) = (place.x / extent_m, place.y / extent_m);
        matrix
            .row_mut(row)
            .copy_from_slice(&[1.0, u, v, u * u, u * v, v * v]);
        heights.row_mut(row).fill(place.z);
    }
    let shows = matrix.singular_values();
    if shows.min() < BOWL_CONDITION_MIN * shows.max() {
        return None;
    }
    let inverse = (matrix.transpose() * &matrix).try_inverse()?;
    let found = &inverse * matrix.transpose() * &heights;
    let variance = (&matrix * &found - &heights).norm_squared() / freedom as f64;
    let per_m = -2.0 / (extent_m * extent_m);
    let value = |term: usize| found.get(term).map(|value| per_m * value);
    let sigma = |term: usize| {
        let of_term = inverse.get((term, term))?;
        Some(per_m.abs() * (of_term * variance).sqrt())
    };
    Some(SheetCurvature {
        per_m: [value(3)?, value(5)?],
        sigma_per_m: [sigma(3)?, sigma(5)?],
        freedom,
    })
}

/// Returns the middle of the touches of each place; `along` is the part of a touch that tells places apart.
fn touched_places(
    touches: impl Iterator<Item = Vector3<f64>>,
    along: impl Fn(&Vector3<f64>) -> Vector3<f64>,
) -> Vec<Vector3<f64>> {
    let mut places: Vec<Vec<Vector3<f64>>> = Vec::new();
    for touch in touches {
        let is_here = |place: &Vec<Vector3<f64>>| {
            let first = place.first();
            first.is_some_and(|first| along(&(first - touch)).norm() < SAME_PLACE_M)
        };
        match places.iter_mut().find(|place| is_here(place)) {
            Some(place) => place.push(touch),
            None => places.push(vec![touch]),
        }
    }
    let middle =
        |place: &Vec<Vector3<f64>>| place.iter().sum::<Vector3<f64>>() / place.len() as f64;
    places.iter().map(middle).collect()
}
