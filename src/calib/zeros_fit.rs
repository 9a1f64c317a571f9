//! Fits the errors of joints' zeros to touches of points and planes in many poses.
//!
//! Levenberg–Marquardt over the zeros and, if requested, the tip, held near their present values by
//! Tikhonov terms. Zeros that the touches do not determine are dropped and named, never guessed.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is that of a touch, of an unknown, or of a kept unknown"
)]

use nalgebra::{DMatrix, DVector, Matrix3, Point3, Vector3};

use super::FitError;
use super::fit::{self, FitModel};
use super::stats::{TouchOutlier, is_outlier, rms};
use base::units::JointVector;
use kin::{KinematicChain, ToolTip};

/// Smallest number of touches for a fit.
pub const ZEROS_TOUCHES_MIN: usize = 8;

/// Number of touches from which every fifth is held out and only predicted.
const HELD_OUT_FROM: usize = 10;
const HELD_OUT_EVERY: usize = 5;

/// Ratio to the largest singular value below which an unknown is not observable.
const OBSERVABLE_RATIO: f64 = 1e-3;

/// Prior uncertainty of a zero.
const ZERO_PRIOR_RAD: f64 = 0.05;

/// Prior uncertainty of a tip.
const TIP_PRIOR_M: f64 = 0.01;

/// Repeatability of a touch in the Tikhonov terms.
const TOUCH_M: f64 = 5e-4;

/// Step of the difference quotients, as a fraction of the priors.
const STEP: f64 = 1e-4;

/// Touched object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TouchTarget {
    /// A point of known position.
    Known(Point3<f64>),
    /// A point of unknown position, the same for every touch of this number.
    Same(usize),
    /// An unknown plane, the same for every touch of this number.
    Plane(usize),
}

/// A touch.
#[derive(Clone, Copy, Debug)]
pub struct ZerosTouch {
    /// Joints as measured.
    pub joints_rad: JointVector,
    /// Touched object.
    pub target: TouchTarget,
}

/// Fit of the joints' zeros to touches.
#[derive(Clone, Debug)]
pub struct ZerosFit {
    /// To be added to each measured angle; 0 for joints that were dropped.
    pub offsets_rad: JointVector,
    /// The tip that belongs to these offsets, in the tool mount's frame.
    pub tip_m: Point3<f64>,
    /// Standard deviations of the offsets; infinite for joints that were dropped.
    pub sigma_rad: JointVector,
    /// Joints whose zeros these touches do not determine.
    pub dropped: Vec<usize>,
    /// Ratio of the largest to the smallest singular value of the kept unknowns.
    pub condition: f64,
    /// Residuals' root mean square before the fit.
    pub before_m: f64,
    /// Residuals' root mean square after the fit.
    pub rms_m: f64,
    /// The same of touches that were held out.
    pub held_out_m: Option<f64>,
    /// Residual of each touch.
    pub residuals_m: Vec<f64>,
    /// The touch that was left out.
    pub outlier: Option<TouchOutlier>,
}

/// Fits zeros, and the tip as well if `with_tip` is set.
///
/// # Errors
/// Fewer than [`ZEROS_TOUCHES_MIN`], or touches that determine no zero.
pub fn zeros(
    chain: &KinematicChain,
    tip: &ToolTip,
    touches: &[ZerosTouch],
    with_tip: bool,
) -> Result<ZerosFit, FitError> {
    if touches.len() < ZEROS_TOUCHES_MIN {
        return Err(FitError::TooFew {
            what: "the points and planes of the zeros",
            have: touches.len(),
            need: ZEROS_TOUCHES_MIN,
        });
    }
    let is_valid = |q: &JointVector| q.len() == chain.dof() && q.is_finite();
    if !touches.iter().all(|touch| is_valid(&touch.joints_rad)) {
        return Err(FitError::NotFinite);
    }
    let has_held_out = touches.len() >= HELD_OUT_FROM;
    let held_out = |index: usize| has_held_out && index % HELD_OUT_EVERY == HELD_OUT_EVERY - 1;
    let used: Vec<bool> = (0..touches.len()).map(|index| !held_out(index)).collect();
    let problem = ZerosProblem::new(chain, tip, touches, used, with_tip);
    let first = problem.solve()?;
    let Some(outlier) = worst_outlier(&problem, &first) else {
        return Ok(first);
    };
    let mut used = problem.used.clone();
    if let Some(used) = used.get_mut(outlier.index) {
        *used = false;
    }
    if used.iter().filter(|used| **used).count() < ZEROS_TOUCHES_MIN {
        return Ok(first);
    }
    let problem = ZerosProblem {
        used,
        left_out: Some(outlier.index),
        ..problem
    };
    let mut fit = problem.solve()?;
    let off_m = fit.residuals_m.get(outlier.index).copied();
    fit.outlier = off_m.map(|off_m| TouchOutlier { off_m, ..outlier });
    Ok(fit)
}

/// Returns the worst touch of a fit, if it is an outlier.
fn worst_outlier(problem: &ZerosProblem<'_>, fit: &ZerosFit) -> Option<TouchOutlier> {
    let used = || {
        let residuals_m = fit.residuals_m.iter().copied().enumerate();
        residuals_m.filter(|(index, _)| problem.is_used(*index))
    };
    let (index, off_m) = used().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let others: Vec<f64> = used()
        .filter(|(other, _)| *other != index)
        .map(|(_, value)| value)
        .collect();
    is_outlier(off_m, &others).then_some(TouchOutlier { index, off_m })
}

#[derive(Clone)]
struct ZerosProblem<'a> {
    chain: &'a KinematicChain,
    tip: &'a ToolTip,
    touches: &'a [ZerosTouch],
    used: Vec<bool>,
    left_out: Option<usize>,
    /// The initial normal of each plane, by the number of its touches.
    normals: Vec<(usize, Vector3<f64>)>,
    unknowns: usize,
}

impl<'a> ZerosProblem<'a> {
    fn new(
        chain: &'a KinematicChain,
        tip: &'a ToolTip,
        touches: &'a [ZerosTouch],
        used: Vec<bool>,
        with_tip: bool,
    ) -> Self {
        let unknowns = chain.dof() + if with_tip { 3 } else { 0 };
        let mut problem = Self {
            chain,
            tip,
            touches,
            used,
            left_out: None,
            normals: Vec::new(),
            unknowns,
        };
        let points = problem.points(&DVector::zeros(unknowns));
        for touch in touches {
            if let TouchTarget::Plane(group) = touch.target
                && !problem.normals.iter().any(|(number, _)| *number == group)
            {
                let [_, normal] = problem.best_plane(&points, group);
                problem.normals.push((group, normal));
            }
        }
        problem
    }

    fn is_used(&self, index: usize) -> bool {
        self.used[index]
    }

    /// Returns an unknown's prior standard deviation.
    fn prior(&self, unknown: usize) -> f64 {
        if unknown < self.chain.dof() {
            ZERO_PRIOR_RAD
        } else {
            TIP_PRIOR_M
        }
    }

    /// Converts unknowns, in units of their priors, to offsets and a tip.
    fn state(&self, x: &DVector<f64>) -> (JointVector, Point3<f64>) {
        let value = |unknown: usize| x[unknown] * self.prior(unknown);
        let dof = self.chain.dof();
        let offsets = JointVector::zeros(dof).map(|joint, _| value(joint));
        // The tip is an unknown only if it was requested.
        let tip_shift_m = match self.unknowns - dof {
            3 => Vector3::new(value(dof), value(dof + 1), value(dof + 2)),
            _ => Vector3::zeros(),
        };
        (offsets, self.tip.point_m + tip_shift_m)
    }

    fn points(&self, x: &DVector<f64>) -> Vec<Point3<f64>> {
        let (offsets, tip_m) = self.state(x);
        let point = |touch: &ZerosTouch| {
            let joints = touch.joints_rad.zip(&offsets, |q, offset| q + offset);
            self.chain.forward(&joints) * tip_m
        };
        self.touches.iter().map(point).collect()
    }

    fn points_of<'b>(
        &'b self,
        points: &'b [Point3<f64>],
        target: TouchTarget,
    ) -> impl Iterator<Item = Vector3<f64>> + 'b {
        let touches = self.touches.iter().zip(points).enumerate();
        touches
            .filter(move |(index, (touch, _))| self.is_used(*index) && touch.target == target)
            .map(|(_, (_, point))| point.coords)
    }

    fn mean(&self, points: &[Point3<f64>], target: TouchTarget) -> Vector3<f64> {
        let (mut sum, mut count) = (Vector3::zeros(), 0.0_f64);
        for point in self.points_of(points, target) {
            sum += point;
            count += 1.0;
        }
        sum / count.max(1.0)
    }

    /// Returns the centre and the normal of the touches of a plane.
    fn best_plane(&self, points: &[Point3<f64>], group: usize) -> [Vector3<f64>; 2] {
        let target = TouchTarget::Plane(group);
        let centre = self.mean(points, target);
        let scatter: Matrix3<f64> = self
            .points_of(points, target)
            .map(|point| (point - centre) * (point - centre).transpose())
            .sum();
        let eigen = scatter.symmetric_eigen();
        let normal = eigen
            .eigenvectors
            .column(eigen.eigenvalues.imin())
            .into_owned();
        let initial = self.normals.iter().find(|(number, _)| *number == group);
        let is_flipped = initial.is_some_and(|(_, initial)| initial.dot(&normal) < 0.0);
        [centre, if is_flipped { -normal } else { normal }]
    }

    /// Returns each touch's residual; a plane's has only its first component.
    fn residuals(&self, x: &DVector<f64>) -> Vec<Vector3<f64>> {
        let points = self.points(x);
        let mut fitted: Vec<(TouchTarget, [Vector3<f64>; 2])> = Vec::new();
        let residual = |(touch, point): (&ZerosTouch, &Point3<f64>)| {
            let target = touch.target;
            let earlier = fitted.iter().find(|(earlier, _)| *earlier == target);
            let [centre, normal] = earlier.map(|(_, shape)| *shape).unwrap_or_else(|| {
                let shape = match target {
                    TouchTarget::Known(at) => [at.coords, Vector3::zeros()],
                    TouchTarget::Same(_) => [self.mean(&points, target), Vector3::zeros()],
                    TouchTarget::Plane(group) => self.best_plane(&points, group),
                };
                fitted.push((target, shape));
                shape
            });
            let offset = point.coords - centre;
            match target {
                TouchTarget::Plane(_) => Vector3::new(normal.dot(&offset), 0.0, 0.0),
                _ => offset,
            }
        };
        self.touches.iter().zip(&points).map(residual).collect()
    }

    /// Returns the components of all used residuals as one vector.
    fn stacked_residuals(&self, x: &DVector<f64>) -> DVector<f64> {
        let residuals = self.residuals(x).into_iter().enumerate();
        let used = residuals.filter(|(index, _)| self.is_used(*index));
        DVector::from_vec(used.flat_map(|(_, r)| [r.x, r.y, r.z]).collect())
    }

    /// Calls `use_model` with the model in which only the kept unknowns vary. The Tikhonov terms follow the touches' residuals.
    fn with_model<T>(
        &self,
        kept: &[usize],
        use_model: impl FnOnce(&FitModel<'_, DVector<f64>>) -> T,
    ) -> T {
        let residuals = |x: &DVector<f64>| {
            let touches = self.stacked_residuals(x);
            let priors = kept.iter().map(|unknown| x[*unknown] * TOUCH_M);
            let rows = touches.iter().copied().chain(priors);
            Some(DVector::from_iterator(touches.len() + kept.len(), rows))
        };
        let step_from = |x: &DVector<f64>, step: &DVector<f64>| {
            let mut next = x.clone();
            for (unknown, change) in kept.iter().zip(step.iter()) {
                next[*unknown] += change;
            }
            next
        };
        use_model(&FitModel {
            residuals: &residuals,
            step_from: &step_from,
            steps: &vec![STEP; kept.len()],
        })
    }

    #[expect(clippy::expect_used, reason = "zeros of any size have residuals")]
    fn jacobian(&self, x: &DVector<f64>, kept: &[usize]) -> DMatrix<f64> {
        let slopes = self.with_model(kept, |model| fit::slopes(model, x));
        let slopes = slopes.expect("zeros of any size have residuals");
        let touch_rows = slopes.nrows().saturating_sub(kept.len());
        slopes.rows(0, touch_rows).into_owned()
    }

    /// Returns those of some unknowns that the touches determine, and their condition.
    fn observable(&self, mut kept: Vec<usize>) -> Result<(Vec<usize>, f64), FitError> {
        let start = DVector::zeros(self.unknowns);
        while !kept.is_empty() {
            let svd = self.jacobian(&start, &kept).svd(false, true);
            let (largest, least) = (svd.singular_values.max(), svd.singular_values.min());
            if largest > 0.0 && least / largest >= OBSERVABLE_RATIO {
                if kept.first().is_some_and(|first| *first < self.chain.dof()) {
                    return Ok((kept, largest / least));
                }
                break;
            }
            let row = svd.singular_values.imin();
            let weakest = svd
                .v_t
                .as_ref()
                .map_or(0, |v_t| v_t.row(row).iamax_full().1);
            kept.remove(weakest.min(kept.len() - 1));
        }
        Err(FitError::Unobservable)
    }

    fn solve(&self) -> Result<ZerosFit, FitError> {
        let mut candidates: Vec<usize> = (0..self.unknowns).collect();
        loop {
            let (mut kept, condition) = self.observable(candidates)?;
            let start = DVector::zeros(self.unknowns);
            let solution = self.with_model(&kept, |model| fit::least_squares(model, start));
            let (x, _) = solution.ok_or(FitError::Unobservable)?;
            let sigma = self.sigma(&x, &kept);
            match self.unseen(&kept, &sigma) {
                Some(place) => kept.remove(place),
                None => return Ok(self.fit_result(&x, &kept, &sigma, condition)),
            };
            candidates = kept;
        }
    }

    /// Returns the place of the least known joint, if the touches say less of its zero than is assumed without any: scatter alone
    /// makes a joint look seen that turns everything touched with it.
    fn unseen(&self, kept: &[usize], sigma: &[f64]) -> Option<usize> {
        let joints = kept.iter().zip(sigma).enumerate();
        let unseen = joints.filter(|(_, (unknown, sigma))| {
            **unknown < self.chain.dof() && **sigma >= ZERO_PRIOR_RAD
        });
        let least_known = unseen.max_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b));
        least_known.map(|(place, _)| place)
    }

    fn fit_result(
        &self,
        x: &DVector<f64>,
        kept: &[usize],
        sigma: &[f64],
        condition: f64,
    ) -> ZerosFit {
        let (offsets_rad, tip_m) = self.state(x);
        let norms = |x: &DVector<f64>| -> Vec<f64> {
            self.residuals(x).iter().map(Vector3::norm).collect()
        };
        let residuals_m = norms(x);
        let select = |norms: &[f64], used: bool| -> Vec<f64> {
            let all = norms.iter().copied().enumerate();
            all.filter(|(index, _)| self.is_used(*index) == used && self.left_out != Some(*index))
                .map(|(_, value)| value)
                .collect()
        };
        let held_out = select(&residuals_m, false);
        let sigma_of = |joint: usize| {
            let place = kept.iter().position(|unknown| *unknown == joint);
            place.map_or(f64::INFINITY, |place| sigma[place])
        };
        let is_dropped = |joint: &usize| !kept.contains(joint);
        ZerosFit {
            dropped: (0..self.chain.dof()).filter(is_dropped).collect(),
            sigma_rad: offsets_rad.map(|joint, _| sigma_of(joint)),
            before_m: rms(select(&norms(&DVector::zeros(self.unknowns)), true)),
            rms_m: rms(select(&residuals_m, true)),
            held_out_m: (!held_out.is_empty()).then(|| rms(held_out)),
            outlier: None,
            offsets_rad,
            tip_m,
            condition,
            residuals_m,
        }
    }

    /// Returns the standard deviations of the kept unknowns.
    fn sigma(&self, x: &DVector<f64>, kept: &[usize]) -> Vec<f64> {
        let jacobian = self.jacobian(x, kept);
        let residuals = self.stacked_residuals(x);
        let equations = residuals.iter().filter(|value| **value != 0.0).count();
        let freedom = equations
            .saturating_sub(kept.len() + self.eliminated_unknowns())
            .max(1);
        let variance = residuals.norm_squared() / freedom as f64;
        let Some(inverse) = (jacobian.transpose() * &jacobian).try_inverse() else {
            return vec![f64::INFINITY; kept.len()];
        };
        let variances = inverse.diagonal();
        let pairs = variances.iter().zip(kept);
        pairs
            .map(|(value, unknown)| (value * variance).max(0.0).sqrt() * self.prior(*unknown))
            .collect()
    }

    /// Returns the number of unknowns of points and planes that the residuals eliminate.
    fn eliminated_unknowns(&self) -> usize {
        let mut groups: Vec<TouchTarget> = Vec::new();
        for touch in self.touches {
            let is_known = matches!(touch.target, TouchTarget::Known(_));
            if !is_known && !groups.contains(&touch.target) {
                groups.push(touch.target);
            }
        }
        3 * groups.len()
    }
}
