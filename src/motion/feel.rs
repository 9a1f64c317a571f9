//! Feeling the sheet with the servos: what they say in the air is learned first, and what differs
//! from it is a touch.
//!
//! Two things tell of a touch: a joint stays behind its goal, and its servo pushes harder. Which
//! comes first depends on servo and pen, so both are watched. Whoever is deaf to both is caught by
//! the depth at which the gate lets no probe go further.

use crate::arm::Arm;
use crate::units::{Instant, Joints, Measured};

/// Readings that are let pass while the tip comes to its speed.
const SETTLE: usize = 30;

/// Readings in the air from which it is learned what nothing feels like.
const LEARN: usize = 90;

/// So many readings in a row beyond the threshold are a touch.
const IN_A_ROW: usize = 3;

/// A joint is not felt before it is so many counts further behind than in the air.
const COUNTS: f64 = 3.0;

/// A servo is not felt before it pushes by so much of its torque more than in the air.
const LOAD: f64 = 0.03;

/// How many times what varied in the air is added.
const SPREADS: f64 = 2.0;

/// What is felt on one probe.
#[derive(Debug)]
pub(super) struct Feeler {
    channels: Vec<Channel>,
    readings: usize,
    beyond: usize,
    read_at: Option<Instant>,
    /// Where the joints were when nothing was felt for the last time.
    free_rad: Option<Joints>,
}

/// One number that tells of a touch.
#[derive(Debug)]
struct Channel {
    of: Of,
    /// What it differs by at least where it is a touch.
    least: f64,
    sum: f64,
    low: f64,
    high: f64,
}

#[derive(Clone, Copy, Debug)]
enum Of {
    /// How far a joint is behind its goal.
    Behind(usize),
    /// How hard a servo pushes.
    Load(u8),
}

impl Feeler {
    pub(super) fn new(arm: &Arm) -> Self {
        let channels = arm.servos().flat_map(|(joint, servo)| {
            let count_rad = std::f64::consts::TAU / f64::from(servo.ticks_per_turn.max(1));
            [
                Channel::new(Of::Behind(joint), COUNTS * count_rad),
                Channel::new(Of::Load(servo.id), LOAD),
            ]
        });
        Self {
            channels: channels.collect(),
            readings: 0,
            beyond: 0,
            read_at: None,
            free_rad: None,
        }
    }

    /// Where the joints were when the tip came to touch, as soon as that is felt. A reading that
    /// was looked at before says nothing new.
    pub(super) fn feel(&mut self, goal_rad: &Joints, seen: &Measured) -> Option<Joints> {
        if self.read_at.replace(seen.at) == Some(seen.at) {
            return None;
        }
        self.readings += 1;
        if self.readings <= SETTLE {
            return None;
        }
        let learned = (self.readings - SETTLE - 1).min(LEARN);
        let mut most: f64 = 0.0;
        for channel in &mut self.channels {
            let Some(value) = channel.of.value(goal_rad, seen) else {
                continue;
            };
            if learned > 0 {
                most = most.max(channel.excess(value, learned));
            }
            if learned < LEARN {
                channel.learn(value);
            }
        }
        self.judge(most, seen)
    }

    /// `most` is the largest share of a threshold.
    fn judge(&mut self, most: f64, seen: &Measured) -> Option<Joints> {
        if most < 0.5 {
            self.free_rad = Some(seen.position_rad);
        }
        self.beyond = if most > 1.0 { self.beyond + 1 } else { 0 };
        (self.beyond >= IN_A_ROW).then(|| self.free_rad.unwrap_or(seen.position_rad))
    }
}

impl Channel {
    fn new(of: Of, least: f64) -> Self {
        Self {
            of,
            least,
            sum: 0.0,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
        }
    }

    fn learn(&mut self, value: f64) {
        self.sum += value;
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    /// How far a value is from the air's, as a share of what is a touch.
    fn excess(&self, value: f64, learned: usize) -> f64 {
        let mean = self.sum / learned as f64;
        // What already touches while it is learned must not pass for air.
        let varied = (self.high - self.low).min(self.least);
        (value - mean).abs() / (self.least + SPREADS * varied)
    }
}

impl Of {
    fn value(self, goal_rad: &Joints, seen: &Measured) -> Option<f64> {
        match self {
            Self::Behind(joint) => Some(goal_rad.get(joint)? - seen.position_rad.get(joint)?),
            Self::Load(id) => {
                let servo = seen.servos.iter().find(|servo| servo.id == id)?;
                servo.load_ratio
            }
        }
        .filter(|value| value.is_finite())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::scene::Library;
    use crate::units::ServoState;

    const TICK: Duration = Duration::from_millis(10);

    fn feeler() -> (Feeler, usize) {
        let arm = Library::new(None).arm("so101").unwrap();
        (Feeler::new(&arm), arm.dof())
    }

    /// Readings in which the second joint is so far behind and its servo pushes so hard.
    fn reading(dof: usize, tick: u64, behind_rad: f64, load: f64) -> Measured {
        let mut at = Instant::ZERO;
        (0..tick).for_each(|_| at = at.after(TICK));
        Measured {
            at,
            position_rad: Joints::zeros(dof).map(|j, _| if j == 1 { -behind_rad } else { 0.0 }),
            velocity_rad_s: Joints::zeros(dof),
            servos: vec![ServoState {
                id: 2,
                load_ratio: Some(load),
                ..<_>::default()
            }],
        }
    }

    /// Feels some noise in the air, and then what `then` says; the tick at which it is a touch.
    fn felt(air: u64, then: impl Fn(u64) -> (f64, f64)) -> Option<u64> {
        let (mut feeler, dof) = feeler();
        let goal = Joints::zeros(dof);
        (1..=air + 200).find(|tick| {
            let noise = if tick % 3 == 0 { 0.001 } else { 0.0 };
            let (behind, load) = tick.checked_sub(air).map_or((0.0, 0.0), &then);
            let seen = reading(dof, *tick, behind + noise, load + noise * 5.0);
            feeler.feel(&goal, &seen).is_some()
        })
    }

    #[test]
    fn nothing_is_felt_in_the_air() {
        assert_eq!(felt(400, |_| (0.0, 0.0)), None);
        // Not even what is always so: a servo that sags, a bearing that is stiff.
        let (mut feeler, dof) = feeler();
        let goal = Joints::zeros(dof);
        let all = (1..400).all(|tick| {
            let seen = reading(dof, tick, 0.02, 0.3);
            feeler.feel(&goal, &seen).is_none()
        });
        assert!(all);
    }

    #[test]
    fn a_joint_that_stays_behind_and_a_servo_that_pushes_are_felt() {
        let slow = |rise: f64| move |ticks: u64| (ticks as f64 * rise, 0.0);
        let tick = felt(200, slow(0.0002)).unwrap();
        assert!((210..260).contains(&tick), "{tick}");
        let tick = felt(200, |ticks| (0.0, -(ticks as f64) * 0.002)).unwrap();
        assert!((210..240).contains(&tick), "{tick}");
    }

    #[test]
    fn what_touches_from_the_start_does_not_pass_for_air() {
        let tick = felt(60, |ticks| (0.0, ticks as f64 * 0.01)).unwrap();
        assert!(tick < 120, "{tick}");
    }

    #[test]
    fn one_reading_counts_once_and_a_single_strange_one_is_no_touch() {
        let (mut feeler, dof) = feeler();
        let goal = Joints::zeros(dof);
        (1..200).for_each(|tick| {
            assert!(feeler.feel(&goal, &reading(dof, tick, 0.0, 0.0)).is_none());
        });
        let strange = reading(dof, 200, 0.1, 1.0);
        assert!((0..10).all(|_| feeler.feel(&goal, &strange).is_none()));
        assert!(feeler.feel(&goal, &reading(dof, 201, 0.0, 0.0)).is_none());
        let touched = (202..210).find_map(|tick| feeler.feel(&goal, &reading(dof, tick, 0.1, 0.0)));
        // Where it was free for the last time, not where it was when that was sure.
        assert_eq!(touched, Some(Joints::zeros(dof)));
    }
}
