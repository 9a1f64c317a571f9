//! Detects standstill from the joints' positions, not from the speeds that servos report: those are
//! rounded to far more than a slow arm moves.

use std::collections::VecDeque;
use std::f64::consts::TAU;
use std::time::Duration;

use arm::ArmModel;
use base::units::{ArmMeasurement, ClockInstant, JointVector};

/// Time window for standstill. Within it a joint at rest may differ by `NOISE_COUNTS`: with 4096
/// counts per turn, anything faster than 0.06 rad/s, 17 mm/s at 300 mm, differs by more.
pub(super) const WINDOW: Duration = Duration::from_millis(80);

/// Counts by which the encoder of a joint at rest may change.
const NOISE_COUNTS: f64 = 2.0;

/// Most readings that are kept.
const READINGS_MAX: usize = 32;

/// The last readings of the joints.
#[derive(Debug)]
pub(super) struct StandstillDetector {
    readings: VecDeque<(ClockInstant, JointVector)>,
    /// One count of each joint's coarsest servo.
    count_rad: JointVector,
}

impl StandstillDetector {
    pub(super) fn new(arm: &ArmModel) -> Self {
        Self {
            readings: VecDeque::with_capacity(READINGS_MAX),
            count_rad: counts_rad(arm),
        }
    }

    /// Drops all readings: a slow motion looks like a standstill, so only later readings may count.
    pub(super) fn forget(&mut self) {
        self.readings.clear();
    }

    pub(super) fn record(&mut self, measured: &ArmMeasurement) {
        self.readings
            .push_back((measured.at, measured.position_rad));
        // One reading older than the window stays.
        while self.readings.len() > READINGS_MAX
            || self
                .readings
                .get(1)
                .is_some_and(|(at, _)| measured.at.since(*at) >= WINDOW)
        {
            self.readings.pop_front();
        }
    }

    /// Returns whether no joint moved in a whole window that ends after `since`.
    pub(super) fn is_standing(&self, since: ClockInstant) -> bool {
        let (Some((first, _)), Some((last, _))) = (self.readings.front(), self.readings.back())
        else {
            return false;
        };
        last.since(*first) >= WINDOW && *last >= since && self.moved_counts() <= NOISE_COUNTS + 1e-6
    }

    /// Returns the speed of the fastest joint over the window; `None` from fewer than two readings.
    pub(super) fn speed_rad_s(&self) -> Option<f64> {
        let ((then, from), (now, to)) = (self.readings.front()?, self.readings.back()?);
        let seconds = now.seconds_since(*then);
        (seconds > 0.0).then(|| to.distance_max(from) / seconds)
    }

    /// Returns whether a joint was seen to move within the window.
    pub(super) fn is_moving(&self) -> bool {
        self.readings.len() > 1 && self.moved_counts() > NOISE_COUNTS + 1e-6
    }

    /// Returns the joint that moved most within the window, for the count of its servo, and by how much.
    pub(super) fn busiest(&self) -> Option<(usize, f64)> {
        let moved_rad = self.moved_rad()?;
        let counts = moved_rad.zip(&self.count_rad, |moved, count_rad| moved / count_rad);
        let joints = counts.iter().copied().enumerate();
        let (joint, _) = joints.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((joint, *moved_rad.get(joint)?))
    }

    /// Returns the largest change of any joint within the window; infinite where a joint is missing
    /// from a reading.
    fn moved_counts(&self) -> f64 {
        let Some(moved_rad) = self.moved_rad() else {
            return f64::INFINITY;
        };
        let counts = moved_rad.zip(&self.count_rad, |moved, count_rad| moved / count_rad);
        counts.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the change of each joint within the window; `None` where a joint is missing from a
    /// reading.
    fn moved_rad(&self) -> Option<JointVector> {
        let is_complete = |q: &JointVector| q.len() == self.count_rad.len() && q.is_finite();
        if !self.readings.iter().all(|(_, q)| is_complete(q)) {
            return None;
        }
        let extreme = |pick: fn(f64, f64) -> f64| {
            let all = self.readings.iter().map(|(_, q)| *q);
            all.reduce(|a, b| a.zip(&b, pick))
        };
        let (low, high) = (extreme(f64::min)?, extreme(f64::max)?);
        Some(high.zip(&low, |high, low| high - low))
    }

    /// Returns the largest change that a joint at rest may show, of the joint with this index.
    pub(super) fn noise_rad(&self, joint: usize) -> f64 {
        let count_rad = self.count_rad.get(joint);
        NOISE_COUNTS * count_rad.copied().unwrap_or(COUNT_RAD_MIN)
    }
}

/// Smallest count that is used: a controller that counts in microradians is not that still.
const COUNT_RAD_MIN: f64 = TAU / 4096.0;

/// Returns the angle of one count of each joint's coarsest servo.
pub(super) fn counts_rad(arm: &ArmModel) -> JointVector {
    JointVector::zeros(arm.dof()).map(|joint, _| {
        arm.servos()
            .filter(|(index, _)| *index == joint)
            .map(|(_, servo)| TAU / f64::from(servo.ticks_per_turn.max(1)))
            .fold(COUNT_RAD_MIN, f64::max)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    fn stands_at(speed_rad_s: f64) -> bool {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let mut detector = StandstillDetector::new(&scene.arm);
        let count_rad = TAU / 4096.0;
        for tick in 0..20_u32 {
            let at = ClockInstant::ZERO.after(Duration::from_millis(10) * tick);
            let angle = speed_rad_s * f64::from(tick) * 0.01;
            let rounded = (angle / count_rad).round() * count_rad;
            detector.record(&ArmMeasurement {
                at,
                position_rad: scene.rest_rad.map(|_, rest| rest + rounded),
                velocity_rad_s: scene.rest_rad.map(|_, _| 0.0),
                servos: Vec::new(),
            });
        }
        detector.is_standing(ClockInstant::ZERO)
    }

    /// A tip at 300 mm that creeps at 18 mm/s does not stand, even if its servos report no speed.
    #[test]
    fn an_arm_that_creeps_does_not_stand() {
        assert!(stands_at(0.0));
        assert!(stands_at(0.01));
        assert!(!stands_at(0.06));
        assert!(!stands_at(0.15));
    }

    #[test]
    fn standstill_takes_a_full_window_of_new_readings() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let mut detector = StandstillDetector::new(&scene.arm);
        let mut now = ClockInstant::ZERO;
        for tick in 0..=9_u32 {
            assert!(
                !detector.is_standing(ClockInstant::ZERO),
                "after {tick} readings"
            );
            now = ClockInstant::ZERO.after(Duration::from_millis(10) * tick);
            detector.record(&ArmMeasurement {
                at: now,
                position_rad: scene.rest_rad,
                velocity_rad_s: scene.rest_rad,
                servos: Vec::new(),
            });
            if tick == 8 {
                break;
            }
        }
        assert!(detector.is_standing(now));
        assert!(!detector.is_standing(now.after(Duration::from_millis(1))));
    }

    /// A joint missing from a reading must not be left out of the comparison.
    #[test]
    fn a_reading_without_a_joint_is_no_standstill() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let full = scene.rest_rad;
        let short = JointVector::from_slice(full.get(1..).unwrap());
        let with_nan = full.map(|joint, at| if joint == 2 { f64::NAN } else { at });
        for bad in [short, with_nan] {
            for bad_at in [3, 9] {
                let mut detector = StandstillDetector::new(&scene.arm);
                let mut now = ClockInstant::ZERO;
                for tick in 0..=9_u32 {
                    now = ClockInstant::ZERO.after(Duration::from_millis(10) * tick);
                    detector.record(&ArmMeasurement {
                        at: now,
                        position_rad: if tick == bad_at { bad } else { full },
                        velocity_rad_s: full,
                        servos: Vec::new(),
                    });
                }
                assert!(!detector.is_standing(now), "{bad:?} at {bad_at}");
            }
        }
    }
}
