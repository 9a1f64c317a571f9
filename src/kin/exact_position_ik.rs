//! The tip exactly at its place, its direction as near to the goal's as it can be.
//!
//! Where the direction cannot be met, what is missing of it bends the slope: of a stretched arm it does
//! not change to the first order at all. Steps by the slope alone would circle around the best then, so
//! the second order is taken in: of the direction, and of the place that the step must keep.

#![expect(
    clippy::indexing_slicing,
    reason = "vectors and matrices of fixed size, indexed below it"
)]

use nalgebra::{SVector, Vector3};

use super::LENGTH_M;
use super::fast_fk::TipMotion;
use super::ik_solver::{HeldJoints, IkResidual, IkSolution, IkTarget, JointBounds, REACHED_M};
use super::symmetric_matrix::SymmetricMatrix;

/// Of a step that meets the position exactly: small enough not to be seen in the direction.
const DAMPING: f64 = 1e-6;
/// Damped more than this, a step does not turn the tool any more: only its place is left to mend.
const DAMPING_MAX: f64 = 1e9;
/// Of the place against the direction, where a step is judged.
const PLACE_WEIGHT: f64 = 1e4;
/// Steps that only mend the place, at the end; damped so much, they do not turn the tool.
const MENDS_MAX: usize = 12;
const DAMPING_MEND: f64 = 1e6;
/// Each leaves no more than this share of what was missing, or the last has been made.
const MENDED_SHARE: f64 = 0.9;
/// Dampings of the steps by the bend of the place that follow where that fails, from the boldest to the most careful.
const DAMPINGS_BENT: [f64; 5] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4];
/// A step that makes the whole better by less than this share is the last.
const SETTLED_SHARE: f64 = 1e-12;
const SETTLED_RAD: f64 = 1e-8;
/// A step shorter than so, and than this share of the one before, needs no other judgement.
const CLOSE_RAD: f64 = 1e-2;
const CLOSES_IN: f64 = 0.3;
/// Leaning less than this, in squares, the slope alone leads there as soon.
const LEANS: f64 = 1e-8;
/// Leaning more than so, told by its cosine, the bend says nothing of the way.
const LEANS_FAR_COS: f64 = 0.5;
/// A joint this near to its limit may be pushed against it.
const AT_LIMIT_RAD: f64 = 1e-9;

/// Error to the goal, and the terms for its curvature.
pub(super) struct ExactPositionStep<const N: usize> {
    now: IkResidual<N>,
    /// The joints' axes, not only what of them leans the tip.
    axes: [Vector3<f64>; N],
    /// Present direction of the tip, and below its goal.
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
        self.now.position.norm_squared() * (PLACE_WEIGHT / (LENGTH_M * LENGTH_M))
            + self.now.direction.norm_squared()
    }

    /// To the place exactly, and to the direction as far as the damping lets it turn.
    fn step(&self, bounds: &JointBounds<N>, q: &SVector<f64, N>, damping: f64) -> SVector<f64, N> {
        let leans = self.now.direction.norm_squared() > LEANS;
        let bent = (leans && self.axis.dot(&self.to) > LEANS_FAR_COS)
            .then(|| self.bent_step(bounds, q, damping));
        match bent {
            Some(step) if step.amax() > 0.0 => step,
            _ => self.straight_step(bounds, q, damping),
        }
    }

    /// By the slope alone.
    fn straight_step(
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
        self.to_the_place(bounds, q, (&hessian, &gradient))
    }

    /// Newton's step for half the square of the angle, along places that keep to the goal's. No step
    /// at all where the way bends so that its best is not this way.
    fn bent_step(
        &self,
        bounds: &JointBounds<N>,
        q: &SVector<f64, N>,
        damping: f64,
    ) -> SVector<f64, N> {
        let (now, axes) = (&self.now, &self.axes);
        let cos = self.axis.dot(&self.to).min(1.0);
        let angle = now.direction.norm();
        let sin = angle.sin();
        // Of half the angle's square, by its cosine.
        let first = angle / sin;
        let second = (sin - angle * cos) / (sin * sin * sin);
        let swings = axes.map(|axis| axis.cross(&self.axis));
        let slopes = swings.map(|swing| swing.dot(&self.to));
        let pull = self.multipliers(bounds, q, &slopes.map(|slope| -first * slope));
        // What holds the place adds nothing along it, and keeps the whole positive.
        let weight = PLACE_WEIGHT;
        let hessian = SymmetricMatrix::new(|far, near| {
            // A joint nearer to the base turns the axes and levers of those farther out.
            let lean = self.to.dot(&axes[near].cross(&swings[far]));
            let lever = pull.dot(&axes[near].cross(&now.linear[far]));
            second * slopes[far] * slopes[near] - first * lean - lever
                + weight * now.linear[far].dot(&now.linear[near])
        });
        let hessian = hessian.damped(damping);
        let gradient = SVector::from_fn(|joint: usize, _| {
            first * slopes[joint] + weight * now.linear[joint].dot(&now.position)
        });
        self.to_the_place(bounds, q, (&hessian, &gradient))
    }

    /// The best step of those that end at the place.
    fn to_the_place(
        &self,
        bounds: &JointBounds<N>,
        q: &SVector<f64, N>,
        (hessian, gradient): (&SymmetricMatrix<N>, &SVector<f64, N>),
    ) -> SVector<f64, N> {
        bounds.step(q, |held: &HeldJoints<N>| {
            held.solve_exact(hessian, gradient, &self.now.linear, &self.now.position)
        })
    }

    /// Newton's step for half the square of what is missing of the place, by its slope and its bend.
    fn mend_bent(
        &self,
        bounds: &JointBounds<N>,
        q: &SVector<f64, N>,
        damping: f64,
    ) -> SVector<f64, N> {
        let (now, axes) = (&self.now, &self.axes);
        let hessian = SymmetricMatrix::new(|far, near| {
            now.linear[far].dot(&now.linear[near])
                - now.position.dot(&axes[near].cross(&now.linear[far]))
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
        let free = |joint: &usize| bounds.margin(q, *joint) > AT_LIMIT_RAD;
        let metric = SymmetricMatrix::<3>::new(|row, column| {
            let joints = (0..N).filter(free);
            joints
                .map(|joint| linear[joint][row] * linear[joint][column])
                .sum()
        });
        let slack = (metric.at(0, 0) + metric.at(1, 1) + metric.at(2, 2)) * 1e-12 + 1e-15;
        let along = (0..N)
            .filter(free)
            .map(|joint| linear[joint] * slope[joint]);
        let factor = metric.damped(slack).factor();
        factor.map_or_else(Vector3::zeros, |factor| factor.solve(&along.sum()))
    }
}

/// Whole steps overshoot where some joint hardly changes the direction, and would circle for ever: a
/// step that gains nothing is taken back and damped.
pub(super) fn descend<const N: usize>(
    leaning: impl Fn(&SVector<f64, N>) -> ExactPositionStep<N>,
    (bounds, steps_max): (&JointBounds<N>, usize),
    mut q: SVector<f64, N>,
) -> IkSolution {
    let mut at = leaning(&q);
    let (mut damping, mut scale) = (DAMPING, 1.0);
    let (mut steps, mut step_before_rad) = (0, f64::INFINITY);
    while steps < steps_max && !at.now.small() && damping < DAMPING_MAX {
        steps += 1;
        let step = at.step(bounds, &q, damping) * scale;
        let next = bounds.within(&(q + step));
        let then = leaning(&next);
        let gain = at.merit() - then.merit();
        let step_rad = step.amax();
        // What is weighed has its best a little off the place; so near, shorter and shorter steps tell better.
        let closes_in = step_rad < CLOSE_RAD && step_rad < CLOSES_IN * step_before_rad;
        let settled = step_rad < SETTLED_RAD || gain.abs() < SETTLED_SHARE * at.merit();
        step_before_rad = step_rad;
        if gain > 0.0 || closes_in {
            (q, at) = (next, then);
            (damping, scale) = ((damping * 0.1).max(DAMPING), 1.0);
        } else {
            damping *= 10.0;
            scale *= if damping > 1.0 { 0.5 } else { 1.0 };
        }
        if settled {
            break;
        }
    }
    // What was weighed against the direction is made exact.
    for _ in 0..MENDS_MAX {
        let missing_m = at.now.position.norm();
        if missing_m < REACHED_M {
            break;
        }
        // Near a stretched arm the slope leads nowhere; how the place bends does.
        let straight = || at.straight_step(bounds, &q, DAMPING_MEND);
        let bent = DAMPINGS_BENT
            .iter()
            .map(|damping| at.mend_bent(bounds, &q, *damping));
        let better = std::iter::once_with(straight).chain(bent).find_map(|step| {
            steps += 1;
            let next = bounds.within(&(q + step));
            let then = leaning(&next);
            (then.now.position.norm() <= MENDED_SHARE * missing_m).then_some((next, then))
        });
        let Some(better) = better else { break };
        (q, at) = better;
    }
    at.now.solution(&q, steps)
}
