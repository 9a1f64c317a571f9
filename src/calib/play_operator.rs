//! A joint behind its play: it lags until the play is crossed.

use std::ops::RangeInclusive;

/// Travel after which a joint lies where its last turns left it, whatever it was before: no play is larger.
const KNOWN_AFTER_DEG: f64 = 2.0;

/// A joint that follows its servo within half of its play on either side.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlayOperator {
    /// With which its sides are found.
    half_deg: f64,
    /// Half the play that it has: less than that, or the same.
    scaled_deg: f64,
    lies_deg: f64,
    /// Change of where it lies for each degree of half the play.
    slope: f64,
    least_deg: f64,
    most_deg: f64,
}

/// Place of a joint, and its dependence on the play.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LaggingJoint {
    /// From where its servo is to where it lies.
    pub(super) off_deg: f64,
    /// Change of that for each degree of half the play: -1 behind an upward move, 1 behind a downward one.
    pub(super) slope: f64,
    /// True once it has moved far enough for its side to be known.
    pub(super) is_known: bool,
}

/// Half of the smallest and of the largest play that sides are found with. With none a joint would change its side with every
/// hair's breadth, and two joints that turn together would do so together.
const HALF_DEG: RangeInclusive<f64> = 0.1..=1.0;

impl PlayOperator {
    pub(super) fn new(half_deg: f64, servo_deg: f64) -> Self {
        Self {
            half_deg: half_deg.clamp(*HALF_DEG.start(), *HALF_DEG.end()),
            scaled_deg: half_deg.min(*HALF_DEG.end()),
            lies_deg: servo_deg,
            slope: 0.0,
            least_deg: servo_deg,
            most_deg: servo_deg,
        }
    }

    /// Turns the servo, without turning round on the way.
    pub(super) fn turn(&mut self, servo_deg: f64) -> LaggingJoint {
        let half_deg = self.half_deg;
        if servo_deg - half_deg > self.lies_deg {
            (self.lies_deg, self.slope) = (servo_deg - half_deg, -1.0);
        } else if servo_deg + half_deg < self.lies_deg {
            (self.lies_deg, self.slope) = (servo_deg + half_deg, 1.0);
        }
        self.least_deg = self.least_deg.min(servo_deg);
        self.most_deg = self.most_deg.max(servo_deg);
        let off_deg = self.lies_deg - servo_deg;
        let is_known = self.most_deg - self.least_deg > KNOWN_AFTER_DEG;
        if half_deg > self.scaled_deg {
            // Less play, below none too, is a share of the smallest: chance is not cut off.
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
        for (servo, lies, slope, is_known) in [
            (0.3, 0.0, 0.0, false),
            (1.0, 0.5, -1.0, false),
            (3.0, 2.5, -1.0, true),
            (2.2, 2.5, -1.0, true),
            (1.0, 1.5, 1.0, true),
            (1.9, 1.5, 1.0, true),
            (2.1, 1.6, -1.0, true),
        ] {
            let now = joint.turn(servo);
            assert!(
                (servo + now.off_deg - lies).abs() < 1e-12,
                "{servo}: {now:?}"
            );
            assert!((now.slope - slope).abs() < 1e-12, "{servo}: {now:?}");
            assert_eq!(now.is_known, is_known, "{servo}");
        }
    }
}
