//! The pose in which an arm was left, and whether a joint has left it.

use std::time::Duration;

use base::units::{ArmMeasurement, ClockInstant, JointVector};

/// Most that a joint may turn while the arm holds: more than servos give way under a hand.
pub(super) const HELD_WITHIN_RAD: f64 = 5.0 * std::f64::consts::PI / 180.0;

/// Time for which a joint must be off: a push that springs back is none, nor is a reading that was damaged.
const LEFT_FOR: Duration = Duration::from_secs(1);

/// The pose of an energised arm at its first reading after a motion.
#[derive(Debug, Default)]
pub(super) struct HeldPose {
    rad: Option<JointVector>,
    /// Time since which every reading was off.
    off_since: Option<ClockInstant>,
}

impl HeldPose {
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns the joint that has left the pose, if one has, and by how much.
    pub(super) fn departure(&mut self, measured: &ArmMeasurement) -> Option<(usize, f64)> {
        let held_rad = *self.rad.get_or_insert(measured.position_rad);
        let off_rad = held_rad.zip(&measured.position_rad, |held, at| (at - held).abs());
        let joints = off_rad.iter().copied().enumerate();
        let furthest = joints.max_by(|a, b| a.1.total_cmp(&b.1));
        let off = furthest.filter(|(_, off_rad)| *off_rad > HELD_WITHIN_RAD);
        if off.is_none() {
            self.off_since = None;
        }
        let off = off?;
        let since = *self.off_since.get_or_insert(measured.at);
        (measured.at.since(since) >= LEFT_FOR).then_some(off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the joint that is found to have left the pose, where one is off by so many degrees in these cycles of 50 ms.
    fn departure(off_deg: &[f64]) -> Option<usize> {
        let mut held = HeldPose::default();
        let mut found = None;
        for (cycle, off_deg) in (0_u32..).zip(off_deg) {
            let off = JointVector::zeros(6).map(|joint, _| match joint {
                3 => off_deg.to_radians(),
                _ => 0.0,
            });
            let departure = held.departure(&ArmMeasurement {
                at: ClockInstant::ZERO.after(Duration::from_millis(50) * cycle),
                position_rad: off,
                velocity_rad_s: JointVector::zeros(6),
                servos: Vec::new(),
            });
            found = found.or(departure.map(|(joint, _)| joint));
        }
        found
    }

    #[test]
    fn only_a_joint_that_stays_away_has_left_the_pose() {
        let push = |cycles| [vec![0.0], vec![9.0; cycles], vec![0.0]].concat();
        assert_eq!(departure(&push(1)), None);
        assert_eq!(departure(&push(20)), None);
        assert_eq!(departure(&[push(15), push(15)].concat()), None);
        assert_eq!(departure(&push(21)), Some(3));
        assert_eq!(departure(&vec![4.9; 50]), None);
        let drift: Vec<f64> = (0..60).map(|cycle| -0.2 * f64::from(cycle)).collect();
        assert_eq!(departure(&drift), Some(3));
    }
}
