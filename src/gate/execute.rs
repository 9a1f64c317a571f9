//! Executes a checked trajectory. Each tick compares the measured position with the plan and
//! yields at most one setpoint.
//!
//! One number, the rate, is the speed of the goal along the path: 1 as planned, 0 at rest. It never
//! jumps: waiting, holding, resuming and stopping are all ramps of it, so no goal asks more of a
//! joint than the path and its proven brake do. A lift is a second path, straight up, with the same
//! rate.

use std::time::Duration;

use super::check::{StartMismatch, check_at_start};
use super::clearance::tip_m;
use super::concert::PartState;
use super::depth_trim::TrimRamp;
use super::disturbance::{self, Disturbance, DisturbanceObserver, NormalLoads, ObservedPlace};
use super::following_error::{self, FollowingErrorMonitor};
use super::limp_joint::LIMP_TIME;
use super::sag_lead::{LedPlace, ReadingOf, SagLead, TipPush};
use super::stop_proof::{ProvenLift, SMOOTH_PEAK, ticks_to_brake, touches};
use super::{CheckedTrajectory, Setpoint, TorqueLimit};
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use kin::ToolTip;
use nalgebra::Vector3;
use plan::{NEIGHBOUR_FOLLOWING_M, SpanKind, TrajectorySpan};
use scene::{Scene, ToolKind};

mod holding;
mod landing;
mod let_go;
mod neighbours;
mod safe_end;
mod standing;

use let_go::LettingGo;

/// Least duration of a lift.
const LIFT_TICKS_MIN: f64 = 10.0;

/// Least number of ticks in which a lift under way comes to rest.
const LIFT_BRAKE_TICKS_MIN: f64 = 6.0;

/// Search range ahead of the arm's last sample on its path: far beyond the lag of servos, and short
/// enough not to find the arm on a different line.
const FOLLOW_SAMPLES_MAX: usize = 100;

/// Most samples that a stalled arm goes back along its path before it lifts.
const BACK_SAMPLES_MAX: usize = 100;

/// Height over the sheet from which a tip touches nothing, as far as is known.
const FREE_MM: f64 = 2.0;

/// Ticks in which an arm sinks whose servos were just energised, and most in which it comes to its end.
const SINKING_TICKS: u32 = 40;
const ARRIVING_TICKS: u32 = 60;

/// Most ticks for which goals that stand are sent, until what they lead by is that of an arm at rest.
const RESTING_TICKS: u32 = 15;

/// A checked trajectory that is being executed. Made by [`CheckedTrajectory::begin`].
#[derive(Debug)]
pub struct Execution {
    pub(super) checked: CheckedTrajectory,
    phase: ExecutionPhase,
    request: MotionGoal,
    /// Samples per tick: 1 as planned, 0 at rest, below 0 going back.
    rate: f64,
    /// What the rate was last on its way to.
    target_rate: f64,
    /// Position on the path, in samples.
    position: f64,
    /// Where the arm shall be: the goals that are sent lead it against gravity.
    goal_rad: JointVector,
    sag: SagLead,
    pub(super) trim: TrimRamp,
    /// Ticks left in which it stands at its beginning, and at its end, while the lead of its goals is corrected.
    sinking_ticks: u32,
    arriving_ticks: u32,
    /// Ticks left in which a tip that came down is waited for.
    landing_ticks: u32,
    /// Ticks left in which goals that stand come to lead an arm at rest.
    resting_ticks: u32,
    monitor: FollowingErrorMonitor,
    /// `None` for a motion that feels for the sheet and presses on it, and for an arm without masses or servo figures.
    disturbance: Option<DisturbanceObserver>,
    /// `true` while the motion is paused by its caller.
    is_paused: bool,
    is_stopped: bool,
    has_lifted: bool,
    /// Duration of a stop's lift, once there is one.
    lift_time: Duration,
    has_let_go: bool,
    /// `true` while it is held because another arm is.
    is_held_with_other: bool,
    /// The arm whose stop made this one stop.
    stopped_with: Option<String>,
    /// Ticks for which the arm has come no farther along its path although its goal has, or has been beside it.
    behind_ticks: u32,
}

#[derive(Debug)]
enum ExecutionPhase {
    /// On the path.
    Path,
    /// On the proven lift from where the path was left.
    Lift(JointSpaceMove),
    /// Moving the goal to where the arm is, which is at rest and cannot come closer.
    LetGo(LettingGo),
    /// At the end: no further goal is sent.
    Stand,
}

/// A straight move in joint space, and where on it the goal is.
#[derive(Clone, Copy, Debug)]
struct JointSpaceMove {
    from_rad: JointVector,
    by_rad: JointVector,
    tick: f64,
    ticks: f64,
}

/// The requested course of the motion.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MotionGoal {
    Go,
    /// Stand with the tip up until resumed.
    Hold(HoldAt),
    /// Stand with the tip up, for good.
    Stop,
    /// Go back to this position, and then do as with `Stop`.
    Back(f64),
    /// The same after a probe felt something: a stop that comes meanwhile does not wait for it.
    Return(f64),
    /// Stand on the path, for good.
    Halt,
}

/// Place at which a held motion comes to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldAt {
    /// At the end of the current stroke; at once where none is being drawn.
    StrokeEnd,
    /// At once, with a lift.
    Once,
}

/// The result of a tick.
#[derive(Debug)]
pub enum ExecutionStep {
    /// Send this.
    Go(Setpoint),
    /// Keep the last setpoint: a joint lags, or a reading is missing.
    Hold,
    /// The last goal was sent already.
    Finished,
}

/// Progress of a motion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExecutionProgress {
    /// The sample last sent.
    pub sample: usize,
    /// Number of samples.
    pub of: usize,
    /// The arm's present activity.
    pub doing: SpanKind,
    /// The stroke or visited point.
    pub item: Option<usize>,
}

/// Reason that a motion cannot begin or go on. A motion under way comes to rest first.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExecutionError {
    /// The arm is not where the proof begins.
    #[error("the arm has moved since the motion was planned: {0}")]
    Moved(#[source] StartMismatch),
    /// It is running already, or is ending.
    #[error("the motion is not held")]
    NotHeld,
    /// The permit has ended.
    #[error(
        "motion is no longer enabled for this scene. Next: an operator runs `steadyhand enable`"
    )]
    Expired,
    /// A joint does not follow.
    #[error("{joint} was {behind_deg} degrees behind its goal for {ms} ms: something blocks it, its servo gave up, or its reading is stuck", ms = following_error::STALL_TIME.as_millis())]
    Stalled {
        /// The joint.
        joint: String,
        /// Distance behind the goal, rounded to whole degrees.
        behind_deg: u32,
    },
    /// A joint's reading stands still while its goal moves.
    #[error("the reading of {joint} did not change for {ms} ms while its goal moved by {goal_deg} degrees: something blocks it, its servo gave up, or its reading is stuck", ms = following_error::STALL_TIME.as_millis())]
    Unmoved {
        /// The joint.
        joint: String,
        /// Range of its goal since the reading last changed, rounded to whole degrees.
        goal_deg: u32,
    },
    /// Something pushes the arm, or its tip presses on something.
    #[error("{0}")]
    Pushed(Disturbance),
    /// A joint has no torque, whatever its servo says.
    #[error("{joint} has no torque, or its reading is stuck: for {ms} ms it was {behind_deg:.1}° from its goal and reported no load. Next: check its power and cable, then `reset`", ms = LIMP_TIME.as_millis())]
    Limp {
        /// The joint.
        joint: String,
        /// Distance from the goal.
        behind_deg: f64,
    },
    /// The arm is beside its path, and another arm may be there.
    #[error("the arm was {off_mm:.0} mm off its path for {ms} ms, mostly because of {joint}; {limit_mm:.0} mm is the limit beside another arm. Something pushes it, or a servo is too weak", ms = following_error::STALL_TIME.as_millis(), limit_mm = NEIGHBOUR_FOLLOWING_M * 1e3)]
    OffPath {
        /// Distance of the farthest point from where it should be.
        off_mm: f64,
        /// The joint that was farthest from where it should be.
        joint: String,
    },
    /// No reading for too long.
    #[error("the arm gave no valid reading for {0} ms; {limit} ms is the limit", limit = following_error::AGE_MAX.as_millis())]
    Blind(u128),
}

impl CheckedTrajectory {
    /// Spends the proof and begins the motion of an arm of whose sag nothing is known.
    ///
    /// # Errors
    /// As [`CheckedTrajectory::begin_led`].
    pub fn begin(
        self,
        measured: &ArmMeasurement,
        now: ClockInstant,
    ) -> Result<Execution, ExecutionError> {
        let sag = SagLead::none(&self.scene.arm);
        self.begin_led(measured, sag, now)
    }

    /// Spends the proof and begins the motion, with goals that lead against gravity. An arm whose servos were just
    /// energised may have sunk by what gravity explains.
    ///
    /// # Errors
    /// When the arm is not where the proof begins, or the permit has ended.
    pub fn begin_led(
        mut self,
        measured: &ArmMeasurement,
        mut sag: SagLead,
        now: ClockInstant,
    ) -> Result<Execution, ExecutionError> {
        if !self.permit.covers(&self.scene, now) {
            return Err(ExecutionError::Expired);
        }
        let first = self.first_sample();
        let raised = sag.raised(&self.scene.arm, &first, measured);
        check_at_start(&self.scene, &first, &raised, now).map_err(ExecutionError::Moved)?;
        let has_to_settle = sag.has_to_settle();
        sag.begin(&self.scene.arm, &first);
        self.concert.note(PartState::Going);
        let first_rate = if self.concert.all_have_begun() {
            1.0
        } else {
            0.0
        };
        Ok(Execution {
            sinking_ticks: if has_to_settle { SINKING_TICKS } else { 0 },
            arriving_ticks: if sag.is_led() { ARRIVING_TICKS } else { 0 },
            landing_ticks: 0,
            resting_ticks: 0,
            disturbance: match self.torque_limit() {
                TorqueLimit::Work if sag.is_led() => DisturbanceObserver::new(&self.scene.arm),
                TorqueLimit::Work | TorqueLimit::Touch => None,
            },
            sag,
            trim: TrimRamp::new(self.trim.take()),
            monitor: FollowingErrorMonitor::new(&self.scene.arm, self.torque_limit()),
            checked: self,
            phase: ExecutionPhase::Path,
            request: MotionGoal::Go,
            // The path begins at rest.
            rate: first_rate,
            target_rate: first_rate,
            position: 0.0,
            goal_rad: first,
            is_paused: false,
            is_stopped: false,
            has_lifted: false,
            lift_time: Duration::ZERO,
            has_let_go: false,
            is_held_with_other: false,
            stopped_with: None,
            behind_ticks: 0,
        })
    }

    #[expect(
        clippy::expect_used,
        reason = "an arm that begins nowhere may not begin"
    )]
    fn first_sample(&self) -> JointVector {
        let first = self.trajectory.samples.first();
        *first.expect("the gate accepts only trajectories of two samples or more")
    }
}

impl Execution {
    /// Returns the frame for this tick.
    ///
    /// # Errors
    /// [`ExecutionError`], once, when a joint has not followed or has not been read for too long. The
    /// goal is at rest by then; further calls move to a safe end: after a stall, back along the path
    /// to where the joint is, and up.
    pub fn next(
        &mut self,
        measured: &ArmMeasurement,
        now: ClockInstant,
    ) -> Result<ExecutionStep, ExecutionError> {
        let step = self.step(measured, now);
        self.tell_neighbours();
        step
    }

    fn step(
        &mut self,
        measured: &ArmMeasurement,
        now: ClockInstant,
    ) -> Result<ExecutionStep, ExecutionError> {
        self.note_reading(measured, now);
        let waits_for_others = self.heed_neighbours(measured, now);
        let ahead_rad = self.braked_rad();
        let period = self.checked.trajectory.period;
        if !self.is_stopped {
            self.monitor.check_moved(&self.goal_rad, measured, period);
            let sent_rad = self.sag.sent_rad(&self.goal_rad);
            self.monitor.check_limp(&sent_rad, measured);
            self.check_disturbance(measured);
        }
        let waits = self
            .monitor
            .update(&self.goal_rad, &ahead_rad, measured, now, period);
        if self.rate.abs() <= 0.0
            && let Some(error) = self.monitor.take_error()
        {
            self.choose_safe_end(&error, measured);
            return Err(error);
        }
        // A move to a safe end ignores the pause.
        let is_paused = self.is_paused || self.monitor.has_error();
        let waits = waits || waits_for_others || (!self.monitor.has_reported() && is_paused);
        if self.monitor.is_lost() {
            self.request = MotionGoal::Halt;
        }
        let lands = !waits && self.lands(measured);
        if !waits && (self.settles(measured) || (lands && self.rate.abs() <= 0.0)) {
            return Ok(self.send(self.goal_rad));
        }
        Ok(match self.advance(waits || lands) {
            GoalUpdate::To(goal_rad) => {
                self.resting_ticks = RESTING_TICKS;
                self.send(goal_rad)
            }
            GoalUpdate::Release { goal_rad, sent_rad } => self.release(goal_rad, sent_rad),
            GoalUpdate::Keep => self.rest(ExecutionStep::Hold),
            GoalUpdate::Finished => self.rest(ExecutionStep::Finished),
        })
    }

    /// Ends the motion where something pushes the arm.
    fn check_disturbance(&mut self, measured: &ArmMeasurement) {
        let (pen, strength_n_m) = (self.span().pen, self.sag.load_n_m());
        let scene = &self.checked.scene;
        let Some((observer, strength_n_m)) = self.disturbance.as_mut().zip(strength_n_m) else {
            return;
        };
        let place = ObservedPlace {
            scene,
            pen,
            goal_rad: &self.goal_rad,
            strength_n_m,
        };
        if let Some(found) = observer.update(&place, measured) {
            self.monitor.record(ExecutionError::Pushed(found));
        }
    }

    fn is_on_path(&self) -> bool {
        matches!(
            (&self.phase, self.request),
            (ExecutionPhase::Path, MotionGoal::Go)
        )
    }

    fn send(&mut self, goal_rad: JointVector) -> ExecutionStep {
        self.goal_rad = goal_rad;
        let (push, next_rad) = (self.tip_push(&goal_rad), self.upcoming_rad());
        let scene = &self.checked.scene;
        let limits = scene.arm.limits;
        let place = LedPlace {
            path_rad: &goal_rad,
            next_rad: &next_rad,
            push: push.as_ref(),
        };
        ExecutionStep::Go(Setpoint {
            goal_rad: self.sag.goal_rad(scene, place),
            velocity_cap_rad_s: limits.velocity_rad_s,
            acceleration_cap_rad_s2: limits.acceleration_rad_s2,
        })
    }

    /// Decelerates along the path from the next tick on, lifts and stands. A second call changes
    /// nothing, and neither does one while the motion is already ending.
    pub fn stop(&mut self) {
        self.is_stopped = true;
        if !matches!(self.request, MotionGoal::Back(_) | MotionGoal::Halt) {
            self.request = MotionGoal::Stop;
        }
        self.tell_neighbours();
    }

    /// Goes back up along the path of a probe from the next tick on, because something was felt.
    /// Returns `false` and changes nothing where it is not probing, or is ending already.
    pub fn turn_back(&mut self) -> bool {
        let can_turn_back = matches!(self.request, MotionGoal::Go | MotionGoal::Hold(_));
        let from = self.probe_from();
        match from.filter(|_| can_turn_back && matches!(self.phase, ExecutionPhase::Path)) {
            Some(from) => {
                self.request = MotionGoal::Return(from);
                true
            }
            None => false,
        }
    }

    /// Returns the sample at which the current probe began; `None` outside a probe.
    fn probe_from(&self) -> Option<f64> {
        let span = self.span();
        (span.kind == SpanKind::Probe).then_some(span.first as f64)
    }

    /// Decelerates along the path from the next tick on and stands, without a lift: for an arm whose
    /// state is unknown.
    pub fn halt(&mut self) {
        self.request = MotionGoal::Halt;
        self.tell_neighbours();
    }

    /// Ends the motion at the last setpoint, at once. Only a move that [`Execution::let_go`] began
    /// goes on.
    pub fn stand(&mut self) {
        (self.is_stopped, self.resting_ticks) = (true, 0);
        if !matches!(self.phase, ExecutionPhase::LetGo(_)) {
            self.phase = ExecutionPhase::Stand;
        }
        self.tell_neighbours();
    }

    /// Returns whether [`Execution::stop`] or [`Execution::stand`] was called.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns whether a stop has sent its whole lift.
    #[must_use]
    pub fn has_lifted(&self) -> bool {
        self.has_lifted
    }

    /// Returns whether the arm has left its path for a lift, or is on its way down again.
    #[must_use]
    pub fn is_lifting(&self) -> bool {
        matches!(self.phase, ExecutionPhase::Lift(_))
    }

    /// Returns the duration of a stop's lift; zero before there is one. A needle's lift is slow.
    #[must_use]
    pub fn lift_time(&self) -> Duration {
        self.lift_time
    }

    /// Pauses the motion on its path, without a lift, or lets it go on. A stop, and everything after
    /// it, ignores the pause.
    pub fn wait(&mut self, pause: bool) {
        self.is_paused = pause && !self.is_stopped;
    }

    /// Returns the last sample that the tip comes to if a stop follows the next tick, including those
    /// that braking along the path still passes.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and some dozens of ticks"
    )]
    pub fn next_reach(&self) -> usize {
        let last = self.checked.trajectory.samples.len().saturating_sub(1);
        let next = (self.sample() + 1).min(last);
        let ticks = self.checked.stops.brake_ticks(next);
        // The rate falls linearly from 1 to 0, so half as many samples as ticks are passed.
        (next + (ticks / 2.0).ceil() as usize).min(last)
    }

    /// Returns whether the permit of the motion still covers its scene.
    #[must_use]
    pub fn is_allowed(&self, now: ClockInstant) -> bool {
        self.checked.permit.covers(&self.checked.scene, now)
    }

    /// Returns the proof that is being executed.
    #[must_use]
    pub fn checked(&self) -> &CheckedTrajectory {
        &self.checked
    }

    /// Returns the motion's progress.
    #[must_use]
    pub fn progress(&self) -> ExecutionProgress {
        let sample = self.sample();
        let span = self.span();
        ExecutionProgress {
            sample,
            of: self.checked.trajectory.samples.len(),
            doing: span.kind,
            item: span.item,
        }
    }

    /// Returns the sample nearest to the arm among those sent from `from` on; of equally near ones the
    /// last: a path that stands may do so for longer than this looks ahead.
    #[must_use]
    pub fn nearest(&self, from: usize, arm_rad: &JointVector) -> usize {
        let samples = self.checked.trajectory.samples.iter().enumerate();
        let sent = samples
            .take(self.sample() + 1)
            .skip(from)
            .take(FOLLOW_SAMPLES_MAX);
        sent.map(|(sample, at)| (sample, at.distance_max(arm_rad)))
            .max_by(|(_, a), (_, b)| b.total_cmp(a))
            .map_or(from, |(sample, _)| sample)
    }

    /// Returns the current span of the trajectory.
    #[expect(
        clippy::expect_used,
        reason = "the arm's activity may not be made up: a stop depends on it"
    )]
    pub(super) fn span(&self) -> &TrajectorySpan {
        let span = self.checked.trajectory.span_at(self.sample());
        span.expect("the gate accepts only trajectories with every sample in a span")
    }

    /// Returns the scene that the proof was judged against.
    #[must_use]
    pub fn scene(&self) -> &Scene {
        &self.checked.scene
    }

    /// Returns the height of the current pen's tip over the sheet for these joint angles.
    #[must_use]
    pub fn tip_height_mm(&self, joints_rad: &JointVector) -> Option<f64> {
        let tip_m = tip_m(self.scene(), self.span().pen, joints_rad)?;
        Some(self.scene().surface.project(&tip_m).height_mm)
    }

    /// Returns what the joints bear of a push on the tip along the sheet's normal; `None` where the loads do not tell it.
    #[must_use]
    pub fn normal_loads(&self, measured: &ArmMeasurement) -> Option<NormalLoads> {
        let strength_n_m = self.sag.load_n_m()?;
        let place = ObservedPlace {
            scene: self.scene(),
            pen: self.span().pen,
            goal_rad: &self.goal_rad,
            strength_n_m,
        };
        disturbance::normal_loads(&place, measured)
    }

    /// Notes a reading, corrects by it what is known of how the joints yield, and brings an arm that draws closer to its path.
    fn note_reading(&mut self, measured: &ArmMeasurement, now: ClockInstant) {
        let arm_rad = &measured.position_rad;
        let is_read = arm_rad.len() == self.goal_rad.len() && arm_rad.is_finite();
        if !is_read || now.since(measured.at) > self.checked.trajectory.period * 2 {
            self.sag.forget_past();
            return;
        }
        let push = self.tip_push(&self.goal_rad);
        let of = self.reading_of(measured, push.is_some());
        let arm = &self.checked.scene.arm;
        self.sag.note(arm, &self.goal_rad, measured, of);
        if let Some(push) = push.filter(|_| of == ReadingOf::DrawingTip) {
            self.sag.press(arm, &push, self.stands_to_land());
        }
    }

    /// Returns what a reading shows.
    fn reading_of(&self, measured: &ArmMeasurement, is_pen: bool) -> ReadingOf {
        if !self.is_on_path() {
            return ReadingOf::Other;
        }
        match self.span().kind {
            SpanKind::Draw if is_pen => ReadingOf::DrawingTip,
            SpanKind::Approach
            | SpanKind::Travel
            | SpanKind::Lift
            | SpanKind::Lower
            | SpanKind::Pose => {
                let mut places = [&self.goal_rad, &measured.position_rad].into_iter();
                let is_free = places.all(|joints_rad| {
                    let height_mm = self.tip_height_mm(joints_rad);
                    height_mm.is_some_and(|height_mm| height_mm > FREE_MM)
                });
                match is_free {
                    true => ReadingOf::FreeTip,
                    false => ReadingOf::Other,
                }
            }
            SpanKind::Draw | SpanKind::Dip | SpanKind::Dwell | SpanKind::Probe | SpanKind::Jog => {
                ReadingOf::Other
            }
        }
    }

    /// Returns how the surface pushes a pen's tip that is planned to be there; `None` for a needle, which it does not, and for a
    /// probe: goals that led against a push where the scene has the sheet would press there, on a sheet that lies elsewhere.
    fn tip_push(&self, joints_rad: &JointVector) -> Option<TipPush> {
        let scene = self.scene();
        let pen = scene.pen(self.span().pen)?;
        if pen.kind == ToolKind::Needle || self.span().kind == SpanKind::Probe {
            return None;
        }
        let tip = ToolTip {
            point_m: pen.tip_m,
            axis: pen.axis,
        };
        let tip_m = scene.arm.chain.point(joints_rad, &pen.tip_m);
        let projected = scene.surface.project(&tip_m);
        let normal = scene.surface.at(projected.at_mm).normal;
        let jacobian = scene.arm.chain.jacobian(joints_rad, &tip);
        let columns: Vec<Vector3<f64>> = jacobian
            .iter()
            .map(|[x, y, z, ..]| Vector3::new(*x, *y, *z))
            .collect();
        let levers = |of: &dyn Fn(&Vector3<f64>) -> f64| {
            JointVector::from_slice(&columns.iter().map(of).collect::<Vec<_>>())
        };
        Some(TipPush {
            levers_m: levers(&|column| column.dot(&normal)),
            reaches_m: levers(&|column| column.norm()),
            depth_mm: -projected.height_mm,
        })
    }

    /// Returns what is known of how the joints yield, and the goals that were last sent.
    #[must_use]
    pub fn sag(&self) -> &SagLead {
        &self.sag
    }

    /// Returns where the joints shall be by the goals that were last sent.
    #[must_use]
    pub fn goal_rad(&self) -> &JointVector {
        &self.goal_rad
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`at` is within the samples"
    )]
    pub(super) fn sample(&self) -> usize {
        self.position.floor() as usize
    }

    fn last_position(&self) -> f64 {
        self.checked.trajectory.samples.len().saturating_sub(1) as f64
    }

    fn advance(&mut self, waits: bool) -> GoalUpdate {
        match self.phase {
            ExecutionPhase::Path => self.advance_path(waits),
            ExecutionPhase::Lift(motion) => self.advance_lift(motion, waits),
            ExecutionPhase::LetGo(motion) => self.advance_let_go(motion),
            ExecutionPhase::Stand => GoalUpdate::Finished,
        }
    }

    /// Returns the next goal on the path.
    fn advance_path(&mut self, waits: bool) -> GoalUpdate {
        let goes_on = self.goes_on();
        if goes_on && self.position >= self.last_position() {
            self.rate = 0.0;
            if self
                .trim
                .comes_back(self.checked.trajectory.period.as_secs_f64())
            {
                return GoalUpdate::To(self.goal_at(self.position));
            }
            // A probe that finds nothing goes back up, so that no tip is left below.
            if !self.turn_back() {
                return GoalUpdate::Finished;
            }
        }
        self.target_rate = self.wanted_rate(waits);
        self.rate = ramp_rate(self.rate, self.target_rate, self.brake_ticks());
        if self.rate.abs() <= 0.0 && self.target_rate.abs() <= 0.0 {
            return self.at_rest(waits);
        }
        let was_coming_down = self.span().kind == SpanKind::Lower;
        self.position = (self.position + self.rate).clamp(0.0, self.last_position());
        if was_coming_down && self.span().kind == SpanKind::Draw {
            self.begin_landing();
        }
        if goes_on {
            self.trim
                .advance(self.checked.trajectory.period.as_secs_f64());
        }
        GoalUpdate::To(self.goal_at(self.position))
    }

    /// Returns whether the motion is not ending.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self.request, MotionGoal::Go | MotionGoal::Hold(_))
    }

    fn wanted_rate(&self, waits: bool) -> f64 {
        match self.request {
            MotionGoal::Go if !waits => 1.0,
            MotionGoal::Hold(at) if !waits && self.finishes_stroke(at) => 1.0,
            MotionGoal::Back(until) | MotionGoal::Return(until)
                if !waits && self.position - self.braking_samples() > until =>
            {
                -1.0
            }
            _ => 0.0,
        }
    }

    /// Returns whether a hold must wait for the end of the current stroke.
    fn finishes_stroke(&self, at: HoldAt) -> bool {
        at == HoldAt::StrokeEnd && touches(self.span().kind)
    }

    /// Decides what follows once the goal is at rest: wait, lift, or end.
    fn at_rest(&mut self, waits: bool) -> GoalUpdate {
        match self.request {
            MotionGoal::Go => GoalUpdate::Keep,
            MotionGoal::Hold(at) if self.finishes_stroke(at) => GoalUpdate::Keep,
            MotionGoal::Back(until) | MotionGoal::Return(until)
                if waits && self.position > until =>
            {
                GoalUpdate::Keep
            }
            MotionGoal::Halt => {
                self.phase = ExecutionPhase::Stand;
                GoalUpdate::Finished
            }
            MotionGoal::Hold(_)
            | MotionGoal::Stop
            | MotionGoal::Back(_)
            | MotionGoal::Return(_) => self.leave_path(waits),
        }
    }

    fn leave_path(&mut self, waits: bool) -> GoalUpdate {
        let is_hold = matches!(self.request, MotionGoal::Hold(_));
        let is_up = self.is_up_already();
        let Some(lift) = self.lift().filter(|_| !is_up) else {
            if is_hold {
                return GoalUpdate::Keep;
            }
            self.has_lifted = is_up;
            self.phase = ExecutionPhase::Stand;
            return GoalUpdate::Finished;
        };
        let period = self.checked.trajectory.period;
        let ticks_min = lift.seconds_min / period.as_secs_f64();
        let motion = JointSpaceMove {
            from_rad: self.goal_at(self.position),
            by_rad: lift.by_rad,
            tick: 0.0,
            ticks: self.lift_ticks(&lift.by_rad).max(ticks_min.ceil()),
        };
        self.lift_time = period.mul_f64(motion.ticks);
        self.phase = ExecutionPhase::Lift(motion);
        self.advance_lift(motion, waits)
    }

    /// Returns the lift from here, where one was proven.
    fn lift(&self) -> Option<&ProvenLift> {
        self.checked.stops.lift(self.sample())
    }

    fn is_up_already(&self) -> bool {
        self.lift()
            .is_some_and(|lift| lift.by_rad.iter().all(|by| by.abs() <= 0.0))
    }

    /// Returns the next goal on the lift: up or, when the motion goes on, down again.
    fn advance_lift(&mut self, motion: JointSpaceMove, waits: bool) -> GoalUpdate {
        let JointSpaceMove { tick, ticks, .. } = motion;
        let up = !matches!(self.request, MotionGoal::Go);
        let is_done = if up { tick >= ticks } else { tick <= 0.0 };
        if is_done {
            self.rate = 0.0;
            return self.finish_lift(up);
        }
        let must_stand = waits || matches!(self.request, MotionGoal::Halt);
        self.target_rate = match (must_stand, up) {
            (true, _) => 0.0,
            (false, true) => 1.0,
            (false, false) => -1.0,
        };
        // A lift begins and ends at rest, so a ramp is needed only in between.
        let is_at_end = tick <= 0.0 || tick >= ticks;
        self.rate = if is_at_end {
            self.target_rate
        } else {
            ramp_rate(self.rate, self.target_rate, self.lift_brake_ticks(&motion))
        };
        if self.rate.abs() <= 0.0 {
            if matches!(self.request, MotionGoal::Halt) {
                self.phase = ExecutionPhase::Stand;
                return GoalUpdate::Finished;
            }
            return GoalUpdate::Keep;
        }
        let tick = (tick + self.rate).clamp(0.0, ticks);
        self.phase = ExecutionPhase::Lift(JointSpaceMove { tick, ..motion });
        GoalUpdate::To(motion.at(tick))
    }

    fn finish_lift(&mut self, up: bool) -> GoalUpdate {
        if !up {
            self.phase = ExecutionPhase::Path;
            self.begin_landing();
            return self.advance_path(false);
        }
        if matches!(self.request, MotionGoal::Hold(_)) {
            return GoalUpdate::Keep;
        }
        self.has_lifted = true;
        self.phase = ExecutionPhase::Stand;
        GoalUpdate::Finished
    }

    fn goal_at(&self, at: f64) -> JointVector {
        let samples = &self.checked.trajectory.samples;
        let at = at.clamp(0.0, self.last_position());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the position is limited to the samples"
        )]
        let first = at.floor() as usize;
        let fraction = at - at.floor();
        #[expect(
            clippy::expect_used,
            reason = "an arm may not stand still as if its path did"
        )]
        let a = samples
            .get(first)
            .expect("the position is limited to the samples");
        let a = self.trim.goal_rad(first, a);
        match samples.get(first + 1) {
            Some(b) => {
                let b = self.trim.goal_rad(first + 1, b);
                a.zip(&b, |a, b| a + (b - a) * fraction)
            }
            // There is no path after the last sample.
            None => a,
        }
    }

    /// Returns where the goal would stop if braking began now.
    fn braked_rad(&self) -> JointVector {
        match self.phase {
            ExecutionPhase::Path if self.rate > 0.0 => {
                self.goal_at(self.position + self.braking_samples())
            }
            _ => self.goal_rad,
        }
    }

    /// Returns the number of samples passed while braking from the present rate.
    fn braking_samples(&self) -> f64 {
        self.rate * self.rate * self.brake_ticks() / 2.0
    }

    /// Returns the ticks to brake from the path's full speed, whether it goes on or back.
    fn brake_ticks(&self) -> f64 {
        let sample = self.sample();
        let here = self.checked.stops.brake_ticks(sample);
        here.max(self.checked.stops.brake_ticks(sample.saturating_sub(1)))
    }

    /// Returns the ticks to brake from a lift's highest speed.
    fn lift_brake_ticks(&self, motion: &JointSpaceMove) -> f64 {
        let period_s = self.checked.trajectory.period.as_secs_f64();
        let fastest_rad_s = motion
            .by_rad
            .map(|_, by| SMOOTH_PEAK * by.abs() / (motion.ticks * period_s));
        ticks_to_brake(self.scene(), &fastest_rad_s, period_s).max(LIFT_BRAKE_TICKS_MIN)
    }

    /// Returns the ticks of a lift that stays within the joints' limits: the smooth step's peaks are
    /// 1.875 over its duration and 5.774 over its square.
    fn lift_ticks(&self, by_rad: &JointVector) -> f64 {
        let period = self.checked.trajectory.period.as_secs_f64();
        let limits = self.scene().arm.limits;
        let by_speed = by_rad.zip(&limits.velocity_rad_s, |by, fastest| {
            SMOOTH_PEAK * by.abs() / fastest
        });
        let by_acceleration = by_rad.zip(&limits.acceleration_rad_s2, |by, hardest| {
            (5.774 * by.abs() / hardest).sqrt()
        });
        let seconds = by_speed
            .iter()
            .chain(by_acceleration.iter())
            .copied()
            .fold(0.0, f64::max);
        (seconds / period).ceil().max(LIFT_TICKS_MIN)
    }
}

impl JointSpaceMove {
    fn at(&self, tick: f64) -> JointVector {
        let fraction = smooth_step(tick / self.ticks);
        self.from_rad
            .zip(&self.by_rad, |from, by| from + by * fraction)
    }
}

/// The change of the goal in a tick.
enum GoalUpdate {
    To(JointVector),
    /// Goals as they are sent, lead and all, and where they hold the arm.
    Release {
        goal_rad: JointVector,
        sent_rad: JointVector,
    },
    Keep,
    Finished,
}

/// Returns the rate one tick later, on a ramp to its target.
fn ramp_rate(rate: f64, target_rate: f64, ticks: f64) -> f64 {
    rate + (target_rate - rate).clamp(-1.0 / ticks, 1.0 / ticks)
}

/// Rises from 0 to 1 with no speed and no acceleration at either end.
pub(super) fn smooth_step(fraction: f64) -> f64 {
    fraction.powi(3) * (10.0 + fraction * (6.0 * fraction - 15.0))
}

#[cfg(test)]
mod tests;
