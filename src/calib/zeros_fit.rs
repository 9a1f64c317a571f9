//! By how much joints' zeros are off, from touches of points and planes in many poses.
//!
//! Levenberg–Marquardt over the zeros and, if asked, the tip, held near their present values by
//! Tikhonov terms. What the touches say nothing of is dropped and named, never guessed.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is a touch, an unknown, or the place of one that is kept"
)]

use nalgebra::{DMatrix, DVector, Matrix3, Point3, Vector3};

use super::FitError;
use super::fit::{self, FitModel};
use super::stats::{TouchOutlier, is_outlier, rms};
use base::units::JointVector;
use kin::{KinematicChain, ToolTip};

/// Fewer touches are not fitted.
pub const ZEROS_TOUCHES_MIN: usize = 8;

/// Number of touches from which every fifth is held out and only predicted.
const HELD_OUT_FROM: usize = 10;
const HELD_OUT_EVERY: usize = 5;

/// Singular values below this share of the largest say nothing.
const OBSERVABLE_RATIO: f64 = 1e-3;

/// Prior uncertainty of a zero.
const ZERO_PRIOR_RAD: f64 = 0.05;

/// Prior uncertainty of a tip.
const TIP_PRIOR_M: f64 = 0.01;

/// Repeatability of a touch in the Tikhonov terms.
const TOUCH_M: f64 = 5e-4;

/// Step of the difference quotients, as a share of the priors.
const STEP: f64 = 1e-4;

/// Touched object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TouchTarget {
    /// A point whose place is known.
    Known(Point3<f64>),
    /// A point whose place is not known, the same as in every touch of this number.
    Same(usize),
    /// A plane that is not known, the same as in every touch of this number.
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
    /// The tip with which they belong together, in the tool mount's frame.
    pub tip_m: Point3<f64>,
    /// Standard deviations of the offsets; infinite for joints that were dropped.
    pub sigma_rad: JointVector,
    /// Joints whose zeros do not show in these touches.
    pub dropped: Vec<usize>,
    /// Largest over smallest singular value of what was kept.
    pub condition: f64,
    /// Residuals' root mean square before.
    pub before_m: f64,
    /// Residuals' root mean square now.
    pub rms_m: f64,
    /// The same of touches that the fit has not seen.
    pub held_out_m: Option<f64>,
    /// Per touch.
    pub residuals_m: Vec<f64>,
    /// The touch that was left out.
    pub outlier: Option<TouchOutlier>,
}

/// Fits zeros, and with `with_tip` the tip as well.
///
/// # Errors
/// Fewer than [`ZEROS_TOUCHES_MIN`], or touches in which no zero shows.
pub fn zeros(
    chain: &KinematicChain,
    tip: &ToolTip,
    touches: &[ZerosTouch],
    with_tip: bool,
) -> Result<ZerosFit, FitError> {
    if touches.len() < ZEROS_TOUCHES_MIN {
        return Err(FitError::TooFew {
            what: "known points and planes",
            have: touches.len(),
            need: ZEROS_TOUCHES_MIN,
        });
    }
    let fits = |q: &JointVector| q.len() == chain.dof() && q.is_finite();
    if !touches.iter().all(|touch| fits(&touch.joints_rad)) {
        return Err(FitError::NotFinite);
    }
    let holds_out = touches.len() >= HELD_OUT_FROM;
    let held_out = |index: usize| holds_out && index % HELD_OUT_EVERY == HELD_OUT_EVERY - 1;
    let used: Vec<bool> = (0..touches.len()).map(|index| !held_out(index)).collect();
    let problem = ZerosProblem::new(chain, tip, touches, used, with_tip);
    let first = problem.solve()?;
    let Some(slipped) = slipped(&problem, &first) else {
        return Ok(first);
    };
    let mut used = problem.used.clone();
    if let Some(used) = used.get_mut(slipped.index) {
        *used = false;
    }
    if used.iter().filter(|used| **used).count() < ZEROS_TOUCHES_MIN {
        return Ok(first);
    }
    let problem = ZerosProblem {
        used,
        left_out: Some(slipped.index),
        ..problem
    };
    let mut fit = problem.solve()?;
    let off_m = fit.residuals_m.get(slipped.index).copied();
    fit.outlier = off_m.map(|off_m| TouchOutlier { off_m, ..slipped });
    Ok(fit)
}

/// The worst touch of a fit, if it is not like the others.
fn slipped(problem: &ZerosProblem<'_>, fit: &ZerosFit) -> Option<TouchOutlier> {
    let used = || {
        let all = fit.residuals_m.iter().copied().enumerate();
        all.filter(|(index, _)| problem.is_used(*index))
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
    /// Per group of touches of one plane, its normal before anything is changed.
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
                && !problem.normals.iter().any(|(known, _)| *known == group)
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

    /// An unknown's prior standard deviation.
    fn prior(&self, unknown: usize) -> f64 {
        if unknown < self.chain.dof() {
            ZERO_PRIOR_RAD
        } else {
            TIP_PRIOR_M
        }
    }

    /// Unknowns, as shares of their priors, made offsets and a tip.
    fn state(&self, x: &DVector<f64>) -> (JointVector, Point3<f64>) {
        let value = |unknown: usize| x[unknown] * self.prior(unknown);
        let dof = self.chain.dof();
        let offsets = JointVector::zeros(dof).map(|joint, _| value(joint));
        // The tip is an unknown only where it was asked for.
        let moved = match self.unknowns - dof {
            3 => Vector3::new(value(dof), value(dof + 1), value(dof + 2)),
            _ => Vector3::zeros(),
        };
        (offsets, self.tip.point_m + moved)
    }

    fn points(&self, x: &DVector<f64>) -> Vec<Point3<f64>> {
        let (offsets, tip_m) = self.state(x);
        let at = |touch: &ZerosTouch| {
            let joints = touch.joints_rad.zip(&offsets, |q, offset| q + offset);
            self.chain.forward(&joints) * tip_m
        };
        self.touches.iter().map(at).collect()
    }

    fn of_group<'b>(
        &'b self,
        points: &'b [Point3<f64>],
        target: TouchTarget,
    ) -> impl Iterator<Item = Vector3<f64>> + 'b {
        let all = self.touches.iter().zip(points).enumerate();
        all.filter(move |(index, (touch, _))| self.is_used(*index) && touch.target == target)
            .map(|(_, (_, point))| point.coords)
    }

    fn mean(&self, points: &[Point3<f64>], target: TouchTarget) -> Vector3<f64> {
        let (mut sum, mut count) = (Vector3::zeros(), 0.0_f64);
        for point in self.of_group(points, target) {
            sum += point;
            count += 1.0;
        }
        sum / count.max(1.0)
    }

    /// Returns the middle and the normal of the touches of a plane.
    fn best_plane(&self, points: &[Point3<f64>], group: usize) -> [Vector3<f64>; 2] {
        let target = TouchTarget::Plane(group);
        let middle = self.mean(points, target);
        let scatter: Matrix3<f64> = self
            .of_group(points, target)
            .map(|point| (point - middle) * (point - middle).transpose())
            .sum();
        let eigen = scatter.symmetric_eigen();
        let normal = eigen
            .eigenvectors
            .column(eigen.eigenvalues.imin())
            .into_owned();
        let before = self.normals.iter().find(|(known, _)| *known == group);
        let turned = before.is_some_and(|(_, before)| before.dot(&normal) < 0.0);
        [middle, if turned { -normal } else { normal }]
    }

    /// Three numbers a touch; a plane leaves two of them 0.
    fn residuals(&self, x: &DVector<f64>) -> Vec<Vector3<f64>> {
        let points = self.points(x);
        let mut seen: Vec<(TouchTarget, [Vector3<f64>; 2])> = Vec::new();
        let off = |(touch, point): (&ZerosTouch, &Point3<f64>)| {
            let target = touch.target;
            let known = seen.iter().find(|(known, _)| *known == target);
            let [middle, normal] = known.map(|(_, found)| *found).unwrap_or_else(|| {
                let found = match target {
                    TouchTarget::Known(at) => [at.coords, Vector3::zeros()],
                    TouchTarget::Same(_) => [self.mean(&points, target), Vector3::zeros()],
                    TouchTarget::Plane(group) => self.best_plane(&points, group),
                };
                seen.push((target, found));
                found
            });
            let off = point.coords - middle;
            match target {
                TouchTarget::Plane(_) => Vector3::new(normal.dot(&off), 0.0, 0.0),
                _ => off,
            }
        };
        self.touches.iter().zip(&points).map(off).collect()
    }

    /// The residuals of touches that are used, one under the other.
    fn stacked(&self, x: &DVector<f64>) -> DVector<f64> {
        let used = self.residuals(x).into_iter().enumerate();
        let used = used.filter(|(index, _)| self.is_used(*index));
        let numbers: Vec<f64> = used.flat_map(|(_, r)| [r.x, r.y, r.z]).collect();
        DVector::from_vec(numbers)
    }

    /// Hands over the model of which those unknowns are fitted that show in the touches. Behind the touches come the Tikhonov terms.
    fn with_kept<T>(
        &self,
        kept: &[usize],
        then: impl FnOnce(&FitModel<'_, DVector<f64>>) -> T,
    ) -> T {
        let off = |x: &DVector<f64>| {
            let touches = self.stacked(x);
            let held = kept.iter().map(|unknown| x[*unknown] * TOUCH_M);
            let all = touches.iter().copied().chain(held);
            Some(DVector::from_iterator(touches.len() + kept.len(), all))
        };
        let moved = |x: &DVector<f64>, by: &DVector<f64>| {
            let mut next = x.clone();
            for (unknown, by) in kept.iter().zip(by.iter()) {
                next[*unknown] += by;
            }
            next
        };
        then(&FitModel {
            off: &off,
            moved: &moved,
            steps: &vec![STEP; kept.len()],
        })
    }

    #[expect(clippy::expect_used, reason = "zeros of any size have residuals")]
    fn jacobian(&self, x: &DVector<f64>, kept: &[usize]) -> DMatrix<f64> {
        let all = self.with_kept(kept, |model| fit::slopes(model, x));
        let all = all.expect("every state is possible");
        let touches = all.nrows().saturating_sub(kept.len());
        all.rows(0, touches).into_owned()
    }

    /// The unknowns that show in the touches, and how well.
    fn observable(&self) -> Result<(Vec<usize>, f64), FitError> {
        let mut kept: Vec<usize> = (0..self.unknowns).collect();
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
        let (kept, condition) = self.observable()?;
        let start = DVector::zeros(self.unknowns);
        let found = self.with_kept(&kept, |model| fit::least_squares(model, start));
        let (x, _) = found.ok_or(FitError::Unobservable)?;
        Ok(self.fit_result(&x, &kept, condition))
    }

    fn fit_result(&self, x: &DVector<f64>, kept: &[usize], condition: f64) -> ZerosFit {
        let (offsets_rad, tip_m) = self.state(x);
        let norms = |x: &DVector<f64>| -> Vec<f64> {
            self.residuals(x).iter().map(Vector3::norm).collect()
        };
        let residuals_m = norms(x);
        let some = |all: &[f64], used: bool| -> Vec<f64> {
            let all = all.iter().copied().enumerate();
            all.filter(|(index, _)| self.is_used(*index) == used && self.left_out != Some(*index))
                .map(|(_, value)| value)
                .collect()
        };
        let held_out = some(&residuals_m, false);
        let sigma = self.sigma(x, kept);
        let sigma_of = |joint: usize| {
            let place = kept.iter().position(|unknown| *unknown == joint);
            place.map_or(f64::INFINITY, |place| sigma[place])
        };
        let is_dropped = |joint: &usize| !kept.contains(joint);
        ZerosFit {
            dropped: (0..self.chain.dof()).filter(is_dropped).collect(),
            sigma_rad: offsets_rad.map(|joint, _| sigma_of(joint)),
            before_m: rms(some(&norms(&DVector::zeros(self.unknowns)), true)),
            rms_m: rms(some(&residuals_m, true)),
            held_out_m: (!held_out.is_empty()).then(|| rms(held_out)),
            outlier: None,
            offsets_rad,
            tip_m,
            condition,
            residuals_m,
        }
    }

    /// Standard deviations of the kept unknowns.
    fn sigma(&self, x: &DVector<f64>, kept: &[usize]) -> Vec<f64> {
        let jacobian = self.jacobian(x, kept);
        let residuals = self.stacked(x);
        let equations = residuals.iter().filter(|value| **value != 0.0).count();
        let freedom = equations
            .saturating_sub(kept.len() + self.eliminated())
            .max(1);
        let variance = residuals.norm_squared() / freedom as f64;
        let Some(inverse) = (jacobian.transpose() * &jacobian).try_inverse() else {
            return vec![f64::INFINITY; kept.len()];
        };
        let diagonal = inverse.diagonal();
        let of = diagonal.iter().zip(kept);
        of.map(|(value, unknown)| (value * variance).max(0.0).sqrt() * self.prior(*unknown))
            .collect()
    }

    /// Points and planes that were found on the way.
    fn eliminated(&self) -> usize {
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
