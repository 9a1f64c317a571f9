//! Keeps how far the measured joints were from the commanded ones while the tip drew.
//!
//! The lag is taken out: a joint that reads anything that it was commanded within the time of the
//! gate's leash, and of a late reading, is where it should be. A deviation counts once two readings in a
//! row have it: a damaged reading that passes for a true one stands alone. Only joints are compared while
//! the arm moves; the tip follows from them at the end.

use std::time::Duration;

use arm::LEASH;
use base::units::{ArmMeasurement, JointVector};
use gate::Execution;
use plan::SpanKind;

/// Greatest delay of a reading, on a busy machine or by way of a controller with a queue of its own.
const READING_LATE: Duration = Duration::from_millis(100);

/// The greatest deviation of the measured joints from the commanded ones while the tip drew.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawingDeviation {
    /// The joint that deviated most.
    pub joint: String,
    /// By how much.
    pub joint_rad: f64,
    /// The distance from its goal at which that joint may end a motion.
    pub tolerance_rad: f64,
    /// The greatest distance that the deviations gave the tip.
    pub tip_mm: f64,
}

impl DrawingDeviation {
    /// Returns the greater of two deviations, joints and tip apart.
    #[must_use]
    pub fn or_greater(self, other: Self) -> Self {
        let tip_mm = self.tip_mm.max(other.tip_mm);
        let greater = if other.joint_rad > self.joint_rad {
            other
        } else {
            self
        };
        Self { tip_mm, ..greater }
    }

    /// Returns whether the joint was farther off than its tolerance.
    #[must_use]
    pub fn is_beyond_tolerance(&self) -> bool {
        self.joint_rad > self.tolerance_rad
    }
}

/// The readings at which each joint deviated most.
#[derive(Debug)]
pub(super) struct DeviationMonitor {
    joints: Vec<WorstReading>,
    /// The reading before, if the tip drew.
    previous: Option<ComparedReading>,
    /// Readings that are still left out because the joints come back from a lift beside the path.
    returning: usize,
}

/// The reading at which a joint deviated most.
#[derive(Clone, Copy, Debug)]
struct WorstReading {
    off_rad: f64,
    reading: ComparedReading,
}

/// A reading while the tip drew.
#[derive(Clone, Copy, Debug)]
struct ComparedReading {
    pen: usize,
    measured_rad: JointVector,
    /// The angles nearest to the reading that were commanded within the lag.
    commanded_rad: JointVector,
}

impl ComparedReading {
    fn off_rad(&self, joint: usize) -> f64 {
        let angles = self
            .measured_rad
            .get(joint)
            .zip(self.commanded_rad.get(joint));
        angles.map_or(0.0, |(measured, commanded)| (measured - commanded).abs())
    }
}

impl DeviationMonitor {
    /// Allocates here what the arm's thread needs while it moves.
    pub(super) fn new(dof: usize) -> Self {
        Self {
            joints: Vec::with_capacity(dof),
            previous: None,
            returning: 0,
        }
    }

    /// Compares a reading with what was commanded, if the tip draws.
    pub(super) fn note(&mut self, execution: &Execution, measured: &ArmMeasurement) {
        let reading = self.compare(execution, measured);
        let previous = std::mem::replace(&mut self.previous, reading);
        if let (Some(reading), Some(previous)) = (reading, previous) {
            self.note_both(reading, previous);
        }
    }

    /// Returns a reading with what was commanded; `None` if the tip does not draw.
    fn compare(
        &mut self,
        execution: &Execution,
        measured: &ArmMeasurement,
    ) -> Option<ComparedReading> {
        let trajectory = execution.checked().trajectory();
        let lag = (LEASH + READING_LATE).as_nanos() / trajectory.period.as_nanos().max(1);
        let lag = usize::try_from(lag).unwrap_or(usize::MAX);
        if execution.is_lifting() {
            self.returning = lag;
            return None;
        }
        if self.returning > 0 {
            self.returning -= 1;
            return None;
        }
        let sample = execution.progress().sample;
        let span = trajectory.span_at(sample);
        let draws = |kind: SpanKind| is_inked(kind) && !execution.awaits_tip();
        let span = span.filter(|span| draws(span.kind))?;
        let from = sample.saturating_sub(lag);
        // The depth that a person trims is meant.
        let trimmed_rad = execution.trimmed_by_rad();
        let as_planned_rad = (measured.position_rad).zip(&trimmed_rad, |at, trimmed| at - trimmed);
        // Where goals lead, a joint is read between its goal and where it is expected, or at either.
        let commanded = [&trajectory.samples[..], trajectory.reached()];
        let commanded = commanded.iter().filter_map(|all| all.get(from..=sample));
        Some(ComparedReading {
            pen: span.pen,
            measured_rad: as_planned_rad,
            commanded_rad: nearest_commanded(&as_planned_rad, commanded.flatten()),
        })
    }

    /// Keeps of each joint the reading at which it deviated most, for as long as two readings in a row had it.
    fn note_both(&mut self, reading: ComparedReading, previous: ComparedReading) {
        let dof = reading.commanded_rad.len();
        // A reading without all joints says nothing of the others.
        if dof < self.joints.len() || previous.commanded_rad.len() != dof {
            return;
        }
        let nothing = WorstReading {
            off_rad: 0.0,
            reading,
        };
        self.joints.resize(dof, nothing);
        for (joint, worst) in self.joints.iter_mut().enumerate() {
            let both = [reading, previous].map(|reading| WorstReading {
                off_rad: reading.off_rad(joint),
                reading,
            });
            let [now, before] = both;
            let lesser = if now.off_rad <= before.off_rad {
                now
            } else {
                before
            };
            if lesser.off_rad > worst.off_rad {
                *worst = lesser;
            }
        }
    }

    /// Returns the greatest deviation; `None` if the tip did not draw.
    pub(super) fn greatest(
        &self,
        execution: &Execution,
        tolerance_rad: f64,
    ) -> Option<DrawingDeviation> {
        let scene = execution.scene();
        let joints = self.joints.iter().enumerate();
        let (joint, worst) = joints.max_by(|(_, a), (_, b)| a.off_rad.total_cmp(&b.off_rad))?;
        let tip_mm = self.joints.iter().filter_map(|worst| {
            let reading = &worst.reading;
            let tip_m = &scene.pen(reading.pen)?.tip_m;
            let [a, b] = [reading.measured_rad, reading.commanded_rad]
                .map(|joints_rad| scene.arm.chain.point(&joints_rad, tip_m));
            Some((a - b).norm() * 1e3)
        });
        Some(DrawingDeviation {
            joint: scene.arm.joint_name(joint),
            joint_rad: worst.off_rad,
            tolerance_rad,
            tip_mm: tip_mm.fold(0.0, f64::max),
        })
    }
}

/// Returns whether the tip draws. At the end of a line it still does when its goal goes up.
fn is_inked(kind: SpanKind) -> bool {
    matches!(kind, SpanKind::Draw | SpanKind::Lift)
}

/// Returns what comes nearest to a reading of the range that each joint was commanded over.
fn nearest_commanded<'a>(
    reading_rad: &JointVector,
    mut commanded: impl Iterator<Item = &'a JointVector>,
) -> JointVector {
    let Some(first) = commanded.next() else {
        return *reading_rad;
    };
    let (low, high) = commanded.fold((*first, *first), |(low, high), next| {
        (low.zip(next, f64::min), high.zip(next, f64::max))
    });
    reading_rad.zip(&low, f64::max).zip(&high, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_stands_alone_is_no_deviation() {
        let read_at = |measured: f64| ComparedReading {
            pen: 0,
            measured_rad: JointVector::from_slice(&[measured]),
            commanded_rad: JointVector::from_slice(&[0.0]),
        };
        let mut monitor = DeviationMonitor::new(1);
        let mut worst_after = |readings: [f64; 2]| {
            let [previous, reading] = readings.map(read_at);
            monitor.note_both(reading, previous);
            let worst = monitor.joints.first();
            worst.map(|worst| (worst.off_rad, worst.reading.off_rad(0)))
        };
        assert_eq!(worst_after([0.0, 0.09]), Some((0.0, 0.09)));
        assert_eq!(worst_after([0.09, 0.01]), Some((0.01, 0.01)));
        assert_eq!(worst_after([0.03, -0.09]), Some((0.03, 0.03)));
        assert_eq!(worst_after([0.0, 0.0]), Some((0.03, 0.03)));
    }
}
