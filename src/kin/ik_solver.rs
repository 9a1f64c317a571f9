//! Inverse kinematics: damped least squares of fixed size, with the joints' limits inside the step.
//!
//! Two kinds of step. Where the arm has joints enough, position and direction are one residual.
//! Where it has not, position is met exactly and the direction as well as it can be: those are in
//! `exact`. In both, a joint that would pass its limit is held at it and the rest is solved again
//! within the same step: letting it go and holding it in turns from step to step loses a quarter of
//! all goals.

#![expect(
    clippy::indexing_slicing,
    reason = "vectors and matrices of fixed size, indexed below it"
)]

use nalgebra::{Isometry3, Point3, SVector, Unit, Vector3};

use super::exact_position_ik::{self, ExactPositionStep};
use super::fast_fk::TipMotion;
use super::symmetric_matrix::{LdlFactor, SymmetricMatrix};
use super::{KinematicChain, LENGTH_M, ToolTip};
use base::units::{JOINTS_MAX, JointVector};

/// Goal of the tip.
#[derive(Clone, Copy, Debug)]
pub enum IkGoal {
    /// The tip here, and the tool mount turned exactly so.
    Pose(Isometry3<f64>),
    /// The tip here and pointing there; turning about that direction is free.
    PointAndAxis {
        /// In the base frame.
        point_m: Point3<f64>,
        /// In the base frame.
        axis: Unit<Vector3<f64>>,
    },
    /// The tip here, and pointing there as well as it can.
    PointThenAxis {
        /// In the base frame.
        point_m: Point3<f64>,
        /// In the base frame.
        axis: Unit<Vector3<f64>>,
    },
}

/// Joints that meet a goal, checked by forward kinematics and within the joints' limits.
#[derive(Clone, Copy, Debug)]
pub struct IkSolution {
    /// The joints.
    pub q_rad: JointVector,
    /// Distance of the tip from the goal.
    pub off_m: f64,
    /// Angle between the tip's direction and the goal's.
    pub off_rad: f64,
    /// Number of steps, restarts included.
    pub steps: usize,
}

/// The nearest that was found where a goal could not be met.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("nearest is {:.2} mm and {:.2}° away", nearest.off_m * 1e3, nearest.off_rad.to_degrees())]
pub struct IkFailure {
    /// Within limits, but not at the goal.
    pub nearest: IkSolution,
}

/// Good to a ten-thousandth of a millimetre: derivatives over time stay smooth.
pub(super) const REACHED_M: f64 = 1e-7;
const REACHED_RAD: f64 = 1e-6;
const STEPS_MAX: usize = 60;
/// Of one beginning among many: the next one is the better use of time.
const STEPS_COLD_MAX: usize = 20;
const STEP_RAD_MAX: f64 = 0.8;
const DAMPING_LEAST: f64 = 1e-9;
/// Less than this is left, in squares of radians, where a whole step is likely to fit.
const NEAR: f64 = 1e-2;
/// A step that leaves less than this share, in squares, found the slope alike all the way.
const ALIKE_SHARE: f64 = 1e-3;
/// The square of a step, in radians, beyond which its way's bend is worth making up for.
const BENT: f64 = 4e-7;
/// Squared sine of the largest turn whose angle is told by a series.
const SERIES_TO: f64 = 0.01;

impl KinematicChain {
    /// Joints near `seed` that meet the goal.
    ///
    /// # Errors
    /// [`IkFailure`] with the nearest that was found.
    pub fn solve(
        &self,
        tip: &ToolTip,
        goal: &IkGoal,
        seed: &JointVector,
    ) -> Result<IkSolution, IkFailure> {
        let nearest = self.descend(tip, goal, seed, STEPS_MAX);
        if nearest.meets(goal) {
            Ok(nearest)
        } else {
            Err(IkFailure { nearest })
        }
    }

    /// As [`Chain::solve`], but where `seed` does not lead there, up to `restarts` other beginnings
    /// are tried; always the same ones.
    ///
    /// # Errors
    /// [`IkFailure`] with the nearest that was found.
    pub fn solve_anywhere(
        &self,
        tip: &ToolTip,
        goal: &IkGoal,
        seed: &JointVector,
        restarts: usize,
    ) -> Result<IkSolution, IkFailure> {
        // A best direction is come to by and by; a place and a direction soon or never.
        let steps_max = match goal {
            IkGoal::PointThenAxis { .. } => STEPS_MAX,
            _ => STEPS_COLD_MAX,
        };
        let mut nearest = self.descend(tip, goal, seed, steps_max);
        let mut chance = IkRng(0x9e37_79b9_7f4a_7c15);
        for _ in 0..restarts {
            if nearest.meets(goal) {
                break;
            }
            let steps = nearest.steps;
            let found = self.descend(tip, goal, &self.anywhere(&mut chance), steps_max);
            if found.cost() < nearest.cost() {
                nearest = found;
            }
            nearest.steps = steps + found.steps;
        }
        if nearest.meets(goal) {
            Ok(nearest)
        } else {
            Err(IkFailure { nearest })
        }
    }

    /// The `count` beginnings that cold solves try, after the seed itself.
    #[must_use]
    pub fn beginnings(&self, count: usize) -> Vec<JointVector> {
        let mut chance = IkRng(0x9e37_79b9_7f4a_7c15);
        (0..count).map(|_| self.anywhere(&mut chance)).collect()
    }

    fn anywhere(&self, chance: &mut IkRng) -> JointVector {
        let mut q = JointVector::zeros(self.dof());
        for (to, joint) in q.iter_mut().zip(self.joints()) {
            let (lower, upper) = (
                joint.lower_rad.max(-std::f64::consts::PI),
                joint.upper_rad.min(std::f64::consts::PI),
            );
            *to = lower + (upper - lower) * chance.next();
        }
        q
    }

    fn descend(
        &self,
        tip: &ToolTip,
        goal: &IkGoal,
        seed: &JointVector,
        steps_max: usize,
    ) -> IkSolution {
        match self.dof() {
            1 => self.descend_in::<1>(tip, goal, seed, steps_max),
            2 => self.descend_in::<2>(tip, goal, seed, steps_max),
            3 => self.descend_in::<3>(tip, goal, seed, steps_max),
            4 => self.descend_in::<4>(tip, goal, seed, steps_max),
            5 => self.descend_in::<5>(tip, goal, seed, steps_max),
            6 => self.descend_in::<6>(tip, goal, seed, steps_max),
            _ => self.descend_in::<JOINTS_MAX>(tip, goal, seed, steps_max),
        }
    }

    fn descend_in<const N: usize>(
        &self,
        tip: &ToolTip,
        goal: &IkGoal,
        seed: &JointVector,
        steps_max: usize,
    ) -> IkSolution {
        let bounds = JointBounds::of(self);
        let q = bounds.within(&SVector::<f64, N>::from_iterator(
            seed.iter().copied().chain(std::iter::repeat(0.0)),
        ));
        let held = self.folded.hold(tip);
        let target = IkTarget::of(self, goal);
        let motion = |q: &SVector<f64, N>| self.folded.motion(q, &held);
        match goal {
            IkGoal::PointThenAxis { axis, .. } => {
                let leaning =
                    |q: &_| ExactPositionStep::to_goal(motion(q), &target, axis.into_inner());
                exact_position_ik::descend(leaning, (&bounds, steps_max), q)
            }
            _ => {
                let residual = |q: &_| IkResidual::to_goal(motion(q), &target);
                descend_damped(residual, (&bounds, steps_max), q)
            }
        }
    }
}

/// Levenberg–Marquardt with damping in proportion to the error (Sugihara), so that the last
/// steps are nearly Newton's. Where a step left hardly anything, the slope is hardly another: what
/// is left is mended with the matrix that is factored already.
fn descend_damped<const N: usize>(
    residual: impl Fn(&SVector<f64, N>) -> IkResidual<N>,
    (bounds, steps_max): (&JointBounds<N>, usize),
    mut q: SVector<f64, N>,
) -> IkSolution {
    let mut now = residual(&q);
    let mut trust = 1.0;
    let mut steps = 0;
    let mut factored: Option<LdlFactor<N>> = None;
    while steps < steps_max && !now.small() && trust < 1e9 {
        steps += 1;
        let again = factored.take();
        let again = again.and_then(|factor| bounds.free_step(&q, &factor, &now.gradient()));
        let is_again = again.is_some();
        let step = if let Some(step) = again {
            step
        } else {
            let hessian = now.hessian(trust * 1e-3 * now.cost() + DAMPING_LEAST);
            let gradient = now.gradient();
            factored = if now.cost() < NEAR {
                hessian.factor()
            } else {
                None
            };
            let free = factored.as_ref();
            let free = free.and_then(|factor| {
                let step = bounds.free_step(&q, factor, &gradient)?;
                Some(now.unbent(factor, step))
            });
            if let Some(step) = free {
                step
            } else {
                factored = None;
                bounds.step(&q, |held| held.solve(&hessian, &gradient))
            }
        };
        let next = bounds.within(&(q + step));
        let then = residual(&next);
        if then.cost() > ALIKE_SHARE * now.cost() {
            factored = None;
        }
        if then.cost() < now.cost() {
            (q, now) = (next, then);
            trust *= 0.3;
        } else if !is_again {
            trust *= 8.0;
        }
    }
    now.solution(&q, steps)
}

impl IkSolution {
    fn meets(&self, goal: &IkGoal) -> bool {
        // Ten times what a descent stops at: it may run out of steps just above that.
        let position = self.off_m < 10.0 * REACHED_M;
        match goal {
            IkGoal::PointThenAxis { .. } => position,
            _ => position && self.off_rad < 10.0 * REACHED_RAD,
        }
    }

    fn cost(&self) -> f64 {
        (self.off_m / LENGTH_M).hypot(self.off_rad)
    }
}

/// A goal in the terms that steps compare.
pub(super) enum IkTarget {
    /// The tip, and the last joint's frame.
    Frame(Vector3<f64>, [Vector3<f64>; 3]),
    /// The tip, and where it points.
    Axis(Vector3<f64>, Vector3<f64>),
}

impl IkTarget {
    fn of(chain: &KinematicChain, goal: &IkGoal) -> Self {
        match goal {
            IkGoal::Pose(pose) => Self::Frame(
                pose.translation.vector,
                chain.folded.last_frame(&pose.rotation),
            ),
            IkGoal::PointAndAxis { point_m, axis } | IkGoal::PointThenAxis { point_m, axis } => {
                Self::Axis(point_m.coords, axis.into_inner())
            }
        }
    }
}

/// Error to the goal, with its derivatives.
pub(super) struct IkResidual<const N: usize> {
    pub(super) position: Vector3<f64>,
    pub(super) direction: Vector3<f64>,
    pub(super) linear: [Vector3<f64>; N],
    pub(super) angular: [Vector3<f64>; N],
    /// True if these are the joints' full axes, not only their components that tilt a tip.
    is_whole: bool,
}

impl<const N: usize> IkResidual<N> {
    #[inline]
    pub(super) fn to_goal(now: TipMotion<N>, goal: &IkTarget) -> Self {
        let mut angular = now.angular;
        let (point, direction) = match goal {
            IkTarget::Frame(point, frame) => (point, turn_between(&now.last, frame)),
            IkTarget::Axis(point, axis) => {
                for of_joint in &mut angular {
                    *of_joint -= now.axis * now.axis.dot(of_joint);
                }
                (point, lean_between(&now.axis, axis))
            }
        };
        Self {
            position: point - now.point,
            direction,
            linear: now.linear,
            angular,
            is_whole: matches!(goal, IkTarget::Frame(..)),
        }
    }

    fn is_there(&self) -> bool {
        self.position.norm_squared() < REACHED_M * REACHED_M
    }

    pub(super) fn small(&self) -> bool {
        self.is_there() && self.direction.norm_squared() < REACHED_RAD * REACHED_RAD
    }

    fn cost(&self) -> f64 {
        self.position.norm_squared() / (LENGTH_M * LENGTH_M) + self.direction.norm_squared()
    }

    #[inline(always)]
    fn hessian(&self, damping: f64) -> SymmetricMatrix<N> {
        let weight = 1.0 / (LENGTH_M * LENGTH_M);
        let hessian = SymmetricMatrix::new(|row, column| {
            weight * self.linear[row].dot(&self.linear[column])
                + self.angular[row].dot(&self.angular[column])
        });
        hessian.damped(damping)
    }

    #[inline(always)]
    fn gradient(&self) -> SVector<f64, N> {
        self.joint_gradient(&self.position, &self.direction)
    }

    /// Returns the gradient of each joint towards a position and a direction.
    #[inline(always)]
    fn joint_gradient(&self, place: &Vector3<f64>, direction: &Vector3<f64>) -> SVector<f64, N> {
        let place = place * (1.0 / (LENGTH_M * LENGTH_M));
        SVector::from_fn(|row: usize, _| {
            self.linear[row].dot(&place) + self.angular[row].dot(direction)
        })
    }

    /// A step that also makes up for how its way bends, to the second order; the same where that
    /// is too little to matter, or not known.
    #[inline(always)]
    fn unbent(&self, factor: &LdlFactor<N>, step: SVector<f64, N>) -> SVector<f64, N> {
        if !self.is_whole || step.norm_squared() < BENT {
            return step;
        }
        // Joints that are nearer to the base turn the axes and levers of those farther out.
        let mut turn = Vector3::zeros();
        let (mut place, mut direction) = (Vector3::zeros(), Vector3::zeros());
        for joint in 0..N {
            let own = self.angular[joint] * step[joint];
            place += (turn + turn + own).cross(&self.linear[joint]) * step[joint];
            direction += turn.cross(&own);
            turn += own;
        }
        step - factor.solve(&self.joint_gradient(&(place * 0.5), &(direction * 0.5)))
    }

    pub(super) fn solution(&self, q: &SVector<f64, N>, steps: usize) -> IkSolution {
        IkSolution {
            q_rad: JointVector::from_slice(q.as_slice()),
            off_m: self.position.norm(),
            off_rad: self.direction.norm(),
            steps,
        }
    }
}

/// The turn that is left from one frame to another, as axis times angle.
#[inline(always)]
fn turn_between(from: &[Vector3<f64>; 3], to: &[Vector3<f64>; 3]) -> Vector3<f64> {
    let ([ax, ay, az], [bx, by, bz]) = (from, to);
    let half_axis = (ax.cross(bx) + ay.cross(by) + az.cross(bz)) * 0.5;
    let cos = (ax.dot(bx) + ay.dot(by) + az.dot(bz) - 1.0) * 0.5;
    let half_turn = || {
        // R + I has the axis in every column; the largest tells it best.
        let [x, y, z] = [0, 1, 2].map(|column| {
            bx * ax[column] + by * ay[column] + bz * az[column] + Vector3::ith(column, 1.0)
        });
        let larger = |a: Vector3<f64>, b: Vector3<f64>| {
            if b.norm_squared() >= a.norm_squared() {
                b
            } else {
                a
            }
        };
        larger(larger(x, y), z)
    };
    turn_of(&half_axis, cos, half_turn)
}

/// The turn that is left from one direction to another, by the shortest way.
fn lean_between(from: &Vector3<f64>, to: &Vector3<f64>) -> Vector3<f64> {
    turn_of(&from.cross(to), from.dot(to), || {
        let aside = if from.x.abs() < 0.9 {
            Vector3::x()
        } else {
            Vector3::y()
        };
        from.cross(&aside)
    })
}

/// Axis times angle, from axis times sine and the cosine; `half_turn` tells the axis, of any
/// length, where the sine does not.
#[inline(always)]
fn turn_of(
    axis_sin: &Vector3<f64>,
    cos: f64,
    half_turn: impl Fn() -> Vector3<f64>,
) -> Vector3<f64> {
    let square = axis_sin.norm_squared();
    if square < SERIES_TO && cos > 0.0 {
        // Arc sine over sine, by its series: what is left out is below 1e-10 of it.
        let series = 1.0 + square * (1.0 / 6.0 + square * (3.0 / 40.0 + square * (5.0 / 112.0)));
        return axis_sin * series;
    }
    let sin = square.sqrt();
    let angle = sin.atan2(cos);
    if sin > 1e-9 {
        axis_sin * (angle / sin)
    } else {
        half_turn().normalize() * angle
    }
}

pub(super) struct JointBounds<const N: usize> {
    lower: SVector<f64, N>,
    upper: SVector<f64, N>,
}

/// The joints that a step may not move freely, and what it moves them by instead.
pub(super) struct HeldJoints<const N: usize> {
    by: [Option<f64>; N],
}

impl<const N: usize> JointBounds<N> {
    fn of(chain: &KinematicChain) -> Self {
        let joints = chain.joints();
        let pad = std::iter::repeat(0.0);
        Self {
            lower: SVector::from_iterator(
                joints
                    .iter()
                    .map(|joint| joint.lower_rad)
                    .chain(pad.clone()),
            ),
            upper: SVector::from_iterator(joints.iter().map(|joint| joint.upper_rad).chain(pad)),
        }
    }

    pub(super) fn within(&self, q: &SVector<f64, N>) -> SVector<f64, N> {
        q.sup(&self.lower).inf(&self.upper)
    }

    /// Returns the distance of a joint from its nearer limit.
    pub(super) fn margin(&self, q: &SVector<f64, N>, joint: usize) -> f64 {
        (q[joint] - self.lower[joint]).min(self.upper[joint] - q[joint])
    }

    /// The whole step, where it is short enough and passes no limit.
    #[inline(always)]
    fn free_step(
        &self,
        q: &SVector<f64, N>,
        factor: &LdlFactor<N>,
        gradient: &SVector<f64, N>,
    ) -> Option<SVector<f64, N>> {
        let step = factor.solve(gradient);
        let fits = (0..N).all(|joint| {
            let to = q[joint] + step[joint];
            step[joint].abs() <= STEP_RAD_MAX && self.lower[joint] <= to && to <= self.upper[joint]
        });
        fits.then_some(step)
    }

    /// A step that stays within the limits; at most `N` joints are held, one after the other.
    pub(super) fn step(
        &self,
        q: &SVector<f64, N>,
        solve: impl Fn(&HeldJoints<N>) -> Option<SVector<f64, N>>,
    ) -> SVector<f64, N> {
        let mut held = HeldJoints { by: [None; N] };
        let mut step = SVector::zeros();
        for _ in 0..=N {
            let Some(free) = solve(&held) else {
                return step;
            };
            let largest = free.amax();
            step = free * (STEP_RAD_MAX / largest.max(STEP_RAD_MAX));
            if !self.hold_worst(q, &step, &mut held) {
                break;
            }
        }
        step
    }

    /// Holds the joint that would pass its limit the farthest; false if none would.
    fn hold_worst(
        &self,
        q: &SVector<f64, N>,
        step: &SVector<f64, N>,
        held: &mut HeldJoints<N>,
    ) -> bool {
        let mut worst = (0, 1e-12, 0.0);
        for (index, by) in held.by.iter().enumerate() {
            if by.is_some() {
                continue;
            }
            let to = q[index] + step[index];
            let bound = to.clamp(self.lower[index], self.upper[index]);
            if (to - bound).abs() > worst.1 {
                worst = (index, (to - bound).abs(), bound - q[index]);
            }
        }
        let passes = worst.1 > 1e-12;
        if passes && let Some(by) = held.by.get_mut(worst.0) {
            *by = Some(worst.2);
        }
        passes
    }
}

impl<const N: usize> HeldJoints<N> {
    pub(super) fn solve(
        &self,
        hessian: &SymmetricMatrix<N>,
        gradient: &SVector<f64, N>,
    ) -> Option<SVector<f64, N>> {
        let (factor, gradient) = self.factor(hessian, gradient)?;
        Some(factor.solve(&gradient))
    }

    /// `min |direction|² + damping |step|²` where `linear · step = position`.
    pub(super) fn solve_exact(
        &self,
        hessian: &SymmetricMatrix<N>,
        gradient: &SVector<f64, N>,
        linear: &[Vector3<f64>; N],
        position: &Vector3<f64>,
    ) -> Option<SVector<f64, N>> {
        let (factor, gradient) = self.factor(hessian, gradient)?;
        let (mut linear, mut position) = (*linear, *position);
        for (column, by) in linear.iter_mut().zip(&self.by) {
            if let Some(by) = by {
                position -= *column * *by;
                *column = Vector3::zeros();
            }
        }
        let free = factor.solve(&gradient);
        let reach = [0, 1, 2]
            .map(|axis| factor.solve(&SVector::from_fn(|joint: usize, _| linear[joint][axis])));
        let along = |step: &SVector<f64, N>| -> Vector3<f64> {
            linear
                .iter()
                .zip(step.iter())
                .map(|(column, by)| column * *by)
                .sum()
        };
        let metric = reach.each_ref().map(along);
        // Relative to its size: at a singular pose the step stays short instead of failing.
        let slack = (metric[0].x + metric[1].y + metric[2].z) * 1e-13 + 1e-15;
        let metric = SymmetricMatrix::<3>::new(|row, column| metric[row][column]).damped(slack);
        let pull = metric.factor()?.solve(&(position - along(&free)));
        Some(free + reach[0] * pull.x + reach[1] * pull.y + reach[2] * pull.z)
    }

    /// With the rows of held joints saying what they move by.
    #[inline(always)]
    fn factor(
        &self,
        hessian: &SymmetricMatrix<N>,
        gradient: &SVector<f64, N>,
    ) -> Option<(LdlFactor<N>, SVector<f64, N>)> {
        if self.by.iter().all(Option::is_none) {
            return Some((hessian.factor()?, *gradient));
        }
        let (reduced, gradient) = self.reduce(hessian, gradient);
        Some((reduced.factor()?, gradient))
    }

    #[cold]
    fn reduce(
        &self,
        hessian: &SymmetricMatrix<N>,
        gradient: &SVector<f64, N>,
    ) -> (SymmetricMatrix<N>, SVector<f64, N>) {
        let mut gradient = *gradient;
        for (index, by) in self.by.iter().enumerate() {
            if let Some(by) = by {
                gradient -= SVector::from_fn(|row: usize, _| hessian.at(row, index) * *by);
            }
        }
        for (to, by) in gradient.iter_mut().zip(&self.by) {
            if let Some(by) = by {
                *to = *by;
            }
        }
        let reduced = SymmetricMatrix::new(|row, column| {
            if self.by[row].is_some() || self.by[column].is_some() {
                f64::from(u8::from(row == column))
            } else {
                hessian.at(row, column)
            }
        });
        (reduced, gradient)
    }
}

/// xorshift: always the same numbers, evenly between 0 and 1.
struct IkRng(u64);

impl IkRng {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let top = (self.0 >> 32) as u32;
        f64::from(top) / f64::from(u32::MAX)
    }
}
