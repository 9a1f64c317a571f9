//! One small step of the arm, as a person jogs it.

use nalgebra::Vector3;

use super::build::{Build, What, nowhere};
use super::course::{Piece, Place};
use super::error::{Cause, PlanError};
use super::timed::Asked;
use super::trace::Stuck;
use super::trajectory::SpanKind;
use super::{Plan, Watch, report, swing};
use base::units::Joints;
use scene::{JOG_MM_S, Scene};

/// Rounding on the way to samples must not pass the limit.
const SPEED_SHARE: f64 = 0.98;

/// The joint or tip to step, and the size of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// One joint turns.
    Joint {
        /// Which, from the base.
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
    start: &Joints,
    step: Step,
    pen: usize,
    watch: &dyn Watch,
) -> Result<Plan, PlanError> {
    let mut build = Build::new(scene, start, watch)?;
    if let Err(stuck) = one(&mut build, step, pen) {
        build.refuse(None, "the step", stuck);
    }
    report::without_ink(build)
}

/// Refuses a step of a joint that the arm has not, and one of no size.
fn check(step: Step, joints: usize) -> Result<(), Cause> {
    let why = match step {
        Step::Joint { joint, .. } if joint >= joints => {
            format!("is of joint {joint}; the arm has {joints}, counted from 0")
        }
        Step::Joint { by_rad, .. } if !by_rad.is_finite() => {
            format!("is {by_rad} rad, which is not finite")
        }
        Step::Tip { by_mm } if by_mm.iter().any(|by| !by.is_finite()) => {
            format!("is {by_mm:?} mm, which is not finite")
        }
        Step::Joint { .. } | Step::Tip { .. } => return Ok(()),
    };
    Err(Cause::Unfit { why })
}

fn one(build: &mut Build<'_>, step: Step, pen: usize) -> Result<(), Stuck> {
    let what = What {
        kind: SpanKind::Jog,
        item: None,
        pen,
    };
    let speed_m_s = SPEED_SHARE * JOG_MM_S.min(build.scene.limits.travel_mm_s) / 1e3;
    check(step, build.scene.arm.dof()).map_err(nowhere)?;
    match step {
        Step::Joint { joint, by_rad } => {
            let from = build.here();
            let to = from.map(|other, q| if other == joint { q + by_rad } else { q });
            let tips: Vec<_> = build.hands.iter().map(|hand| hand.tip).collect();
            let samples = swing::swing(&build.scene.arm, &tips, &from, &to, speed_m_s);
            let samples = samples.map_err(nowhere)?;
            build.append(what, &samples).map_err(nowhere)
        }
        Step::Tip { by_mm } => {
            let from = build.hand(pen).map_err(nowhere)?.place(&build.here());
            let to = Place {
                point_m: from.point_m + Vector3::from(by_mm) / 1e3,
                ..from
            };
            let asked = Asked {
                speed_m_s,
                ..build.travelling()
            };
            let course = vec![Piece::Across { from, to }];
            build.follow(what, &[course], asked).map(|_| ())
        }
    }
}
