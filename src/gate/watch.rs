//! Whether the arm follows: the leash, the stall, and readings that do not come.

use std::time::Duration;

use super::execute::Broken;
use crate::arm::Arm;
use crate::units::{Instant, Joints, Measured};

/// The goal is never further ahead of the measured joint than this much time at full speed, so
/// that an arm that loses its host moves no further.
const LEASH: Duration = Duration::from_millis(150);

/// A goal that waited for a joint goes on when the joint has come this share of the leash near.
const NEAR_AGAIN: f64 = 0.8;

/// A joint that does not follow for so long is stalled.
pub(super) const STALL: Duration = Duration::from_millis(300);

/// A servo that pushes harder than this and is further behind than [`STALL_RAD`] is stalled.
const STALL_LOAD: f64 = 0.6;

/// Three degrees.
const STALL_RAD: f64 = 3.0 * std::f64::consts::PI / 180.0;

/// Readings older than so many periods hold the motion.
const BLIND_PERIODS: u32 = 3;

/// And older than this end it.
pub(super) const BLIND: Duration = Duration::from_millis(100);

/// What was seen so far.
#[derive(Debug)]
pub(super) struct Watch {
    joints: Vec<Joint>,
    waits: bool,
    waited_ticks: u32,
    broken: Option<Broken>,
    told: bool,
    /// The goal of the tick before, since something was told.
    before_rad: Option<Joints>,
    lost: bool,
}

#[derive(Debug)]
struct Joint {
    name: String,
    leash_rad: f64,
    /// The servos that turn it.
    servos: Vec<u8>,
    pushed_ticks: u32,
}

impl Watch {
    pub(super) fn new(arm: &Arm) -> Self {
        let joints = arm.limits.velocity_rad_s.iter().enumerate();
        let joints = joints.map(|(joint, fastest)| Joint {
            name: arm.joint_name(joint),
            leash_rad: fastest * LEASH.as_secs_f64(),
            servos: arm
                .servos()
                .filter(|(of, _)| *of == joint)
                .map(|(_, servo)| servo.id)
                .collect(),
            pushed_ticks: 0,
        });
        Self {
            joints: joints.collect(),
            waits: false,
            waited_ticks: 0,
            broken: None,
            told: false,
            before_rad: None,
            lost: false,
        }
    }

    /// Whether the goal has to wait. `ahead_rad` is where it would stand if it braked now.
    pub(super) fn look(
        &mut self,
        goal_rad: &Joints,
        ahead_rad: &Joints,
        seen: &Measured,
        now: Instant,
        period: Duration,
    ) -> bool {
        let age = now.since(seen.at);
        if self.told {
            self.lost |= age > BLIND || self.leaves(goal_rad, &seen.position_rad);
            return age > period * BLIND_PERIODS;
        }
        if age > BLIND {
            self.breaks(Broken::Blind(age.as_millis()));
        }
        if let Some(joint) = self.pushes(goal_rad, seen, period) {
            let by_rad = apart(goal_rad, &seen.position_rad, joint);
            self.stalled(joint, by_rad);
        }
        let behind = self.behind(ahead_rad, &seen.position_rad);
        self.waits = behind.is_some();
        self.waited_ticks = if self.waits { self.waited_ticks + 1 } else { 0 };
        if let Some((joint, by_rad)) = behind
            && period * self.waited_ticks > STALL
        {
            self.stalled(joint, by_rad);
        }
        self.waits || age > period * BLIND_PERIODS
    }

    pub(super) fn has_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// What broke, the first time that it is asked for.
    pub(super) fn tell(&mut self) -> Option<Broken> {
        let broken = self.broken.take();
        self.told |= broken.is_some();
        broken
    }

    pub(super) fn was_told(&self) -> bool {
        self.told
    }

    /// Whether there is no way to a safe end after all: what was told to go back or up is not
    /// seen to, or does not come along.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether the goal is on its way from a joint that is near the end of its leash. One that
    /// comes back to it from beyond is not.
    fn leaves(&mut self, goal_rad: &Joints, is_rad: &Joints) -> bool {
        let before_rad = self.before_rad.replace(*goal_rad).unwrap_or(*goal_rad);
        self.joints.iter().enumerate().any(|(index, joint)| {
            let ahead = apart(goal_rad, is_rad, index);
            ahead > joint.leash_rad * NEAR_AGAIN && ahead > apart(&before_rad, is_rad, index)
        })
    }

    fn breaks(&mut self, broken: Broken) {
        self.broken.get_or_insert(broken);
    }

    fn stalled(&mut self, joint: usize, behind_rad: f64) {
        let name = self.joints.get(joint).map(|joint| joint.name.clone());
        self.breaks(Broken::Stalled {
            joint: name.unwrap_or_else(|| "a joint that was not read".to_owned()),
            behind_deg: whole_degrees(behind_rad),
        });
    }

    /// The joint that is at the end of its leash.
    fn behind(&self, ahead_rad: &Joints, is_rad: &Joints) -> Option<(usize, f64)> {
        if is_rad.len() != ahead_rad.len() {
            // A joint that was not read does not follow.
            return Some((is_rad.len(), f64::INFINITY));
        }
        let share = if self.waits { NEAR_AGAIN } else { 1.0 };
        self.joints.iter().enumerate().find_map(|(index, joint)| {
            let behind = apart(ahead_rad, is_rad, index);
            (behind.is_nan() || behind > joint.leash_rad * share).then_some((index, behind))
        })
    }

    /// The joint whose servo has pushed hard for long, and is far behind all the while.
    fn pushes(&mut self, goal_rad: &Joints, seen: &Measured, period: Duration) -> Option<usize> {
        let mut found = None;
        for (index, joint) in self.joints.iter_mut().enumerate() {
            let hardest = seen
                .servos
                .iter()
                .filter(|servo| joint.servos.contains(&servo.id))
                .filter_map(|servo| servo.load_ratio)
                .fold(0.0, |most: f64, load| most.max(load.abs()));
            let far = apart(goal_rad, &seen.position_rad, index) > STALL_RAD;
            joint.pushed_ticks = if far && hardest > STALL_LOAD {
                joint.pushed_ticks + 1
            } else {
                0
            };
            if period * joint.pushed_ticks > STALL {
                found = found.or(Some(index));
            }
        }
        found
    }
}

/// How far a joint is from where it shall be; infinite for one that was not read.
fn apart(goal_rad: &Joints, is_rad: &Joints, joint: usize) -> f64 {
    match (goal_rad.get(joint), is_rad.get(joint)) {
        (Some(goal), Some(is)) => (goal - is).abs(),
        _ => f64::INFINITY,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; for words only"
)]
fn whole_degrees(rad: f64) -> u32 {
    rad.to_degrees().round() as u32
}
