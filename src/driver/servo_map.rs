//! The servos and the joints that they turn: goals in radians to counts, counts to joints.

#![expect(
    clippy::indexing_slicing,
    reason = "an arm is checked when it is made: each of its joints has limits and a servo, and each \
              index is that of one of its servos"
)]

use std::f64::consts::TAU;
use std::ops::RangeInclusive;

use crate::error::{DriverError, ServoName};
use arm::{ArmModel, ServoFile};
use base::units::JointVector;
use servo::{BusCounts, ServoCounts, SetupFault};

/// Goals of the joints, and their speed caps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JointCommand {
    /// Goal of each joint.
    pub goal_rad: JointVector,
    /// Speed cap of each joint on its way there, above 0.
    pub velocity_cap_rad_s: JointVector,
}

/// Rounding by which a goal may lie beyond a limit.
const ROUNDING_RAD: f64 = 1e-6;

/// Largest angle between two servos of one joint: more than play, and than a joint turns while both are read.
const TWINS_APART_MAX_DEG: f64 = 5.0;

/// A servo of the arm.
#[derive(Clone, Debug)]
pub(crate) struct ServoEntry {
    pub name: ServoName,
    /// The joint that it moves; `None` for one that only holds.
    pub joint: Option<(usize, ServoFile)>,
    pub velocity_max_ticks_s: f64,
    pub acceleration_max_ticks_s2: f64,
    lower_rad: f64,
    upper_rad: f64,
}

/// Every servo on the port, in the arm file's order, the held ones last.
#[derive(Clone, Debug)]
pub(crate) struct ServoMap {
    pub entries: Vec<ServoEntry>,
    dof: usize,
}

/// Speed and acceleration of a servo that only holds, in ticks.
const HELD_TICKS: (f64, f64) = (200.0, 1000.0);

impl ServoMap {
    pub(crate) fn new(arm: &ArmModel) -> Self {
        let servos = arm.servos();
        let driving = servos.map(|(joint, servo)| joint_servo(arm, joint, servo));
        let held = arm.file.held.iter().map(|held| ServoEntry {
            name: ServoName {
                id: held.id,
                name: held.name.clone(),
            },
            joint: None,
            velocity_max_ticks_s: HELD_TICKS.0,
            acceleration_max_ticks_s2: HELD_TICKS.1,
            lower_rad: 0.0,
            upper_rad: 0.0,
        });
        Self {
            entries: driving.chain(held).collect(),
            dof: arm.dof(),
        }
    }

    pub(crate) fn ids(&self) -> Vec<u8> {
        self.entries.iter().map(|entry| entry.name.id).collect()
    }

    pub(crate) fn name(&self, index: usize) -> ServoName {
        self.entries[index].name.clone()
    }

    pub(crate) fn counts(&self) -> BusCounts {
        let servos = self.entries.iter().map(|entry| ServoCounts {
            id: entry.name.id,
            ..ServoCounts::default()
        });
        BusCounts {
            servos: servos.collect(),
            ..BusCounts::default()
        }
    }

    /// Returns a value per joint from one per servo; the mean where two servos move one joint.
    pub(crate) fn joints(&self, value: impl Fn(usize, ServoFile) -> f64) -> JointVector {
        let mut sum = JointVector::zeros(self.dof);
        let mut count = JointVector::zeros(self.dof);
        for (index, entry) in self.entries.iter().enumerate() {
            let Some((joint, servo)) = entry.joint else {
                continue;
            };
            sum[joint] += value(index, servo);
            count[joint] += 1.0;
        }
        sum.zip(&count, |sum, count| sum / count)
    }

    /// Checks that servos which turn one joint read the same angle.
    ///
    /// # Errors
    /// [`DriverError::TwinsDiffer`] names the first two that do not.
    pub(crate) fn check_twins(&self, ticks: impl Fn(usize) -> i32) -> Result<(), DriverError> {
        let mut first: Vec<Option<(usize, f64)>> = vec![None; self.dof];
        for (index, entry) in self.entries.iter().enumerate() {
            let Some((joint, servo)) = entry.joint else {
                continue;
            };
            let at_deg = servo.angle_rad(ticks(index)).to_degrees();
            let (twin, twin_deg) = *first[joint].get_or_insert((index, at_deg));
            let apart_deg = (at_deg - twin_deg).abs();
            if apart_deg > TWINS_APART_MAX_DEG {
                return Err(DriverError::TwinsDiffer {
                    servo: entry.name.clone(),
                    twin: Box::new(self.name(twin)),
                    apart_deg,
                    limit_deg: TWINS_APART_MAX_DEG,
                });
            }
        }
        Ok(())
    }

    /// Returns goal and speed cap of every servo that moves a joint, in ticks and ticks/s, checked
    /// against the joint's limits; where the arm was found beyond a limit, up to there. Goals are not
    /// rounded and do not lead. `found_ticks` has where each servo was found.
    ///
    /// # Errors
    /// [`DriverError::Goal`] names the first servo whose goal or speed is outside, not a number, or
    /// missing.
    pub(crate) fn goals(
        &self,
        command: &JointCommand,
        found_ticks: &[i32],
    ) -> Result<Vec<Option<(f64, f64)>>, DriverError> {
        self.entries
            .iter()
            .enumerate()
            .map(|(index, entry)| {
                let Some((joint, servo)) = entry.joint else {
                    return Ok(None);
                };
                let goal_rad = command.goal_rad.get(joint);
                let cap_rad_s = command.velocity_cap_rad_s.get(joint);
                let (Some(goal_rad), Some(cap_rad_s)) = (goal_rad, cap_rad_s) else {
                    return Err(entry.goal_error(f64::NAN));
                };
                let found_ticks = found_ticks[index];
                let goal = entry.goal(servo, *goal_rad, *cap_rad_s, found_ticks)?;
                Ok(Some(goal))
            })
            .collect()
    }
}

impl ServoEntry {
    /// Returns the joint's limits in counts, the lower first; `None` for a servo that only holds.
    pub(crate) fn range_ticks(&self) -> Option<(i32, i32)> {
        let (_, servo) = self.joint?;
        let (a, b) = (servo.ticks(self.lower_rad), servo.ticks(self.upper_rad));
        Some((a.min(b), a.max(b)))
    }

    /// Refuses a joint whose range leaves the one turn that its servo counts: it would fault there in the
    /// middle of a motion.
    pub(crate) fn check_turn(&self, turn: RangeInclusive<i32>) -> Result<(), SetupFault> {
        match self.range_ticks() {
            Some((least, most)) if !turn.contains(&least) || !turn.contains(&most) => {
                Err(SetupFault::LeavesTurn { least, most, turn })
            }
            _ => Ok(()),
        }
    }

    /// Returns the lead of the goals, in counts, for this travel of the joint: the servo's dead band.
    pub(super) fn lead_ticks(&self, travel: &JointVector) -> i32 {
        let Some((joint, servo)) = self.joint else {
            return 0;
        };
        let lead = i32::from(servo.dead_band_ticks) * i32::from(servo.sign);
        match travel[joint] {
            forward if forward > 0.0 => lead,
            backward if backward < 0.0 => -lead,
            _ => 0,
        }
    }

    /// Returns a goal in whole counts with this lead, never beyond the joint's limits, or no further
    /// beyond them than the goal is.
    pub(super) fn with_lead(&self, exact: f64, lead: i32) -> i32 {
        #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
        let ticks = exact.round() as i32;
        let Some((lower, upper)) = self.range_ticks() else {
            return ticks;
        };
        let goal = ticks.saturating_add(lead);
        goal.clamp(lower.min(ticks), upper.max(ticks))
    }

    fn goal(
        &self,
        servo: ServoFile,
        goal_rad: f64,
        cap_rad_s: f64,
        found_ticks: i32,
    ) -> Result<(f64, f64), DriverError> {
        let found_rad = servo.angle_rad(found_ticks);
        let lower_rad = self.lower_rad.min(found_rad) - ROUNDING_RAD;
        let upper_rad = self.upper_rad.max(found_rad) + ROUNDING_RAD;
        let is_valid = (lower_rad..=upper_rad).contains(&goal_rad) && cap_rad_s > 0.0;
        if !is_valid || !cap_rad_s.is_finite() {
            return Err(self.goal_error(goal_rad));
        }
        let scale = ticks_per_radian(servo);
        let from_zero = f64::from(servo.sign) * goal_rad * scale;
        Ok((f64::from(servo.zero_tick) + from_zero, cap_rad_s * scale))
    }

    fn goal_error(&self, goal_rad: f64) -> DriverError {
        DriverError::Goal {
            servo: self.name.clone(),
            goal_rad,
            lower_rad: self.lower_rad,
            upper_rad: self.upper_rad,
        }
    }
}

fn joint_servo(arm: &ArmModel, joint: usize, servo: ServoFile) -> ServoEntry {
    let value = |joints: &JointVector| joints[joint];
    let scale = ticks_per_radian(servo);
    ServoEntry {
        name: ServoName {
            id: servo.id,
            name: arm.joint_name(joint),
        },
        joint: Some((joint, servo)),
        velocity_max_ticks_s: value(&arm.limits.velocity_rad_s) * scale,
        acceleration_max_ticks_s2: value(&arm.limits.acceleration_rad_s2) * scale,
        lower_rad: value(&arm.limits.lower_rad),
        upper_rad: value(&arm.limits.upper_rad),
    }
}

pub(crate) fn ticks_per_radian(servo: ServoFile) -> f64 {
    f64::from(servo.ticks_per_turn) / TAU
}
