//! Fits the plane and the curvature of a sheet to touches of it.

use nalgebra::{DMatrix, DVector, Matrix3, Point3, Unit, Vector3};

use super::FitError;
use super::stats::{
    FitRows, ResidualKind, TouchOutlier, except, rms, robust, tail_probability, touch_fit,
};

/// Smallest number of touches. Any three touches define a plane; two more show whether they lie on it.
pub const PLANE_TOUCHES_MIN: usize = 5;

/// Largest distance along the sheet between touches of one place.
const SAME_PLACE_M: f64 = 0.005;

/// Number of unknowns of a paraboloid: a height, two slopes, two curvatures and a twist.
const SHAPE_UNKNOWNS: usize = 6;

/// Smallest ratio of singular values at which the places separate these unknowns.
const SHAPE_CONDITION_MIN: f64 = 0.1;

/// Largest probability that a flat sheet is reported as bent along one direction.
const FALSE_BEND_CHANCE: f64 = 0.001;

/// Smallest ratio of the touches' second extent to the first.
const EXTENT_RATIO_MIN: f64 = 0.3;

const UNKNOWNS: usize = 3;

/// A plane through touches.
#[derive(Clone, Debug)]
pub struct PlaneFit {
    /// The mean of the touches.
    pub centre_m: Point3<f64>,
    /// Points to the arm's side of the sheet.
    pub normal: Unit<Vector3<f64>>,
    /// Each touch's height over the plane, including touches that were left out.
    pub residuals_m: Vec<f64>,
    /// Covariance of the height at the centre and of the slopes along both extents (m², m, 1).
    pub covariance: Matrix3<f64>,
    /// The touch that was left out.
    pub outlier: Option<TouchOutlier>,
    pub(super) along: [Vector3<f64>; 2],
    /// Standard deviation of a place's height, as estimated by this fit.
    pub(super) place_sigma_m: f64,
    /// Degrees of freedom, at least 1.
    pub freedom: usize,
}

impl PlaneFit {
    /// Returns the height of a point above the plane.
    #[must_use]
    pub fn height_m(&self, point: &Point3<f64>) -> f64 {
        self.normal.dot(&(point - self.centre_m))
    }

    /// Returns the standard deviation of the plane's height under a point.
    #[must_use]
    pub fn sigma_at_m(&self, point: &Point3<f64>) -> f64 {
        let off = point - self.centre_m;
        let [u, v] = self.along;
        let row = Vector3::new(1.0, u.dot(&off), v.dot(&off));
        (row.transpose() * self.covariance * row).x.max(0.0).sqrt()
    }

    /// Returns the standard deviation of its direction, about the worse axis.
    #[must_use]
    pub fn tilt_sigma_rad(&self) -> f64 {
        let slopes = self.covariance.fixed_view::<2, 2>(1, 1).into_owned();
        slopes.symmetric_eigenvalues().max().max(0.0).sqrt()
    }
}

touch_fit!(PlaneFit, off => *off);

/// Fits a plane through the mean of the touches, normal to the direction of their smallest spread. Leaves out one touch if it is more
/// than three median deviations off, chance does not explain it, and enough touches remain. `up` points to the arm's side.
///
/// # Errors
/// Fewer than three touches, or all on a line. Three or four define a plane; [`super::judge_plane`]
/// decides whether they suffice.
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

/// Fits all touches, or all but one.
pub(super) fn fit(
    points: &[Point3<f64>],
    up: &Vector3<f64>,
    without: Option<usize>,
) -> Result<PlaneFit, FitError> {
    let used: Vec<Vector3<f64>> = except(points, without).map(|point| point.coords).collect();
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
    // Touches of one place share the errors there, and so count as one if there are enough places.
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

/// Returns the principal directions of a scatter with its size along each, largest first.
fn spread(scatter: &Matrix3<f64>) -> [(f64, Vector3<f64>); 3] {
    let eigen = scatter.symmetric_eigen();
    let direction = |index: usize| {
        let value = eigen.eigenvalues.get(index).copied().unwrap_or(0.0);
        (value, eigen.eigenvectors.column(index).into_owned())
    };
    let mut directions = [direction(0), direction(1), direction(2)];
    directions.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    directions
}

/// Curvature of a sheet along two directions on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SheetCurvature {
    /// One over the radius, along x and along y; positive if the sheet bulges towards the arm.
    pub per_m: [f64; 2],
    /// Their standard deviations.
    pub sigma_per_m: [f64; 2],
    /// Degrees of freedom.
    pub freedom: usize,
}

impl SheetCurvature {
    /// Returns the radius along x or y, if chance does not explain it.
    #[must_use]
    pub fn radius_mm(&self, along: usize) -> Option<f64> {
        let (value, sigma) = (self.per_m.get(along)?, self.sigma_per_m.get(along)?);
        let by_chance =
            tail_probability((value / sigma).powi(2), ResidualKind::Height, self.freedom);
        (by_chance < FALSE_BEND_CHANCE).then(|| 1e3 / value)
    }
}

/// Fits a paraboloid to touches over a plane; `None` if the touched places cannot distinguish curvature from tilt. Touches of one
/// place share the errors there, and so count as one.
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
    let freedom = places
        .len()
        .checked_sub(SHAPE_UNKNOWNS)
        .filter(|n| *n > 0)?;
    let extent_m = rms(places.iter().flat_map(|place| [place.x, place.y])).max(SAME_PLACE_M);
    let mut matrix = DMatrix::zeros(places.len(), SHAPE_UNKNOWNS);
    let mut heights = DVector::zeros(places.len());
    for (row, place) in places.iter().enumerate() {
        let (u, v) = (place.x / extent_m, place.y / extent_m);
        matrix
            .row_mut(row)
            .copy_from_slice(&[1.0, u, v, u * u, u * v, v * v]);
        heights.row_mut(row).fill(place.z);
    }
    let singular_values = matrix.singular_values();
    if singular_values.min() < SHAPE_CONDITION_MIN * singular_values.max() {
        return None;
    }
    let inverse = (matrix.transpose() * &matrix).try_inverse()?;
    let solution = &inverse * matrix.transpose() * &heights;
    let variance = (&matrix * &solution - &heights).norm_squared() / freedom as f64;
    let per_m = -2.0 / (extent_m * extent_m);
    let value = |term: usize| solution.get(term).map(|value| per_m * value);
    let sigma = |term: usize| {
        let cofactor = inverse.get((term, term))?;
        Some(per_m.abs() * (cofactor * variance).sqrt())
    };
    Some(SheetCurvature {
        per_m: [value(3)?, value(5)?],
        sigma_per_m: [sigma(3)?, sigma(5)?],
        freedom,
    })
}

/// Returns the mean of the touches of each place; `along` projects a difference to the part that separates places.
pub(super) fn touched_places(
    touches: impl Iterator<Item = Vector3<f64>>,
    along: impl Fn(&Vector3<f64>) -> Vector3<f64>,
) -> Vec<Vector3<f64>> {
    let mut places: Vec<Vec<Vector3<f64>>> = Vec::new();
    for touch in touches {
        let is_same = |place: &Vec<Vector3<f64>>| {
            let first = place.first();
            first.is_some_and(|first| along(&(first - touch)).norm() < SAME_PLACE_M)
        };
        match places.iter_mut().find(|place| is_same(place)) {
            Some(place) => place.push(touch),
            None => places.push(vec![touch]),
        }
    }
    let mean = |place: &Vec<Vector3<f64>>| place.iter().sum::<Vector3<f64>>() / place.len() as f64;
    places.iter().map(mean).collect()
}
