//! Inverse kinematics: damped least squares of fixed size, with the joints' limits inside the step.
//!
//! There are two kinds of step. If the arm has enough joints, position and direction form one residual.
//! If not, the position is met exactly and the direction as well as possible: see `exact_position_ik`.
//! In both, a joint that would exceed its limit is held at it, and the rest is solved again within the
//! same step: releasing and holding it alternately from step to step loses a quarter of all goals.

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
    /// The tip at this position, and the tool mount in exactly this orientation.
    Pose(Isometry3<f64>),
    /// The tip at this point with this direction; rotation about the direction is free.
    PointAndAxis {
        /// In the base frame.
        point_m: Point3<f64>,
        /// In the base frame.
        axis: Unit<Vector3<f64>>,
    },
    /// The tip at this point, and as near to this direction as possible.
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
    /// Number of steps, including restarts.
    pub steps: usize,
}

/// The nearest solution found for a goal that could not be met.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the nearest pose is {:.2} mm and {:.2}° away", nearest.off_m * 1e3, nearest.off_rad.to_degrees())]
pub struct IkFailure {
    /// The nearest joints within limits, not at the goal.
    pub nearest: IkSolution,
}

/// Position tolerance, a ten-thousandth of a millimetre: derivatives over time stay smooth.
pub(super) const REACHED_M: f64 = 1e-7;
const REACHED_RAD: f64 = 1e-6;
const STEPS_MAX: usize = 60;
/// Most steps from one of many seeds: the next seed is the better use of time.
const STEPS_COLD_MAX: usize = 20;
const STEP_RAD_MAX: f64 = 0.8;
const DAMPING_LEAST: f64 = 1e-9;
/// Cost, in squared radians, below which a full step is likely to fit.
const NEAR_COST: f64 = 1e-2;
/// Fraction of the cost below which a step found nearly the same slope all along.
const SAME_SLOPE_FRACTION: f64 = 1e-3;
/// Squared length of a step, in radians, above which a second-order correction pays off.
const SECOND_ORDER_MIN: f64 = 4e-7;
/// Squared sine of the largest rotation whose angle is computed by a series.
const SERIES_MAX: f64 = 0.01;

impl KinematicChain {
    /// Returns joints near `seed` that meet the goal.
    ///
    /// # Errors
    /// [`IkFailure`] with the nearest solution found.
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

    /// Solves as [`KinematicChain::solve`] does, but if `seed` does not lead to the goal, also
    /// tries up to `restarts` other seeds, always the same ones.
    ///
    /// # Errors
    /// [`IkFailure`] with the nearest solution found.
    pub fn solve_anywhere(
        &self,
        tip: &ToolTip,
        goal: &IkGoal,
        seed: &JointVector,
        restarts: usize,
    ) -> Result<IkSolution, IkFailure> {
        // The best direction is approached gradually; a point and a direction are met soon or
        // never.
        let steps_max = match goal {
            IkGoal::PointThenAxis { .. } => STEPS_MAX,
            _ => STEPS_COLD_MAX,
        };
        let mut nearest = self.descend(tip, goal, seed, steps_max);
        let mut rng = IkRng(0x9e37_79b9_7f4a_7c15);
        for _ in 0..restarts {
            if nearest.meets(goal) {
                break;
            }
            let steps = nearest.steps;
            let solution = self.descend(tip, goal, &self.random_joints(&mut rng), steps_max);
            if solution.cost() < nearest.cost() {
                nearest = solution;
            }
            nearest.steps = steps + solution.steps;
        }
        if nearest.meets(goal) {
            Ok(nearest)
        } else {
            Err(IkFailure { nearest })
        }
    }

    /// Returns the first `count` seeds that [`KinematicChain::solve_anywhere`] tries after its own.
    #[must_use]
    pub fn restart_seeds(&self, count: usize) -> Vec<JointVector> {
        let mut rng = IkRng(0x9e37_79b9_7f4a_7c15);
        (0..count).map(|_| self.random_joints(&mut rng)).collect()
    }

    fn random_joints(&self, rng: &mut IkRng) -> JointVector {
        let mut q = JointVector::zeros(self.dof());
        for (angle, joint) in q.iter_mut().zip(self.joints()) {
            let (lower, upper) = (
                joint.lower_rad.max(-std::f64::consts::PI),
                joint.upper_rad.min(std::f64::consts::PI),
            );
            *angle = lower + (upper - lower) * rng.next();
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
        let folded_tip = self.folded.fold_tip(tip);
        let target = IkTarget::of(self, goal);
        let motion = |q: &SVector<f64, N>| self.folded.motion(q, &folded_tip);
        match goal {
            IkGoal::PointThenAxis { axis, .. } => {
                let evaluate =
                    |q: &_| ExactPositionStep::to_goal(motion(q), &target, axis.into_inner());
                exact_position_ik::descend(evaluate, (&bounds, steps_max), q)
            }
            _ => {
                let residual = |q: &_| IkResidual::to_goal(motion(q), &target);
                descend_damped(residual, (&bounds, steps_max), q)
            }
        }
    }
}

/// Levenberg–Marquardt with damping in proportion to the error (Sugihara), so that the last steps
/// are nearly Newton's. If a step leaves hardly any error, the slope has hardly changed: the rest
/// is corrected with the matrix that is already factored.
fn descend_damped<const N: usize>(
    residual: impl Fn(&SVector<f64, N>) -> IkResidual<N>,
    (bounds, steps_max): (&JointBounds<N>, usize),
    mut q: SVector<f64, N>,
) -> IkSolution {
    let mut current = residual(&q);
    let mut trust = 1.0;
    let mut steps = 0;
    let mut factored: Option<LdlFactor<N>> = None;
    while steps < steps_max && !current.is_small() && trust < 1e9 {
        steps += 1;
        let reused =
            (factored.take()).and_then(|factor| bounds.free_step(&q, &factor, &current.gradient()));
        let is_reused = reused.is_some();
        let step = if let Some(step) = reused {
            step
        } else {
            let hessian = current.hessian(trust * 1e-3 * current.cost() + DAMPING_LEAST);
            let gradient = current.gradient();
            factored = if current.cost() < NEAR_COST {
                hessian.factor()
            } else {
                None
            };
            let free = factored.as_ref();
            let free = free.and_then(|factor| {
                let step = bounds.free_step(&q, factor, &gradient)?;
                Some(current.second_order_step(factor, step))
            });
            if let Some(step) = free {
                step
            } else {
                factored = None;
                bounds.step(&q, |held| held.solve(&hessian, &gradient))
            }
        };
        let next = bounds.within(&(q + step));
        let next_residual = residual(&next);
        if next_residual.cost() > SAME_SLOPE_FRACTION * current.cost() {
            factored = None;
        }
        if next_residual.cost() < current.cost() {
            (q, current) = (next, next_residual);
            trust *= 0.3;
        } else if !is_reused {
            trust *= 8.0;
        }
    }
    current.solution(&q, steps)
}

impl IkSolution {
    fn meets(&self, goal: &IkGoal) -> bool {
        // Ten times the tolerance at which a descent stops: it may run out of steps just above
        // that.
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

/// A goal in the form that steps compare with.
pub(super) enum IkTarget {
    /// The tip, and the last joint's frame.
    Frame(Vector3<f64>, [Vector3<f64>; 3]),
    /// The tip, and its direction.
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
    has_full_axes: bool,
}

impl<const N: usize> IkResidual<N> {
    #[inline]
    pub(super) fn to_goal(now: TipMotion<N>, goal: &IkTarget) -> Self {
        let mut angular = now.angular;
        let (point, direction) = match goal {
            IkTarget::Frame(point, frame) => (point, rotation_between(&now.last, frame)),
            IkTarget::Axis(point, axis) => {
                for axis_of_joint in &mut angular {
                    *axis_of_joint -= now.axis * now.axis.dot(axis_of_joint);
                }
                (point, lean_between(&now.axis, axis))
            }
        };
        Self {
            position: point - now.point,
            direction,
            linear: now.linear,
            angular,
            has_full_axes: matches!(goal, IkTarget::Frame(..)),
        }
    }

    fn is_at_position(&self) -> bool {
        self.position.norm_squared() < REACHED_M * REACHED_M
    }

    pub(super) fn is_small(&self) -> bool {
        self.is_at_position() && self.direction.norm_squared() < REACHED_RAD * REACHED_RAD
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
    fn joint_gradient(&self, position: &Vector3<f64>, direction: &Vector3<f64>) -> SVector<f64, N> {
        let position = position * (1.0 / (LENGTH_M * LENGTH_M));
        SVector::from_fn(|row: usize, _| {
            self.linear[row].dot(&position) + self.angular[row].dot(direction)
        })
    }

    /// Corrects a step to the second order; returns it unchanged if the correction is negligible or
    /// unknown.
    #[inline(always)]
    fn second_order_step(&self, factor: &LdlFactor<N>, step: SVector<f64, N>) -> SVector<f64, N> {
        if !self.has_full_axes || step.norm_squared() < SECOND_ORDER_MIN {
            return step;
        }
        // Joints nearer to the base turn the axes and levers of the joints farther out.
        let mut turn = Vector3::zeros();
        let (mut position, mut direction) = (Vector3::zeros(), Vector3::zeros());
        for joint in 0..N {
            let joint_turn = self.angular[joint] * step[joint];
            position += (turn + turn + joint_turn).cross(&self.linear[joint]) * step[joint];
            direction += turn.cross(&joint_turn);
            turn += joint_turn;
        }
        step - factor.solve(&self.joint_gradient(&(position * 0.5), &(direction * 0.5)))
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

/// Returns the rotation from one frame to another, as axis times angle.
#[inline(always)]
fn rotation_between(from: &[Vector3<f64>; 3], to: &[Vector3<f64>; 3]) -> Vector3<f64> {
    let ([ax, ay, az], [bx, by, bz]) = (from, to);
    let half_axis = (ax.cross(bx) + ay.cross(by) + az.cross(bz)) * 0.5;
    let cos = (ax.dot(bx) + ay.dot(by) + az.dot(bz) - 1.0) * 0.5;
    let half_turn = || {
        // R + I has the axis in every column; the largest is the most precise.
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
    rotation_vector(&half_axis, cos, half_turn)
}

/// Returns the shortest rotation from one direction to another.
fn lean_between(from: &Vector3<f64>, to: &Vector3<f64>) -> Vector3<f64> {
    rotation_vector(&from.cross(to), from.dot(to), || {
        let other_axis = if from.x.abs() < 0.9 {
            Vector3::x()
        } else {
            Vector3::y()
        };
        from.cross(&other_axis)
    })
}

/// Returns axis times angle, from axis times sine and the cosine; `half_turn` gives the axis, of
/// any length, where the sine vanishes.
#[inline(always)]
fn rotation_vector(
    axis_sin: &Vector3<f64>,
    cos: f64,
    half_turn: impl Fn() -> Vector3<f64>,
) -> Vector3<f64> {
    let square = axis_sin.norm_squared();
    if square < SERIES_MAX && cos > 0.0 {
        // Arc sine over sine, by its series, with a relative error below 1e-10.
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

/// The joints that a step may not move freely, and by how much it moves them instead.
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

    /// Returns the full step if it is short enough and exceeds no limit.
    #[inline(always)]
    fn free_step(
        &self,
        q: &SVector<f64, N>,
        factor: &LdlFactor<N>,
        gradient: &SVector<f64, N>,
    ) -> Option<SVector<f64, N>> {
        let step = factor.solve(gradient);
        let is_allowed = (0..N).all(|joint| {
            let to = q[joint] + step[joint];
            step[joint].abs() <= STEP_RAD_MAX && self.lower[joint] <= to && to <= self.upper[joint]
        });
        is_allowed.then_some(step)
    }

    /// Returns a step within the limits; holds at most `N` joints, one after the other.
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

    /// Holds the joint that would exceed its limit the farthest; returns false if none would.
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
        let exceeds = worst.1 > 1e-12;
        if exceeds && let Some(by) = held.by.get_mut(worst.0) {
            *by = Some(worst.2);
        }
        exceeds
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

    /// Solves `min |direction|² + damping |step|²` where `linear · step = position`.
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
        // Relative to the size of the metric: at a singular pose the step stays short instead of
        // failing.
        let ridge = (metric[0].x + metric[1].y + metric[2].z) * 1e-13 + 1e-15;
        let metric = SymmetricMatrix::<3>::new(|row, column| metric[row][column]).damped(ridge);
        let multipliers = metric.factor()?.solve(&(position - along(&free)));
        Some(free + reach[0] * multipliers.x + reach[1] * multipliers.y + reach[2] * multipliers.z)
    }

    /// Factors the matrix with the rows of held joints replaced by their fixed motion.
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
        for (value, by) in gradient.iter_mut().zip(&self.by) {
            if let Some(by) = by {
                *value = *by;
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
