//! One small step of the arm, as a person jogs it.

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

/// Rounding on the way to samples must not pass the limit.
const SPEED_SHARE: f64 = 0.98;

/// The joint or tip to step, and the size of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JogIncrement {
    /// One joint turns.
    Joint {
        /// Index of the joint, from the base.
        joint: usize,
        /// By how much.
        by_rad: f64,
    },
    /// The tip goes straight on, along the base frame's axes, leaning as it does.
    Tip {
        /// By how much.
        by_mm: [f64; 3],
    },
}

/// A step from where the arm is, with no tip faster than [`JOG_MM_S`].
///
/// # Errors
/// [`PlanError::Refused`] says why it cannot be gone, and cancelled.
pub fn jog(
    scene: &Scene,
    start: &JointVector,
    step: JogIncrement,
    pen: usize,
    watch: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    let mut build = TrajectoryBuilder::new(scene, start, watch)?;
    if let Err(stuck) = plan_step(&mut build, step, pen) {
        build.refuse(None, "the step", stuck);
    }
    plan_report::without_ink(build)
}

/// Refuses a step of a joint that the arm has not, and one of no size.
fn check(step: JogIncrement, joints: usize) -> Result<(), RefusalCause> {
    let why = match step {
        JogIncrement::Joint { joint, .. } if joint >= joints => {
            format!(
                "is of joint {}; the arm has {joints}, counted from 1 at the base",
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
    build: &mut TrajectoryBuilder<'_>,
    step: JogIncrement,
    pen: usize,
) -> Result<(), PathError> {
    let what = SpanLabel::new(SpanKind::Jog, None, pen);
    let speed_m_s = SPEED_SHARE * JOG_MM_S.min(build.scene.limits.travel_mm_s) / 1e3;
    check(step, build.scene.arm.dof())?;
    match step {
        JogIncrement::Joint { joint, by_rad } => {
            let from = build.last_joints();
            let to = from.map(|other, q| if other == joint { q + by_rad } else { q });
            let tips: Vec<_> = build.hands.iter().map(|hand| hand.tip).collect();
            let samples =
                joint_move::plan_joint_move(&build.scene.arm, &tips, &from, &to, speed_m_s)?;
            Ok(build.append(what, &samples)?)
        }
        JogIncrement::Tip { by_mm } => {
            let from = build.hand(pen)?.tip_pose(&build.last_joints());
            let to = ToolPose {
                point_m: from.point_m + Vector3::from(by_mm) / 1e3,
                ..from
            };
            let asked = TipLimits {
                speed_m_s,
                ..build.travel_limits()
            };
            let course = vec![CartesianSegment::Across { from, to }];
            build.follow(what, &[course], asked).map(|_| ())
        }
    }
}
