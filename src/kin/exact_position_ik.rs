//! Moves the tip exactly to its goal's position, with its direction as near to the goal's as
//! possible.
//!
//! Where the direction cannot be met, the remaining error curves the cost: for a stretched arm the
//! direction does not change to first order at all. First-order steps would then circle around the
//! optimum, so the second order is included, both of the direction and of the position that a step
//! must keep.

#![expect(
    clippy::indexing_slicing,
    reason = "vectors and matrices of fixed size, indexed below it"
)]

use nalgebra::{SVector, Vector3};

use super::LENGTH_M;
use super::fast_fk::TipMotion;
use super::ik_solver::{HeldJoints, IkResidual, IkSolution, IkTarget, JointBounds, REACHED_M};
use super::symmetric_matrix::SymmetricMatrix;

/// Damping of a step that meets the position exactly, too small to affect the direction.
const DAMPING: f64 = 1e-6;
/// Damping above which a step no longer turns the tool: only the position remains to be corrected.
const DAMPING_MAX: f64 = 1e9;
/// Weight of position against direction when a step is judged.
const POSITION_WEIGHT: f64 = 1e4;
/// Most steps at the end that only correct the position, and their damping: they do not turn the
/// tool.
const CORRECTIONS_MAX: usize = 12;
const DAMPING_CORRECTION: f64 = 1e6;
/// Largest fraction of the position error that a correction may leave; otherwise the corrections
/// end.
const CORRECTED_FRACTION: f64 = 0.9;
/// Dampings of the second-order corrections to try where that fails, from the boldest to the most
/// careful.
const DAMPINGS_SECOND_ORDER: [f64; 5] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4];
/// A step that improves the merit by less than this fraction is the last.
const SETTLED_FRACTION: f64 = 1e-12;
const SETTLED_RAD: f64 = 1e-8;
/// A step shorter than this, and than this fraction of the previous one, is accepted as it is.
const CLOSE_RAD: f64 = 1e-2;
const CLOSING_FRACTION: f64 = 0.3;
/// Squared lean, in radians, below which a first-order step converges as fast.
const LEAN_SQUARED_MIN: f64 = 1e-8;
/// Cosine of the lean beyond which the second order is no guide.
const LEAN_COS_MIN: f64 = 0.5;
/// A joint this near to its limit may be pushed against it.
const AT_LIMIT_RAD: f64 = 1e-9;

/// Error to the goal, and the terms for its curvature.
pub(super) struct ExactPositionStep<const N: usize> {
    now: IkResidual<N>,
    /// The joints' full axes, not only the components that lean the tip.
    axes: [Vector3<f64>; N],
    /// Present direction of the tip, and then its goal.
    axis: Vector3<f64>,
    to: Vector3<f64>,
}

impl<const N: usize> ExactPositionStep<N> {
    pub(super) fn to_goal(motion: TipMotion<N>, goal: &IkTarget, to: Vector3<f64>) -> Self {
        Self {
            axes: motion.angular,
            axis: motion.axis,
            now: IkResidual::to_goal(motion, goal),
            to,
        }
    }

    /// Returns the merit that a step reduces; position errors weigh most.
    fn merit(&self) -> f64 {
        self.now.position.norm_squared() * (POSITION_WEIGHT / (LENGTH_M * LENGTH_M))
            + self.now.direction.norm_squared()
    }

    /// Returns a step that meets the position exactly, and the direction as far as the damping lets
    /// the tool turn.
    fn step(&self, bounds: &JointBounds<N>, q: &SVector<f64, N>, damping: f64) -> SVector<f64, N> {
        let is_leaning = self.now.direction.norm_squared() > LEAN_SQUARED_MIN;
        let second_order_step = (is_leaning && self.axis.dot(&self.to) > LEAN_COS_MIN)
            .then(|| self.second_order(bounds, q, damping));
        match second_order_step {
            Some(step) if step.amax() > 0.0 => step,
            _ => self.first_order(bounds, q, damping),
        }
    }

    /// Returns the first-order step.
    fn first_order(
        &self,
        bounds: &JointBounds<N>,
        q: &SVector<f64, N>,
        damping: f64,
    ) -> SVector<f64, N> {
        let now = &self.now;
        let hessian =
            SymmetricMatrix::new(|row, column| now.angular[row].dot(&now.angular[column]));
        let hessian = hessian.damped(damping);
        let gradient = SVector::from_fn(|row: usize, _| now.angular[row].dot(&now.direction));
        self.constrained_step(bounds, q, (&hessian, &gradient))
    }

    /// Returns Newton's step for half the squared angle, along positions that match the goal's.
    /// Returns a zero step where the curvature leads away from the optimum.
    fn second_order(
        &self,
        bounds: &JointBounds<N>,
        q: &SVector<f64, N>,
        damping: f64,
    ) -> SVector<f64, N> {
        let (now, axes) = (&self.now, &self.axes);
        let cos = self.axis.dot(&self.to).min(1.0);
        let angle = now.direction.norm();
        let sin = angle.sin();
        // Derivatives of half the squared angle by its cosine.
        let first = angle / sin;
        let second = (sin - angle * cos) / (sin * sin * sin);
        let swings = axes.map(|axis| axis.cross(&self.axis));
        let slopes = swings.map(|swing| swing.dot(&self.to));
        let multipliers = self.multipliers(bounds, q, &slopes.map(|slope| -first * slope));
        // The position term adds nothing along the constraint, and keeps the matrix positive.
        let weight = POSITION_WEIGHT;
        let hessian = SymmetricMatrix::new(|outer, inner| {
            // A joint nearer to the base turns the axes and levers of the joints farther out.
            let lean_rate = self.to.dot(&axes[inner].cross(&swings[outer]));
            let lever_rate = multipliers.dot(&axes[inner].cross(&now.linear[outer]));
            second * slopes[outer] * slopes[inner] - first * lean_rate - lever_rate
                + weight * now.linear[outer].dot(&now.linear[inner])
        });
        let hessian = hessian.damped(damping);
        let gradient = SVector::from_fn(|joint: usize, _| {
            first * slopes[joint] + weight * now.linear[joint].dot(&now.position)
        });
        self.constrained_step(bounds, q, (&hessian, &gradient))
    }

    /// Returns the best step of those that meet the position.
    fn constrained_step(
        &self,
        bounds: &JointBounds<N>,
        q: &SVector<f64, N>,
        (hessian, gradient): (&SymmetricMatrix<N>, &SVector<f64, N>),
    ) -> SVector<f64, N> {
        bounds.step(q, |held: &HeldJoints<N>| {
            held.solve_exact(hessian, gradient, &self.now.linear, &self.now.position)
        })
    }

    /// Returns Newton's step for half the squared position error, with its second order.
    fn correct_position(
        &self,
        bounds: &JointBounds<N>,
        q: &SVector<f64, N>,
        damping: f64,
    ) -> SVector<f64, N> {
        let (now, axes) = (&self.now, &self.axes);
        let hessian = SymmetricMatrix::new(|outer, inner| {
            now.linear[outer].dot(&now.linear[inner])
                - now.position.dot(&axes[inner].cross(&now.linear[outer]))
        });
        let hessian = hessian.damped(damping);
        let gradient = SVector::from_fn(|joint: usize, _| now.linear[joint].dot(&now.position));
        bounds.step(q, |held: &HeldJoints<N>| held.solve(&hessian, &gradient))
    }

    /// Returns the multipliers of the position constraint that best balance the remaining slope by the free joints.
    fn multipliers(
        &self,
        bounds: &JointBounds<N>,
        q: &SVector<f64, N>,
        slope: &[f64; N],
    ) -> Vector3<f64> {
        let linear = &self.now.linear;
        let is_free = |joint: &usize| bounds.margin(q, *joint) > AT_LIMIT_RAD;
        let metric = SymmetricMatrix::<3>::new(|row, column| {
            let joints = (0..N).filter(is_free);
            joints
                .map(|joint| linear[joint][row] * linear[joint][column])
                .sum()
        });
        let ridge = (metric.at(0, 0) + metric.at(1, 1) + metric.at(2, 2)) * 1e-12 + 1e-15;
        let projected = (0..N)
            .filter(is_free)
            .map(|joint| linear[joint] * slope[joint]);
        let factor = metric.damped(ridge).factor();
        factor.map_or_else(Vector3::zeros, |factor| factor.solve(&projected.sum()))
    }
}

/// Descends to the goal. Undamped steps overshoot where some joint hardly changes the direction,
/// and would circle forever: a step that gains nothing is undone and damped.
pub(super) fn descend<const N: usize>(
    evaluate: impl Fn(&SVector<f64, N>) -> ExactPositionStep<N>,
    (bounds, steps_max): (&JointBounds<N>, usize),
    mut q: SVector<f64, N>,
) -> IkSolution {
    let mut current = evaluate(&q);
    let (mut damping, mut scale) = (DAMPING, 1.0);
    let (mut steps, mut step_before_rad) = (0, f64::INFINITY);
    while steps < steps_max && !current.now.is_small() && damping < DAMPING_MAX {
        steps += 1;
        let step = current.step(bounds, &q, damping) * scale;
        let next = bounds.within(&(q + step));
        let after = evaluate(&next);
        let gain = current.merit() - after.merit();
        let step_rad = step.amax();
        // The weighted merit has its optimum slightly off the position; this near, ever shorter
        // steps are the better sign.
        let is_closing_in = step_rad < CLOSE_RAD && step_rad < CLOSING_FRACTION * step_before_rad;
        let is_settled = step_rad < SETTLED_RAD || gain.abs() < SETTLED_FRACTION * current.merit();
        step_before_rad = step_rad;
        if gain > 0.0 || is_closing_in {
            (q, current) = (next, after);
            (damping, scale) = ((damping * 0.1).max(DAMPING), 1.0);
        } else {
            damping *= 10.0;
            scale *= if damping > 1.0 { 0.5 } else { 1.0 };
        }
        if is_settled {
            break;
        }
    }
    // The position was weighed against the direction: now make it exact.
    for _ in 0..CORRECTIONS_MAX {
        let error_m = current.now.position.norm();
        if error_m < REACHED_M {
            break;
        }
        // Near a stretched arm the first order leads nowhere, but the second order does.
        let first = || current.first_order(bounds, &q, DAMPING_CORRECTION);
        let second = DAMPINGS_SECOND_ORDER
            .iter()
            .map(|damping| current.correct_position(bounds, &q, *damping));
        let better = std::iter::once_with(first).chain(second).find_map(|step| {
            steps += 1;
            let next = bounds.within(&(q + step));
            let after = evaluate(&next);
            (after.now.position.norm() <= CORRECTED_FRACTION * error_m).then_some((next, after))
        });
        let Some(better) = better else { break };
        (q, current) = better;
    }
    current.now.solution(&q, steps)
}
