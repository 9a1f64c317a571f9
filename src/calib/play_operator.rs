//! A joint with play: it lags behind its servo until the play is crossed.

use std::ops::RangeInclusive;

/// Travel after which a joint's position depends on its last moves alone: no play is larger.
const KNOWN_AFTER_DEG: f64 = 2.0;

/// A joint that follows its servo within half of its play on either side.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlayOperator {
    /// Half the play with which its sides are determined.
    half_deg: f64,
    /// Half of its actual play, which is that or less.
    scaled_deg: f64,
    joint_deg: f64,
    /// Change of its position for each degree of half the play.
    slope: f64,
    least_deg: f64,
    most_deg: f64,
}

/// Offset of a joint from its servo, and its dependence on the play.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LaggingJoint {
    /// From the servo's position to the joint's.
    pub(super) off_deg: f64,
    /// Change of the offset for each degree of half the play: -1 after an upward move, 1 after a downward one.
    pub(super) slope: f64,
    /// True once it has moved far enough for its side to be known.
    pub(super) is_known: bool,
}

/// Half of the smallest and of the largest play with which sides are determined. With none a joint would change its side at
/// the smallest move, and two joints that turn together would change theirs together.
const HALF_DEG: RangeInclusive<f64> = 0.1..=1.0;

impl PlayOperator {
    pub(super) fn new(half_deg: f64, servo_deg: f64) -> Self {
        Self {
            half_deg: half_deg.clamp(*HALF_DEG.start(), *HALF_DEG.end()),
            scaled_deg: half_deg.min(*HALF_DEG.end()),
            joint_deg: servo_deg,
            slope: 0.0,
            least_deg: servo_deg,
            most_deg: servo_deg,
        }
    }

    /// Turns the servo to an angle without reversing on the way.
    pub(super) fn turn_to(&mut self, servo_deg: f64) -> LaggingJoint {
        let half_deg = self.half_deg;
        if servo_deg - half_deg > self.joint_deg {
            (self.joint_deg, self.slope) = (servo_deg - half_deg, -1.0);
        } else if servo_deg + half_deg < self.joint_deg {
            (self.joint_deg, self.slope) = (servo_deg + half_deg, 1.0);
        }
        self.least_deg = self.least_deg.min(servo_deg);
        self.most_deg = self.most_deg.max(servo_deg);
        let off_deg = self.joint_deg - servo_deg;
        let is_known = self.most_deg - self.least_deg > KNOWN_AFTER_DEG;
        if half_deg > self.scaled_deg {
            // Less play, even below 0, scales the offset of the smallest, so that chance is not cut off.
            let slope = off_deg / half_deg;
            return LaggingJoint {
                off_deg: slope * self.scaled_deg,
                slope,
                is_known,
            };
        }
        LaggingJoint {
            off_deg,
            slope: self.slope,
            is_known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joint_lags_until_its_play_is_crossed() {
        let mut joint = PlayOperator::new(0.5, 0.0);
        for (servo, expected, slope, is_known) in [
            (0.3, 0.0, 0.0, false),
            (1.0, 0.5, -1.0, false),
            (3.0, 2.5, -1.0, true),
            (2.2, 2.5, -1.0, true),
            (1.0, 1.5, 1.0, true),
            (1.9, 1.5, 1.0, true),
            (2.1, 1.6, -1.0, true),
        ] {
            let lag = joint.turn_to(servo);
            assert!(
                (servo + lag.off_deg - expected).abs() < 1e-12,
                "{servo}: {lag:?}"
            );
            assert!((lag.slope - slope).abs() < 1e-12, "{servo}: {lag:?}");
            assert_eq!(lag.is_known, is_known, "{servo}");
        }
    }
}
