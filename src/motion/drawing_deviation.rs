//! Keeps how far the measured joints were from the commanded ones while the tip drew.
//!
//! The lag is taken out: a joint that reads anything that it was commanded within the time of the
//! gate's leash is where it should be. Only joints are compared while the arm moves; the tip follows from
//! them at the end.

use arm::LEASH;
use base::units::{ArmMeasurement, JointVector};
use gate::Execution;
use plan::SpanKind;

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
}

/// The readings at which each joint deviated most.
#[derive(Debug)]
pub(super) struct DeviationMonitor {
    joints: Vec<WorstReading>,
    /// Readings that are still left out because the joints come back from a lift beside the path.
    returning: usize,
}

/// The reading at which a joint deviated most.
#[derive(Clone, Copy, Debug)]
struct WorstReading {
    off_rad: f64,
    pen: usize,
    measured_rad: JointVector,
    /// The angles nearest to the reading that were commanded within the lag.
    commanded_rad: JointVector,
}

impl DeviationMonitor {
    /// Allocates here what the arm's thread needs while it moves.
    pub(super) fn new(dof: usize) -> Self {
        Self {
            joints: Vec::with_capacity(dof),
            returning: 0,
        }
    }

    /// Compares a reading with what was commanded, if the tip draws.
    pub(super) fn note(&mut self, execution: &Execution, measured: &ArmMeasurement) {
        let trajectory = execution.checked().trajectory();
        let lag = LEASH.as_nanos() / trajectory.period.as_nanos().max(1);
        let lag = usize::try_from(lag).unwrap_or(usize::MAX);
        if execution.is_lifting() {
            self.returning = lag;
            return;
        }
        if self.returning > 0 {
            self.returning -= 1;
            return;
        }
        let sample = execution.progress().sample;
        let span = trajectory.span_at(sample);
        let Some(span) = span.filter(|span| is_inked(span.kind)) else {
            return;
        };
        let from = sample.saturating_sub(lag);
        // Where goals lead, a joint is read between its goal and where it is expected, or at either.
        let commanded = [&trajectory.samples[..], trajectory.reached()];
        let commanded = commanded.iter().filter_map(|all| all.get(from..=sample));
        let commanded_rad = nearest_commanded(&measured.position_rad, commanded.flatten());
        let reading = WorstReading {
            off_rad: 0.0,
            pen: span.pen,
            measured_rad: measured.position_rad,
            commanded_rad,
        };
        // A reading without all joints says nothing of the others.
        if commanded_rad.len() < self.joints.len() {
            return;
        }
        self.joints.resize(commanded_rad.len(), reading);
        let off_rad = commanded_rad.zip(&measured.position_rad, |a, b| (a - b).abs());
        for (worst, off_rad) in self.joints.iter_mut().zip(off_rad.iter()) {
            if *off_rad > worst.off_rad {
                *worst = WorstReading {
                    off_rad: *off_rad,
                    ..reading
                };
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
            let tip_m = &scene.pen(worst.pen)?.tip_m;
            let [a, b] = [worst.measured_rad, worst.commanded_rad]
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
