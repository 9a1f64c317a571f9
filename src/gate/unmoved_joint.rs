//! Detects a joint whose reading stands still while its goal moves: its lag may stay far within the
//! leash, and come to nothing where the goal comes back.

use arm::ArmModel;

/// Range over which a goal moves before a joint whose reading stands still counts as unmoved: two
/// degrees, twice the play of worn gears and more than a servo sticks or sags.
pub(super) const UNMOVED_RAD: f64 = 2.0 * std::f64::consts::PI / 180.0;

/// A reading that changes by no more than this stands still: a quarter of a degree, or this many
/// encoder counts.
const STILL_RAD: f64 = 0.25 * std::f64::consts::PI / 180.0;
const STILL_COUNTS: f64 = 3.0;

/// The range of a joint's goal since its reading last changed.
#[derive(Debug)]
pub(super) struct UnmovedJoint {
    still_rad: f64,
    since: Option<StillReading>,
}

#[derive(Clone, Copy, Debug)]
struct StillReading {
    reading_rad: f64,
    goal_min_rad: f64,
    goal_max_rad: f64,
    /// Ticks since the goal had moved by more than [`UNMOVED_RAD`].
    ticks: u32,
}

impl UnmovedJoint {
    pub(super) fn new(arm: &ArmModel, joint: usize) -> Self {
        let servos = arm.servos().filter(|(index, _)| *index == joint);
        let counts_rad = servos
            .map(|(_, servo)| std::f64::consts::TAU / f64::from(servo.ticks_per_turn.max(1)))
            .fold(0.0, f64::max);
        Self {
            still_rad: STILL_RAD.max(STILL_COUNTS * counts_rad),
            since: None,
        }
    }

    /// Evaluates a goal and a reading. Returns the range of the goal, and the ticks for which the
    /// reading has not followed that range.
    pub(super) fn update(&mut self, goal_rad: f64, reading_rad: f64) -> (f64, u32) {
        let is_still =
            |since: &StillReading| (reading_rad - since.reading_rad).abs() <= self.still_rad;
        let mut since = self.since.filter(is_still).unwrap_or(StillReading {
            reading_rad,
            goal_min_rad: goal_rad,
            goal_max_rad: goal_rad,
            ticks: 0,
        });
        since.goal_min_rad = since.goal_min_rad.min(goal_rad);
        since.goal_max_rad = since.goal_max_rad.max(goal_rad);
        let range_rad = since.goal_max_rad - since.goal_min_rad;
        if range_rad > UNMOVED_RAD {
            since.ticks += 1;
        }
        self.since = Some(since);
        (range_rad, since.ticks)
    }
}
