//! Finishes a motion or a stop on the arm's thread.

use std::time::Duration;

use super::standstill::WINDOW;
use super::thread::ArmThread;
use super::{MotionOutcome, MotionState, STOP_LIMIT};
use driver::HaltMode;

/// Longest time for the joints to come to their last goal.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// A joint that stands more counts than this from its last goal has not reached it: 0.9°.
pub(super) const REACHED_COUNTS: f64 = 10.0;

impl ArmThread {
    /// Ends a stop, or a motion, that has come to rest or is overdue.
    pub(super) fn finish_if_settled(&mut self) {
        let now = self.shared.clock.now();
        let is_settled = self.driver.is_settled();
        let job = self.job.as_ref();
        let has_sent_all = job.is_none_or(|job| job.sent_all_at.is_some());
        if let Some(stopping) = &self.stopping {
            let is_still =
                has_sent_all && is_settled && self.standstill.is_standing(stopping.request.at);
            let is_overdue = now.since(stopping.request.at) > STOP_LIMIT + self.lift_time();
            if is_overdue || (is_still && !self.try_let_go()) {
                self.finish_stop(is_still);
            }
            return;
        }
        let Some(sent) = self.job.as_ref().and_then(|job| job.sent_all_at) else {
            return;
        };
        let is_still = is_settled && self.standstill.is_standing(sent);
        let is_overdue = now.since(sent) > SETTLE_TIME;
        if self.job.as_ref().is_some_and(|job| job.failure.is_some()) {
            if is_overdue || (is_still && !self.try_let_go()) {
                self.end_failed();
            }
            return;
        }
        let off_rad = self.off_rad();
        if is_still && off_rad <= self.reached_rad {
            self.finish_job(off_rad);
        } else if is_overdue {
            let reason = if off_rad > self.reached_rad {
                self.describe_shortfall()
            } else {
                self.describe_unrest()
            };
            self.fault(&reason);
        }
    }

    /// Lets go of joints that press against something, before a stop or a fault is reported as done;
    /// returns whether it did. A controller that plans its own path has dropped its commands, and a
    /// servo that gave up gets no goal before it is energised again.
    fn try_let_go(&mut self) -> bool {
        let (Some(job), Some(measured)) = (&mut self.job, &self.snapshot.measured) else {
            return false;
        };
        let can_press = self.driver.stands_at_its_goal() && self.driver.is_energised();
        let has_let_go = can_press && job.execution.let_go(measured);
        if has_let_go {
            job.sent_all_at = None;
            tracing::warn!("a joint stands away from its goal: it is let go of");
        }
        has_let_go
    }

    fn lift_time(&self) -> Duration {
        let job = self.job.as_ref();
        job.map_or(Duration::ZERO, |job| job.execution.lift_time())
    }

    /// Returns whether a stop's lift was sent and the arm was measured at its end.
    pub(super) fn has_lifted(&self) -> bool {
        let job = self.job.as_ref();
        job.is_some_and(|job| job.execution.has_lifted()) && self.off_rad() <= self.reached_rad
    }

    fn off_rad(&self) -> f64 {
        match (&self.job, &self.snapshot.measured) {
            (Some(job), Some(measured)) => job
                .execution
                .goal_rad()
                .distance_max(&measured.position_rad),
            _ => f64::INFINITY,
        }
    }

    fn describe_shortfall(&self) -> String {
        let (Some(job), Some(measured)) = (&self.job, &self.snapshot.measured) else {
            return "the arm was not read at its goal".to_owned();
        };
        let off = job
            .execution
            .goal_rad()
            .zip(&measured.position_rad, |goal, at| (goal - at).abs());
        let worst = off
            .iter()
            .copied()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((joint, error_rad)) = worst else {
            return "no joint of the arm was read at its goal".to_owned();
        };
        format!(
            "{} stopped {:.1}° short of its goal ({:.1}° is allowed): something holds it, or its servo is too weak",
            self.shared.arm.joint_name(joint),
            error_rad.to_degrees(),
            self.reached_rad.to_degrees()
        )
    }

    /// Describes why a motion is not at its end, although every joint is near its goal.
    fn describe_unrest(&self) -> String {
        let limit_s = SETTLE_TIME.as_secs();
        match self.standstill.busiest() {
            Some((joint, moved_rad)) if moved_rad > self.standstill.noise_rad(joint) => format!(
                "{} does not come to rest at its goal: it moved by {:.2}° within {} ms ({:.2}° is allowed), {limit_s} s after the last goal: its servo hunts, or something shakes the arm",
                self.shared.arm.joint_name(joint),
                moved_rad.to_degrees(),
                WINDOW.as_millis(),
                self.standstill.noise_rad(joint).to_degrees()
            ),
            _ if !self.driver.is_settled() => format!(
                "every joint is at its goal, but the controller has not ended the motion {limit_s} s after the last goal: see its state in `sense`"
            ),
            _ => format!(
                "every joint is at its goal, but the end of the motion was not read back within {limit_s} s: check the bus in `sense`"
            ),
        }
    }

    fn finish_job(&mut self, off_rad: f64) {
        // An arm that the node itself brought to rest keeps its fault.
        self.snapshot.state = match self.snapshot.fault {
            Some(_) => MotionState::Faulted,
            None => MotionState::Holding,
        };
        if let Some(job) = self.job.take() {
            self.replies.push(job.reached(off_rad, self.reached_rad));
        }
    }

    /// Ends a motion that failed, now that it stands or is overdue.
    #[expect(
        clippy::expect_used,
        reason = "a fault notes its reason before it ends a motion"
    )]
    pub(super) fn end_failed(&mut self) {
        // Before the reply.
        if let Some(latch) = self.latching.take() {
            self.shared.permits.latch(latch);
        }
        if let Some(mut job) = self.job.take() {
            self.driver.forget_unread_goals();
            self.driver.halt(HaltMode::Hold);
            let reason = job.failure.take().expect("the reason of the failure");
            self.replies.push(job.end(MotionOutcome::Faulted(reason)));
        }
    }
}
