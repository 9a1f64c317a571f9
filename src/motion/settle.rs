//! How a motion or a stop on the arm's thread comes to its end.

use std::time::Duration;

use super::thread::Worker;
use super::{Outcome, STOP_LIMIT, State};
use crate::driver::Halt;

/// How long the joints may take to come to their last goal.
const SETTLE: Duration = Duration::from_secs(1);

/// A joint that stands more counts than this from its last goal has not reached it: 0.9°.
pub(super) const REACHED_COUNTS: f64 = 10.0;

impl Worker {
    /// Ends a stop, or a motion, that has come to rest or has had its time.
    pub(super) fn settle(&mut self) {
        let now = self.own.clock.now();
        let settled = self.driver.is_settled();
        let sent_all = self.job.as_ref().is_none_or(|job| job.sent_all.is_some());
        if let Some(stopping) = &self.stopping {
            let still = sent_all && settled && self.still.stands(stopping.asked.at);
            if still || now.since(stopping.asked.at) > STOP_LIMIT {
                self.finish_stop(still);
            }
            return;
        }
        let Some(sent) = self.job.as_ref().and_then(|job| job.sent_all) else {
            return;
        };
        let still = settled && self.still.stands(sent);
        let late = now.since(sent) > SETTLE;
        if self.job.as_ref().is_some_and(|job| job.failing.is_some()) {
            if still || late {
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
        let (joint, by) = worst.unwrap_or_default();
        format!(
            "{} stopped {:.1}° short of its goal ({:.1}° is allowed): something holds it, or its servo is too weak",
            self.own.arm.joint_name(joint),
            by.to_degrees(),
            self.reached_rad.to_degrees()
        )
    }

    fn finish_job(&mut self, off_rad: f64) {
        self.snapshot.state = State::Holding;
        if let Some(job) = self.job.take() {
            self.answers.push(job.reached(off_rad));
        }
    }

    /// Ends a motion that broke, now that it stands or has had its time.
    pub(super) fn end_failed(&mut self) {
        if let Some(mut job) = self.job.take() {
            self.driver.halt(Halt::Hold);
            let why = job.failing.take().unwrap_or_default();
            self.answers.push(job.end(Outcome::Faulted(why)));
        }
    }
}
