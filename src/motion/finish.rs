//! Finishes a motion or a stop on the arm's thread.

use std::time::Duration;

use super::standstill::WINDOW;
use super::thread::ArmThread;
use super::{JointSagging, MotionOutcome, MotionState, STOP_LIMIT};
use arm::ArmModel;
use base::units::ArmMeasurement;
use driver::HaltMode;

/// Longest time for the joints to come to their last goal.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// A joint that stands more counts than this from its last goal has not reached it: 0.9°.
pub(super) const REACHED_COUNTS: f64 = 10.0;

/// Load of a servo, as a fraction of its torque, that gravity does not explain: something pushes.
const LOAD_UNEXPLAINED: f64 = 0.15;

/// How far a joint stands from the end of its path.
struct EndDistance {
    joint: usize,
    off_rad: f64,
    /// The load of its servo that pushes hardest, as a fraction of its torque.
    load: Option<f64>,
    is_with_gravity: bool,
    is_explained: bool,
}

/// Returns the load of the servo of a joint that pushes hardest, as a fraction of its torque.
fn measured_load(arm: &ArmModel, measured: &ArmMeasurement, joint: usize) -> Option<f64> {
    let places = arm.servo_places(joint).into_iter();
    let loads = places.filter_map(|place| measured.servos.get(place)?.load_ratio);
    loads.map(f64::abs).reduce(f64::max)
}

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
        let distances = self.distances();
        let is_at_end = distances.iter().all(|distance| distance.is_explained);
        if is_still && off_rad <= self.reached_rad {
            self.finish_job(off_rad, Vec::new());
        } else if is_overdue && is_still && is_at_end && !distances.is_empty() {
            let sags = self.sags(&distances);
            self.finish_job(off_rad, sags);
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
            tracing::warn!(
                "a joint pressed against something at the end of the motion, so its goal was moved to where it stands"
            );
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

    /// Returns how far each joint stands from the end of its path; empty where the arm was not read.
    fn distances(&self) -> Vec<EndDistance> {
        let (Some(job), Some(measured)) = (&self.job, &self.snapshot.measured) else {
            return Vec::new();
        };
        let (goal_rad, sag) = (job.execution.goal_rad(), job.execution.sag());
        let arm = &self.shared.arm;
        let explained_rad = sag.explained_rad(arm, goal_rad);
        let by_gravity = sag.load_ratio(arm, goal_rad);
        let joints = goal_rad
            .iter()
            .zip(measured.position_rad.iter())
            .enumerate();
        let joints = joints.zip(explained_rad.iter());
        joints
            .map(|((joint, (goal, at)), explained)| {
                let off_rad = at - goal;
                let load = measured_load(arm, measured, joint);
                let by_gravity = by_gravity.as_ref().and_then(|all| all.get(joint));
                let is_pushing = load
                    .zip(by_gravity)
                    .is_some_and(|(load, by_gravity)| load > by_gravity.abs() + LOAD_UNEXPLAINED);
                let with_gravity = off_rad * explained > 0.0
                    && off_rad.abs() <= explained.abs() + self.reached_rad;
                EndDistance {
                    joint,
                    off_rad,
                    load,
                    is_with_gravity: off_rad * explained > 0.0,
                    is_explained: off_rad.abs() <= self.reached_rad
                        || (with_gravity && !is_pushing),
                }
            })
            .collect()
    }

    fn sags(&self, distances: &[EndDistance]) -> Vec<JointSagging> {
        let far = distances
            .iter()
            .filter(|distance| distance.off_rad.abs() > self.reached_rad);
        far.map(|distance| JointSagging {
            joint: self.shared.arm.joint_name(distance.joint),
            rad: distance.off_rad.abs(),
        })
        .collect()
    }

    fn describe_shortfall(&self) -> String {
        let distances = self.distances();
        let farther = |a: &&EndDistance, b: &&EndDistance| {
            let key = |of: &EndDistance| (!of.is_explained, of.off_rad.abs());
            key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1))
        };
        let Some(worst) = distances.iter().max_by(farther) else {
            return "no joint of the arm could be read at the end".to_owned();
        };
        let load = worst.load.map_or_else(String::new, |load| {
            format!(" and uses {:.0} % of its torque", load * 100.0)
        });
        let why = match worst.is_with_gravity {
            true => {
                "its weight does not explain that: something pulls it down, its servo is too weak or gave up, or its gain P is low (`steadyhand doctor`)"
            }
            false => "its weight does not explain that: something blocks it",
        };
        format!(
            "{} stopped {:.1}° short of its goal (at most {:.1}°){load}: {why}",
            self.shared.arm.joint_name(worst.joint),
            worst.off_rad.abs().to_degrees(),
            self.reached_rad.to_degrees()
        )
    }

    /// Describes why a motion is not at its end, although every joint is near its goal.
    fn describe_unrest(&self) -> String {
        let limit_s = SETTLE_TIME.as_secs();
        match self.standstill.busiest() {
            Some((joint, moved_rad)) if moved_rad > self.standstill.noise_rad(joint) => format!(
                "{} does not stand still: {limit_s} s after the last goal it moved by {:.2}° within {} ms (at most {:.2}°). Its servo oscillates, or something shakes the arm",
                self.shared.arm.joint_name(joint),
                moved_rad.to_degrees(),
                WINDOW.as_millis(),
                self.standstill.noise_rad(joint).to_degrees()
            ),
            _ if !self.driver.is_settled() => format!(
                "every joint is at its goal, but {limit_s} s later the controller has not ended the motion. `sense` shows its state"
            ),
            _ => format!(
                "every joint is at its goal, but the end of the motion could not be read within {limit_s} s. `sense` shows the bus"
            ),
        }
    }

    fn finish_job(&mut self, off_rad: f64, sags: Vec<JointSagging>) {
        tracing::debug!(deg_per_n_m = ?self.sag.yield_deg_per_n_m(&self.shared.arm), "the joints give way");
        // An arm that the node itself brought to rest keeps its fault.
        self.snapshot.state = match self.snapshot.fault {
            Some(_) => MotionState::Faulted,
            None => MotionState::Holding,
        };
        if let Some(job) = self.job.take() {
            self.replies
                .push(job.reached(off_rad, sags, self.reached_rad));
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
