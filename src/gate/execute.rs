//! Executes a checked trajectory. Each tick compares the measured position with the plan and
//! yields at most one setpoint.
//!
//! One number, the rate, is the speed of the goal along the path: 1 as planned, 0 standing. It
//! never jumps: waiting, holding, resuming and stopping are all ramps of it, so no goal asks more
//! of a joint than the path and its proven brake do. A lift is a second path, straight up, with the
//! same rate.

use std::time::Duration;

use super::check::{StartMismatch, check_at_start};
use super::clearance::tip_m;
use super::following_error::{self, FollowingErrorMonitor};
use super::stop_proof::{ProvenLift, SMOOTH_PEAK, ticks_to_brake, touches};
use super::{CheckedTrajectory, Setpoint};
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use permit::MotionPermit;
use plan::{SpanKind, TrajectorySpan};
use scene::Scene;

/// A lift takes at least this long.
const LIFT_TICKS_MIN: f64 = 10.0;

/// A lift that is under way takes at least so many ticks to come to a stand.
const LIFT_BRAKE_TICKS_MIN: f64 = 6.0;

/// A joint that stands further than this from its goal presses against something: more than a
/// servo sags under the arm's weight, and less than what counts as a stall.
const PRESSES_RAD: f64 = 2.0 * std::f64::consts::PI / 180.0;

/// Search range ahead of the arm's last place on its path, in samples: far beyond the lag of
/// servos, and short enough not to find the arm on a different line.
const FOLLOW_SAMPLES_MAX: usize = 100;

/// Longest way back of a stalled arm along its path before it lifts, in samples.
const BACK_SAMPLES_MAX: usize = 100;

/// A checked trajectory on its way. Made by [`CheckedTrajectory::begin`].
#[derive(Debug)]
pub struct Execution {
    checked: CheckedTrajectory,
    phase: ExecutionPhase,
    wish: MotionGoal,
    /// Samples a tick: 1 as planned, 0 standing, below 0 going back.
    rate: f64,
    /// Position on the path, in samples.
    at: f64,
    goal_rad: JointVector,
    watch: FollowingErrorMonitor,
    /// `true` while the motion is paused by its caller.
    waits: bool,
    stopped: bool,
    lifted: bool,
    /// Duration of a stop's lift, once there is one.
    lift_time: Duration,
    has_let_go: bool,
}

#[derive(Debug)]
enum ExecutionPhase {
    /// On the path.
    Path,
    /// On the proven way straight up from where the path was left; `tick` of `ticks`.
    Line(JointSpaceMove),
    /// On the way from where the goal was to where the arm is, which stands and cannot come.
    LetGo(JointSpaceMove),
    /// At the end: nothing comes any more.
    Stand,
}

/// A way straight up, and where on it the goal is.
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
    /// To stand with the tip up until it is resumed.
    Hold(HoldAt),
    /// To stand with the tip up, for good.
    Stop,
    /// To go back to there, and then to do as with `Stop`.
    Back(f64),
    /// The same after something was felt: a stop that comes meanwhile does not wait for it.
    Return(f64),
    /// To stand as it is, for good.
    Halt,
}

/// The point at which a motion that is being held comes to a stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldAt {
    /// As soon as the stroke that is being drawn is done; at once where none is.
    StrokeEnd,
    /// Now, with a lift.
    Once,
}

/// The result of a tick.
#[derive(Debug)]
pub enum ExecutionStep {
    /// Send this.
    Go(Setpoint),
    /// Wait where the last frame said: a joint is behind, or a reading is missing.
    Hold,
    /// The end was sent before.
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

/// The reason why a motion cannot begin or go on. A motion under way comes to a stand first.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExecutionError {
    /// The arm is not where the proof begins.
    #[error("the arm moved since the motion was planned: {0}")]
    Moved(#[source] StartMismatch),
    /// It goes on already, or is ending.
    #[error("the motion is not held")]
    NotHeld,
    /// A person's leave has ended.
    #[error(
        "motion is no longer enabled for this scene; an operator enables it with `steadyhand enable`"
    )]
    Expired,
    /// A joint does not follow.
    #[error("{joint} stayed {behind_deg} degrees behind its goal for {ms} ms: something blocks it, or its servo gave up", ms = following_error::STALL.as_millis())]
    Stalled {
        /// The joint.
        joint: String,
        /// Distance behind the goal, rounded to whole degrees.
        behind_deg: u32,
    },
    /// No reading for too long.
    #[error("no valid reading from the arm for {0} ms; {limit} ms is the limit", limit = following_error::BLIND.as_millis())]
    Blind(u128),
}

impl CheckedTrajectory {
    /// Spends the proof.
    ///
    /// # Errors
    /// When the arm is not where the proof begins, or the permit has ended.
    pub fn begin(
        self,
        seen: &ArmMeasurement,
        now: ClockInstant,
    ) -> Result<Execution, ExecutionError> {
        if !self.permit.covers(&self.scene, now) {
            return Err(ExecutionError::Expired);
        }
        let first = self.first();
        check_at_start(&self.scene, &first, seen, now).map_err(ExecutionError::Moved)?;
        Ok(Execution {
            watch: FollowingErrorMonitor::new(&self.scene.arm, self.torque_limit()),
            checked: self,
            phase: ExecutionPhase::Path,
            wish: MotionGoal::Go,
            // The path begins at rest.
            rate: 1.0,
            at: 0.0,
            goal_rad: first,
            waits: false,
            stopped: false,
            lifted: false,
            lift_time: Duration::ZERO,
            has_let_go: false,
        })
    }

    #[expect(
        clippy::expect_used,
        reason = "an arm that begins nowhere may not begin"
    )]
    fn first(&self) -> JointVector {
        let first = self.trajectory.samples.first();
        *first.expect("the gate lets through no trajectory of fewer than two samples")
    }
}

impl Execution {
    /// The frame for this tick.
    ///
    /// # Errors
    /// [`Broken`], once, when a joint has not followed or has not been read for too long. The goal
    /// stands by then, and calling on gives the way to a safe end: after a stall back along the
    /// path to where the joint is, and up.
    pub fn next(
        &mut self,
        seen: &ArmMeasurement,
        now: ClockInstant,
    ) -> Result<ExecutionStep, ExecutionError> {
        let ahead_rad = self.braked_rad();
        let period = self.checked.trajectory.period;
        let waits = self
            .watch
            .update(&self.goal_rad, &ahead_rad, seen, now, period);
        if self.rate.abs() <= 0.0
            && let Some(broken) = self.watch.take_error()
        {
            self.end_after(&broken, seen);
            return Err(broken);
        }
        // A way to a safe end waits for no release.
        let waits =
            waits || (!self.watch.has_reported() && (self.waits || self.watch.has_broken()));
        if self.watch.is_lost() {
            self.wish = MotionGoal::Halt;
        }
        Ok(match self.advance(waits) {
            GoalUpdate::To(goal_rad) => self.send(goal_rad),
            GoalUpdate::Not => ExecutionStep::Hold,
            GoalUpdate::Finished => ExecutionStep::Finished,
        })
    }

    fn send(&mut self, goal_rad: JointVector) -> ExecutionStep {
        self.goal_rad = goal_rad;
        let limits = self.scene().arm.limits;
        ExecutionStep::Go(Setpoint {
            goal_rad,
            velocity_cap_rad_s: limits.velocity_rad_s,
            acceleration_cap_rad_s2: limits.acceleration_rad_s2,
        })
    }

    /// From the next tick on: decelerate along the path, lift, stand. A second call changes
    /// nothing, and neither does one while it already comes to its end.
    pub fn stop(&mut self) {
        self.stopped = true;
        if !matches!(self.wish, MotionGoal::Back(_) | MotionGoal::Halt) {
            self.wish = MotionGoal::Stop;
        }
    }

    /// From the next tick on: back up the way that a probe came down, for something was felt.
    /// `false`, and nothing changes, where it does not probe, or is ending already.
    pub fn turn_back(&mut self) -> bool {
        let goes_on = matches!(self.wish, MotionGoal::Go | MotionGoal::Hold(_));
        let from = self.probe_from();
        match from.filter(|_| goes_on && matches!(self.phase, ExecutionPhase::Path)) {
            Some(from) => {
                self.wish = MotionGoal::Return(from);
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

    /// Decelerates along the path from the next tick on and stands, without a lift. For arms whose
    /// state is unknown.
    pub fn halt(&mut self) {
        self.wish = MotionGoal::Halt;
    }

    /// From now on nothing more: stand where the last frame said. Only a goal that is on its way
    /// to where the arm is goes on.
    pub fn stand(&mut self) {
        self.stopped = true;
        if !matches!(self.phase, ExecutionPhase::LetGo(_)) {
            self.phase = ExecutionPhase::Stand;
        }
    }

    /// Brings the goals of joints that press against something to where they are, once in a
    /// motion: from then on nothing springs forward when the obstacle goes. For an arm that was
    /// read to stand at its end. `false` where there is nothing to let go of.
    ///
    /// Only ever towards what was measured, so that a weak servo sags once more at most; and never
    /// where the readings are not to be trusted: after [`Execution::halt`], or where one says what
    /// no joint on its leash could do.
    pub fn let_go(&mut self, seen: &ArmMeasurement) -> bool {
        let is_halted = matches!(self.wish, MotionGoal::Halt);
        if self.has_let_go || is_halted || !matches!(self.phase, ExecutionPhase::Stand) {
            return false;
        }
        if self
            .watch
            .is_beyond_belief(&self.goal_rad, &seen.position_rad)
        {
            return false;
        }
        let by_rad = seen.position_rad.zip(&self.goal_rad, |is, goal| {
            let apart = is - goal;
            if apart.abs() > PRESSES_RAD {
                apart
            } else {
                0.0
            }
        });
        if by_rad.iter().all(|by| by.abs() <= 0.0) {
            return false;
        }
        // The tip is not where the lift was sent.
        self.lifted = false;
        self.has_let_go = true;
        self.phase = ExecutionPhase::LetGo(JointSpaceMove {
            from_rad: self.goal_rad,
            by_rad,
            tick: 0.0,
            ticks: self.lift_ticks(&by_rad),
        });
        true
    }

    /// Stands with the tip up until [`Execution::resume`]. `false`, and nothing changes, where the
    /// motion is ending already.
    pub fn hold(&mut self, at: HoldAt) -> bool {
        let can = matches!(self.wish, MotionGoal::Go | MotionGoal::Hold(_));
        if can {
            self.wish = match self.wish {
                MotionGoal::Hold(HoldAt::Once) => MotionGoal::Hold(HoldAt::Once),
                _ => MotionGoal::Hold(at),
            };
        }
        can
    }

    /// Goes on with the same proof: back down the way that it was lifted, and along the path.
    ///
    /// # Errors
    /// When it was not held, the arm is not where it was held, or the leave does not cover it.
    pub fn resume(
        &mut self,
        seen: &ArmMeasurement,
        permit: MotionPermit,
        now: ClockInstant,
    ) -> Result<(), ExecutionError> {
        if !matches!(self.wish, MotionGoal::Hold(_)) {
            return Err(ExecutionError::NotHeld);
        }
        if !permit.covers(&self.checked.scene, now) {
            return Err(ExecutionError::Expired);
        }
        if self.is_held() {
            check_at_start(&self.checked.scene, &self.goal_rad, seen, now)
                .map_err(ExecutionError::Moved)?;
        }
        self.checked.permit = permit;
        self.wish = MotionGoal::Go;
        Ok(())
    }

    /// Returns whether the arm stands with the tip up and waits for [`Execution::resume`].
    #[must_use]
    pub fn is_held(&self) -> bool {
        let MotionGoal::Hold(at) = self.wish else {
            return false;
        };
        match &self.phase {
            ExecutionPhase::Path => {
                self.rate.abs() <= 0.0
                    && (self.is_up_already() || self.lift().is_none())
                    && !self.finishes_stroke(at)
            }
            ExecutionPhase::Line(line) => line.tick >= line.ticks,
            ExecutionPhase::LetGo(_) | ExecutionPhase::Stand => false,
        }
    }

    /// Returns whether [`Execution::stop`] or [`Execution::stand`] was called.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.stopped
    }

    /// Returns whether a stop has sent all of its lift.
    #[must_use]
    pub fn has_lifted(&self) -> bool {
        self.lifted
    }

    /// Returns whether the arm is off its path, on its way straight up or down again.
    #[must_use]
    pub fn is_lifting(&self) -> bool {
        matches!(self.phase, ExecutionPhase::Line(_))
    }

    /// Returns the duration of a stop's lift; zero before there is one. A needle's lift is slow.
    #[must_use]
    pub fn lift_time(&self) -> Duration {
        self.lift_time
    }

    /// Pauses the motion on its path, without a lift, or lets it go on. A stop, and everything after
    /// it, ignores the pause.
    pub fn wait(&mut self, waits: bool) {
        self.waits = waits && !self.stopped;
    }

    /// The last sample that the tip comes to if the next tick goes on and a stop follows it: what
    /// braking along the path still passes is counted.
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
        // The rate falls evenly from 1 to 0, so half as many samples as ticks are passed.
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

    /// The sample that an arm is nearest to which was near `from` before: one that was sent, and the
    /// first of those that are as near.
    #[must_use]
    pub fn nearest(&self, from: usize, is_rad: &JointVector) -> usize {
        let samples = self.checked.trajectory.samples.iter().enumerate();
        let sent = samples
            .take(self.sample() + 1)
            .skip(from)
            .take(FOLLOW_SAMPLES_MAX);
        sent.map(|(sample, at)| (sample, at.distance_max(is_rad)))
            .min_by(|(_, a), (_, b)| a.total_cmp(b))
            .map_or(from, |(sample, _)| sample)
    }

    /// The stretch of the trajectory that it is in.
    #[expect(
        clippy::expect_used,
        reason = "what an arm does may not be made up: a stop depends on it"
    )]
    pub(super) fn span(&self) -> &TrajectorySpan {
        let span = self.checked.trajectory.span_at(self.sample());
        span.expect("the gate lets through no trajectory with a sample outside of its spans")
    }

    /// The scene that the proof was judged against.
    #[must_use]
    pub fn scene(&self) -> &Scene {
        &self.checked.scene
    }

    /// Returns how high over the sheet the tip of this span is where the joints stand like this.
    #[must_use]
    pub fn tip_height_mm(&self, joints_rad: &JointVector) -> Option<f64> {
        let tip_m = tip_m(self.scene(), self.span().pen, joints_rad)?;
        Some(self.scene().surface.project(&tip_m).height_mm)
    }

    /// Returns the joint angles that were last sent.
    #[must_use]
    pub fn goal_rad(&self) -> &JointVector {
        &self.goal_rad
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`at` is within the samples"
    )]
    fn sample(&self) -> usize {
        self.at.floor() as usize
    }

    fn last(&self) -> f64 {
        self.checked.trajectory.samples.len().saturating_sub(1) as f64
    }

    /// Chooses the way to a safe end after an error.
    fn end_after(&mut self, broken: &ExecutionError, seen: &ArmMeasurement) {
        // Without a reading of every joint it is not known where to go back to, nor whether a lift
        // would be followed; and from a stall on the way up there is no better way.
        let is_rad = &seen.position_rad;
        let is_seen = is_rad.len() == self.goal_rad.len() && is_rad.is_finite();
        let has_way = matches!(
            (broken, &self.phase),
            (ExecutionError::Stalled { .. }, ExecutionPhase::Path)
        ) && self.wish != MotionGoal::Halt
            && is_seen;
        self.wish = if has_way {
            MotionGoal::Back(self.back_to(is_rad))
        } else {
            MotionGoal::Halt
        };
    }

    /// Returns the place on the path already travelled where the goal was nearest to the arm.
    #[expect(
        clippy::expect_used,
        reason = "a place to go back to may not be made up"
    )]
    fn back_to(&self, is_rad: &JointVector) -> f64 {
        let here = self.sample();
        let samples = self.checked.trajectory.samples.iter().enumerate();
        let nearest = samples
            .take(here + 1)
            .skip(here.saturating_sub(BACK_SAMPLES_MAX))
            .min_by(|(_, a), (_, b)| a.distance_max(is_rad).total_cmp(&b.distance_max(is_rad)));
        let (sample, _) = nearest.expect("the sample that it is at is one of them");
        (sample as f64).min(self.at)
    }

    fn advance(&mut self, waits: bool) -> GoalUpdate {
        match self.phase {
            ExecutionPhase::Path => self.advance_path(waits),
            ExecutionPhase::Line(line) => self.advance_lift(line, waits),
            ExecutionPhase::LetGo(line) => self.advance_let_go(line),
            ExecutionPhase::Stand => GoalUpdate::Finished,
        }
    }

    /// The next goal on the path.
    fn advance_path(&mut self, waits: bool) -> GoalUpdate {
        let goes_on = matches!(self.wish, MotionGoal::Go | MotionGoal::Hold(_));
        if goes_on && self.at >= self.last() {
            self.rate = 0.0;
            // What a probe does not find is given up, and nothing is left standing below.
            if !self.turn_back() {
                return GoalUpdate::Finished;
            }
        }
        let wanted = self.wanted_rate(waits);
        self.rate = ramped(self.rate, wanted, self.brake_ticks());
        if self.rate.abs() <= 0.0 && wanted.abs() <= 0.0 {
            return self.at_rest(waits);
        }
        self.at = (self.at + self.rate).clamp(0.0, self.last());
        GoalUpdate::To(self.on_path(self.at))
    }

    fn wanted_rate(&self, waits: bool) -> f64 {
        match self.wish {
            MotionGoal::Go if !waits => 1.0,
            MotionGoal::Hold(at) if !waits && self.finishes_stroke(at) => 1.0,
            MotionGoal::Back(until) | MotionGoal::Return(until)
                if !waits && self.at - self.braking_samples() > until =>
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

    /// The goal stands: up, on, or done.
    fn at_rest(&mut self, waits: bool) -> GoalUpdate {
        match self.wish {
            MotionGoal::Go => GoalUpdate::Not,
            MotionGoal::Hold(at) if self.finishes_stroke(at) => GoalUpdate::Not,
            MotionGoal::Back(until) | MotionGoal::Return(until) if waits && self.at > until => {
                GoalUpdate::Not
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
        let is_hold = matches!(self.wish, MotionGoal::Hold(_));
        let up_already = self.is_up_already();
        let Some(lift) = self.lift().filter(|_| !up_already) else {
            if is_hold {
                return GoalUpdate::Not;
            }
            self.lifted = up_already;
            self.phase = ExecutionPhase::Stand;
            return GoalUpdate::Finished;
        };
        let period = self.checked.trajectory.period;
        let least = lift.seconds_min / period.as_secs_f64();
        let line = JointSpaceMove {
            from_rad: self.on_path(self.at),
            by_rad: lift.by_rad,
            tick: 0.0,
            ticks: self.lift_ticks(&lift.by_rad).max(least.ceil()),
        };
        self.lift_time = period.mul_f64(line.ticks);
        self.phase = ExecutionPhase::Line(line);
        self.advance_lift(line, waits)
    }

    /// The lift from here, where one was proven.
    fn lift(&self) -> Option<&ProvenLift> {
        self.checked.stops.lift(self.sample())
    }

    fn is_up_already(&self) -> bool {
        self.lift()
            .is_some_and(|lift| lift.by_rad.iter().all(|by| by.abs() <= 0.0))
    }

    /// The next goal on the way up or, where it goes on, down again.
    fn advance_lift(&mut self, line: JointSpaceMove, waits: bool) -> GoalUpdate {
        let JointSpaceMove { tick, ticks, .. } = line;
        let up = !matches!(self.wish, MotionGoal::Go);
        let arrived = if up { tick >= ticks } else { tick <= 0.0 };
        if arrived {
            self.rate = 0.0;
            return self.finish_lift(up);
        }
        let stands = waits || matches!(self.wish, MotionGoal::Halt);
        let wanted = match (stands, up) {
            (true, _) => 0.0,
            (false, true) => 1.0,
            (false, false) => -1.0,
        };
        // It begins and ends at rest: only in between a ramp is needed.
        let at_an_end = tick <= 0.0 || tick >= ticks;
        self.rate = if at_an_end {
            wanted
        } else {
            ramped(self.rate, wanted, self.lift_brake_ticks(&line))
        };
        if self.rate.abs() <= 0.0 {
            if matches!(self.wish, MotionGoal::Halt) {
                self.phase = ExecutionPhase::Stand;
                return GoalUpdate::Finished;
            }
            return GoalUpdate::Not;
        }
        let tick = (tick + self.rate).clamp(0.0, ticks);
        self.phase = ExecutionPhase::Line(JointSpaceMove { tick, ..line });
        GoalUpdate::To(line.at(tick))
    }

    /// The next goal on the way to where the arm is.
    fn advance_let_go(&mut self, line: JointSpaceMove) -> GoalUpdate {
        if line.tick >= line.ticks {
            self.phase = ExecutionPhase::Stand;
            return GoalUpdate::Finished;
        }
        let tick = (line.tick + 1.0).min(line.ticks);
        self.phase = ExecutionPhase::LetGo(JointSpaceMove { tick, ..line });
        GoalUpdate::To(line.at(tick))
    }

    fn finish_lift(&mut self, up: bool) -> GoalUpdate {
        if !up {
            self.phase = ExecutionPhase::Path;
            return self.advance_path(false);
        }
        if matches!(self.wish, MotionGoal::Hold(_)) {
            return GoalUpdate::Not;
        }
        self.lifted = true;
        self.phase = ExecutionPhase::Stand;
        GoalUpdate::Finished
    }

    fn on_path(&self, at: f64) -> JointVector {
        let samples = &self.checked.trajectory.samples;
        let at = at.clamp(0.0, self.last());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to the samples"
        )]
        let first = at.floor() as usize;
        let share = at - at.floor();
        #[expect(
            clippy::expect_used,
            reason = "an arm may not stand still as if that were its path"
        )]
        let a = samples.get(first).expect("clamped to the samples");
        match samples.get(first + 1) {
            Some(b) => a.zip(b, |a, b| a + (b - a) * share),
            // Behind the last sample there is no path.
            None => *a,
        }
    }

    /// Returns the goal's position if braking began now.
    fn braked_rad(&self) -> JointVector {
        match self.phase {
            ExecutionPhase::Path if self.rate > 0.0 => {
                self.on_path(self.at + self.braking_samples())
            }
            _ => self.goal_rad,
        }
    }

    /// Samples that are passed while braking from the present rate.
    fn braking_samples(&self) -> f64 {
        self.rate * self.rate * self.brake_ticks() / 2.0
    }

    /// From the path's speed to none, wherever it goes from here.
    fn brake_ticks(&self) -> f64 {
        let sample = self.sample();
        let here = self.checked.stops.brake_ticks(sample);
        here.max(self.checked.stops.brake_ticks(sample.saturating_sub(1)))
    }

    /// From a lift's highest speed to none.
    fn lift_brake_ticks(&self, line: &JointSpaceMove) -> f64 {
        let period_s = self.checked.trajectory.period.as_secs_f64();
        let fastest_rad_s = line
            .by_rad
            .map(|_, by| SMOOTH_PEAK * by.abs() / (line.ticks * period_s));
        ticks_to_brake(self.scene(), &fastest_rad_s, period_s).max(LIFT_BRAKE_TICKS_MIN)
    }

    /// Long enough that the smooth step's peaks, 1.875 and 5.774 over its duration and its
    /// square, stay within the joints' limits.
    fn lift_ticks(&self, by_rad: &JointVector) -> f64 {
        let period = self.checked.trajectory.period.as_secs_f64();
        let limits = self.scene().arm.limits;
        let by_speed = by_rad.zip(&limits.velocity_rad_s, |by, fastest| {
            SMOOTH_PEAK * by.abs() / fastest
        });
        let by_push = by_rad.zip(&limits.acceleration_rad_s2, |by, hardest| {
            (5.774 * by.abs() / hardest).sqrt()
        });
        let seconds = by_speed
            .iter()
            .chain(by_push.iter())
            .copied()
            .fold(0.0, f64::max);
        (seconds / period).ceil().max(LIFT_TICKS_MIN)
    }
}

impl JointSpaceMove {
    fn at(&self, tick: f64) -> JointVector {
        let share = smooth(tick / self.ticks);
        self.from_rad
            .zip(&self.by_rad, |from, by| from + by * share)
    }
}

/// The goal's change in a tick.
enum GoalUpdate {
    To(JointVector),
    Not,
    Finished,
}

/// A rate one tick later, on its way to another.
fn ramped(rate: f64, wanted: f64, ticks: f64) -> f64 {
    rate + (wanted - rate).clamp(-1.0 / ticks, 1.0 / ticks)
}

/// From 0 to 1 with no speed and no acceleration at either end.
fn smooth(share: f64) -> f64 {
    share.powi(3) * (10.0 + share * (6.0 * share - 15.0))
}

#[cfg(test)]
mod tests;
