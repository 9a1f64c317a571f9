//! A joint behind its play: it lags until the play is crossed.

/// Travel after which a joint lies where its last turns left it, whatever it was before: no play is larger.
const KNOWN_AFTER_DEG: f64 = 2.0;

/// A joint that follows its servo within half of its play on either side.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlayOperator {
    half_deg: f64,
    lies_deg: f64,
    /// Change of where it lies for each degree of half the play.
    slope: f64,
    least_deg: f64,
    most_deg: f64,
}

/// Where a joint lies, and how that depends on its play.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LaggingJoint {
    pub(super) lies_deg: f64,
    /// -1 behind an upward move, 1 behind a downward one.
    pub(super) slope: f64,
    /// True once it has moved far enough for its side to be known.
    pub(super) is_known: bool,
}

impl PlayOperator {
    pub(super) fn new(half_deg: f64, servo_deg: f64) -> Self {
        Self {
            half_deg,
            lies_deg: servo_deg,
            slope: 0.0,
            least_deg: servo_deg,
            most_deg: servo_deg,
        }
    }

    /// Turns the servo, without turning round on the way.
    pub(super) fn turn(&mut self, servo_deg: f64) -> LaggingJoint {
        let half_deg = self.half_deg.max(f64::EPSILON);
        if servo_deg - half_deg > self.lies_deg {
            (self.lies_deg, self.slope) = (servo_deg - half_deg, -1.0);
        } else if servo_deg + half_deg < self.lies_deg {
            (self.lies_deg, self.slope) = (servo_deg + half_deg, 1.0);
        }
        self.least_deg = self.least_deg.min(servo_deg);
        self.most_deg = self.most_deg.max(servo_deg);
        LaggingJoint {
            lies_deg: self.lies_deg,
            slope: self.slope,
            is_known: self.most_deg - self.least_deg > KNOWN_AFTER_DEG,
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
            assert!((now.lies_deg - lies).abs() < 1e-12, "{servo}: {now:?}");
            assert_eq!(now.slope, slope, "{servo}");
            assert_eq!(now.is_known, is_known, "{servo}");
        }
    }
}
