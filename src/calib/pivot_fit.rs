//! Fits a tool's tip from touches of one fixed point in several directions.

use nalgebra::{DMatrix, DVector, Isometry3, Matrix3, Point3, Vector3};

use super::FitError;
use super::stats::{FitRows, ResidualKind, TouchOutlier, except, f3_95, robust, touch_fit};

/// Smallest number of touches: fewer leave no residuals to judge the fit by.
pub const PIVOT_TOUCHES_MIN: usize = 4;

/// Condition above which the equations are practically singular.
const CONDITION_MAX: f64 = 1e6;

/// Number of unknowns: the tip and the point.
const UNKNOWNS: usize = 6;

/// Fit of a tool's tip to touches of one point.
#[derive(Clone, Debug)]
pub struct PivotFit {
    /// The tip in the tool mount's frame.
    pub tip_m: Point3<f64>,
    /// The touched point in the arm's base frame.
    pub at_m: Point3<f64>,
    /// Each touch's residual, including touches that were left out.
    pub residuals_m: Vec<Vector3<f64>>,
    /// Ratio of the largest to the smallest singular value; 1 is best.
    pub condition: f64,
    /// Covariance of the tip.
    pub covariance_m2: Matrix3<f64>,
    /// The touch that was left out.
    pub outlier: Option<TouchOutlier>,
    /// Degrees of freedom, at least 1.
    pub(super) freedom: f64,
}

impl PivotFit {
    /// Returns the standard deviation of the tip in its worst direction.
    #[must_use]
    pub fn sigma_m(&self) -> f64 {
        let variance_m2 = self.covariance_m2.symmetric_eigenvalues().max();
        variance_m2.max(0.0).sqrt()
    }

    /// Returns the bound of the tip's error in 19 cases of 20.
    #[must_use]
    pub fn bound_m(&self) -> f64 {
        (3.0 * f3_95(self.freedom)).sqrt() * self.sigma_m()
    }

    /// Returns the distance of a touch that was not fitted from the fitted point.
    #[must_use]
    pub fn verify_m(&self, mount: &Isometry3<f64>) -> f64 {
        (mount * self.tip_m - self.at_m).norm()
    }
}

touch_fit!(PivotFit, off => off.norm());

/// Fits tip and point to the tool mount's poses at the touches: `R_i t - c = -p_i`, least squares. Leaves out one touch if it is
/// more than three median deviations off, chance does not explain it, and enough touches remain.
///
/// # Errors
/// Fewer than [`PIVOT_TOUCHES_MIN`], or all with the tool in one direction.
pub fn pivot_robust(mounts: &[Isometry3<f64>]) -> Result<PivotFit, FitError> {
    let rows = FitRows {
        each: ResidualKind::Vector,
        all: 3 * mounts.len().saturating_sub(1),
        unknowns: UNKNOWNS,
    };
    robust(mounts.len(), PIVOT_TOUCHES_MIN, rows, |without| {
        fit(mounts, without.map(|(_, index)| index))
    })
}

/// Fits all touches, or all but one.
pub(super) fn fit(mounts: &[Isometry3<f64>], without: Option<usize>) -> Result<PivotFit, FitError> {
    let used: Vec<&Isometry3<f64>> = except(mounts, without).collect();
    if used.len() < PIVOT_TOUCHES_MIN {
        return Err(FitError::TooFew {
            what: "the fixed point",
            have: used.len(),
            need: PIVOT_TOUCHES_MIN,
        });
    }
    let (matrix, right) = equations(&used);
    let mut numbers = matrix.iter().chain(right.iter());
    if !numbers.all(|value| value.is_finite()) {
        return Err(FitError::NotFinite);
    }
    let svd = matrix.clone().svd(true, true);
    let condition = svd.singular_values.max() / svd.singular_values.min().max(f64::MIN_POSITIVE);
    if condition > CONDITION_MAX {
        return Err(FitError::SameDirection { condition });
    }
    let solved = svd.solve(&right, 0.0);
    let x = solved.map_err(|_| FitError::SameDirection { condition })?;
    let vector = |from: usize| Vector3::from_iterator(x.rows(from, 3).iter().copied());
    let (tip_m, at_m) = (Point3::from(vector(0)), Point3::from(vector(3)));
    let freedom = (3 * used.len()).saturating_sub(UNKNOWNS).max(1) as f64;
    let variance_m2 = (&matrix * &x - &right).norm_squared() / freedom;
    let inverse = (matrix.transpose() * &matrix).try_inverse();
    let inverse = inverse.ok_or(FitError::SameDirection { condition })?;
    Ok(PivotFit {
        residuals_m: mounts.iter().map(|m| m * tip_m - at_m).collect(),
        covariance_m2: inverse.fixed_view::<3, 3>(0, 0) * variance_m2,
        outlier: None,
        tip_m,
        at_m,
        condition,
        freedom,
    })
}

fn equations(mounts: &[&Isometry3<f64>]) -> (DMatrix<f64>, DVector<f64>) {
    let mut matrix = DMatrix::zeros(3 * mounts.len(), 6);
    let mut right = DVector::zeros(3 * mounts.len());
    for (index, mount) in mounts.iter().enumerate() {
        let rotation = mount.rotation.to_rotation_matrix();
        let row = 3 * index;
        let mut tip = matrix.fixed_view_mut::<3, 3>(row, 0);
        tip.copy_from(rotation.matrix());
        let mut point = matrix.fixed_view_mut::<3, 3>(row, 3);
        point.copy_from(&-Matrix3::identity());
        let mut translation = right.fixed_rows_mut::<3>(row);
        translation.copy_from(&-mount.translation.vector);
    }
    (matrix, right)
}
