//! Plans one small step of the arm, as a person jogs it.

use nalgebra::Vector3;

use super::cartesian_path::{CartesianSegment, ToolPose};
use super::error::{PlanError, RefusalCause};
use super::follow_path::PathError;
use super::time_parameterization::TipLimits;
use super::trajectory::SpanKind;
use super::trajectory_builder::{SpanLabel, TrajectoryBuilder};
use super::{Plan, PlanObserver, joint_move, plan_report};
use base::units::JointVector;
use scene::{JOG_MM_S, Scene};

/// Fraction of the speed limit to plan with, so that rounding to whole samples does not exceed it.
const SPEED_SHARE: f64 = 0.98;

/// The joint or tip to step, and the size of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JogIncrement {
    /// Turns one joint.
    Joint {
        /// Index of the joint, from the base.
        joint: usize,
        /// By how much.
        by_rad: f64,
    },
    /// Moves the tip straight, along the base frame's axes, without changing its lean.
    Tip {
        /// By how much.
        by_mm: [f64; 3],
    },
}

/// Plans a step from where the arm is, with no tip faster than [`JOG_MM_S`].
///
/// # Errors
/// [`PlanError::Refused`] with the reason why the step is not possible, or cancelled.
pub fn jog(
    scene: &Scene,
    start: &JointVector,
    step: JogIncrement,
    pen: usize,
    observer: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    let mut builder = TrajectoryBuilder::new(scene, start, observer)?;
    if let Err(error) = plan_step(&mut builder, step, pen) {
        builder.refuse(None, "the step", error);
    }
    plan_report::without_ink(builder)
}

/// Refuses a step of a joint that the arm lacks, and one whose size is not finite.
fn check(step: JogIncrement, joints: usize) -> Result<(), RefusalCause> {
    let why = match step {
        JogIncrement::Joint { joint, .. } if joint >= joints => {
            format!(
                "names joint {}; the arm has {joints}, counted from 1 at the base",
                joint + 1
            )
        }
        JogIncrement::Joint { by_rad, .. } if !by_rad.is_finite() => {
            format!("is {by_rad} rad, which is not finite")
        }
        JogIncrement::Tip { by_mm } if by_mm.iter().any(|by| !by.is_finite()) => {
            format!("is {by_mm:?} mm, which is not finite")
        }
        JogIncrement::Joint { .. } | JogIncrement::Tip { .. } => return Ok(()),
    };
    Err(RefusalCause::Unfit { why })
}

fn plan_step(
    builder: &mut TrajectoryBuilder<'_>,
    step: JogIncrement,
    pen: usize,
) -> Result<(), PathError> {
    let label = SpanLabel::new(SpanKind::Jog, None, pen);
    let speed_m_s = SPEED_SHARE * JOG_MM_S.min(builder.scene.limits.travel_mm_s) / 1e3;
    check(step, builder.scene.arm.dof())?;
    match step {
        JogIncrement::Joint { joint, by_rad } => {
            let from = builder.last_joints();
            let to = from.map(|index, q| if index == joint { q + by_rad } else { q });
            let tips: Vec<_> = builder.iks.iter().map(|ik| ik.tip).collect();
            let samples =
                joint_move::plan_joint_move(&builder.scene.arm, &tips, &from, &to, speed_m_s)?;
            Ok(builder.append(label, &samples)?)
        }
        JogIncrement::Tip { by_mm } => {
            let from = builder.ik(pen)?.tip_pose(&builder.last_joints());
            let to = ToolPose {
                point_m: from.point_m + Vector3::from(by_mm) / 1e3,
                ..from
            };
            let tip_limits = TipLimits {
                speed_m_s,
                ..builder.travel_limits()
            };
            let path = vec![CartesianSegment::Across { from, to }];
            builder.follow(label, &[path], tip_limits).map(|_| ())
        }
    }
}
