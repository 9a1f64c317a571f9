//! Finishes a motion or a stop on the arm's thread.

use std::time::Duration;

use super::thread::ArmThread;
use super::{MotionOutcome, MotionState, STOP_LIMIT};
use driver::HaltMode;

/// Longest time for the joints to come to their last goal.
const SETTLE: Duration = Duration::from_secs(1);

/// A joint that stands more counts than this from its last goal has not reached it: 0.9°.
pub(super) const REACHED_COUNTS: f64 = 10.0;

impl ArmThread {
    /// Ends a stop, or a motion, that has come to rest or has had its time.
    pub(super) fn finish_if_settled(&mut self) {
        let now = self.own.clock.now();
        let settled = self.driver.is_settled();
        let sent_all = self.job.as_ref().is_none_or(|job| job.sent_all.is_some());
        if let Some(stopping) = &self.stopping {
            let still = sent_all && settled && self.still.is_standing(stopping.asked.at);
            let late = now.since(stopping.asked.at) > STOP_LIMIT + self.lift_time();
            if late || (still && !self.try_let_go()) {
                self.finish_stop(still);
            }
            return;
        }
        let Some(sent) = self.job.as_ref().and_then(|job| job.sent_all) else {
            return;
        };
        let still = settled && self.still.is_standing(sent);
        let late = now.since(sent) > SETTLE;
        if self.job.as_ref().is_some_and(|job| job.failing.is_some()) {
            if late || (still && !self.try_let_go()) {
                self.end_failed();
            }
            return;
        }
        let off_rad = self.off_rad();
        if still && off_rad <= self.reached_rad {
            self.finish_job(off_rad);
        } else if late {
            let why = self.short_of_goal();
            self.fault(&why);
        }
    }

    /// Lets go of joints that press against something, before a stop or a fault is reported as over;
    /// returns whether it did. A controller that plans its own path has dropped its commands, and a
    /// servo that gave up gets no goal before it is energised again.
    fn try_let_go(&mut self) -> bool {
        let (Some(job), Some(seen)) = (&mut self.job, &self.snapshot.measured) else {
            return false;
        };
        let presses = self.driver.stands_at_its_goal() && self.driver.is_energised();
        let lets_go = presses && job.execution.let_go(seen);
        if lets_go {
            job.sent_all = None;
            tracing::warn!("a joint stands away from its goal: it is let go of");
        }
        lets_go
    }

    fn lift_time(&self) -> Duration {
        let job = self.job.as_ref();
        job.map_or(Duration::ZERO, |job| job.execution.lift_time())
    }

    /// Returns whether a stop's lift was sent and the arm was read back at its end.
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

    fn short_of_goal(&self) -> String {
        let (Some(job), Some(measured)) = (&self.job, &self.snapshot.measured) else {
            return "the arm was not read at its goal".to_owned();
        };
        let off = job
            .execution
            .goal_rad()
            .zip(&measured.position_rad, |goal, is| (goal - is).abs());
        let worst = off
            .iter()
            .copied()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((joint, by)) = worst else {
            return "no joint of the arm was read at its goal".to_owned();
        };
        format!(
            "{} stopped {:.1}° short of its goal ({:.1}° is allowed): something holds it, or its servo is too weak",
            self.own.arm.joint_name(joint),
            by.to_degrees(),
            self.reached_rad.to_degrees()
        )
    }

    fn finish_job(&mut self, off_rad: f64) {
        // What the node itself brings to rest has its fault still.
        self.snapshot.state = match self.snapshot.fault {
            Some(_) => MotionState::Faulted,
            None => MotionState::Holding,
        };
        if let Some(job) = self.job.take() {
            self.answers.push(job.reached(off_rad));
        }
    }

    /// Ends a motion that broke, now that it stands or has had its time.
    #[expect(
        clippy::expect_used,
        reason = "a fault says why before it ends a motion"
    )]
    pub(super) fn end_failed(&mut self) {
        // Before the answer.
        if let Some(latch) = self.latching.take() {
            self.own.permits.latch(latch);
        }
        if let Some(mut job) = self.job.take() {
            self.driver.halt(HaltMode::Hold);
            let why = job.failing.take().expect("why the motion broke");
            self.answers.push(job.end(MotionOutcome::Faulted(why)));
        }
    }
}
