//! Lowers the tip until it touches, to find where the sheet is.

use std::sync::Arc;

use nalgebra::Vector3;

use super::cartesian_path::{CartesianSegment, ToolPose};
use super::compensation::with_scaled_limits;
use super::error::PlanError;
use super::follow_path::PathError;
use super::time_parameterization::TipLimits;
use super::trajectory::SpanKind;
use super::trajectory_builder::{HoverTarget, SpanLabel, TrajectoryBuilder};
use super::visit::go_above;
use super::{Plan, PlanObserver, plan_report};
use base::units::JointVector;
use scene::{PROBE_DEPTH_MM, PROBE_FROM_MM, PROBE_MM_S, Scene, Surface};

/// Fraction of the speed limit to plan with, so that rounding to whole samples does not exceed it.
const SPEED_SHARE: f64 = 0.98;

/// Fraction of the joints' speeds and accelerations that a probe is planned with: its servos have
/// half of their torque.
const TORQUE_SHARE: f64 = 0.5;

/// Plans a probe from [`PROBE_FROM_MM`] above a point of the sheet.
///
/// # Errors
/// As [`probe_from`].
pub fn probe(
    scene: &Scene,
    start: &JointVector,
    at_mm: [f64; 2],
    pen: usize,
    observer: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    probe_from(scene, start, (at_mm, PROBE_FROM_MM), pen, observer)
}

/// Plans a probe: goes above a point of the sheet and from a height slowly down, [`PROBE_DEPTH_MM`]
/// deeper than where the sheet is expected. The executor turns back where the tip touches; at the
/// end of the plan it gives up.
///
/// # Errors
/// [`PlanError::Refused`] where the point cannot be probed, or cancelled.
pub fn probe_from(
    scene: &Scene,
    start: &JointVector,
    (at_mm, from_mm): ([f64; 2], f64),
    pen: usize,
    observer: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    let scene = &with_half_torque(scene);
    let mut builder = TrajectoryBuilder::new(scene, start, observer)?;
    if let Err(mut error) = plan_probe(&mut builder, (at_mm, from_mm), pen) {
        error.at_mm = Some(at_mm);
        builder.refuse(None, "the point of the probe", error);
    }
    plan_report::without_ink(builder)
}

/// Returns the scene with joints that are as fast as half of their torque makes them.
fn with_half_torque(scene: &Scene) -> Scene {
    Scene {
        arm: Arc::new(with_scaled_limits(&scene.arm, [TORQUE_SHARE; 3])),
        ..scene.clone()
    }
}

fn plan_probe(
    builder: &mut TrajectoryBuilder<'_>,
    (at_mm, from_mm): ([f64; 2], f64),
    pen: usize,
) -> Result<(), PathError> {
    go_above(builder, 0, pen, HoverTarget::Sheet(at_mm))?;
    let label = |kind| SpanLabel::new(kind, Some(0), pen);
    let surface = &builder.scene.surface;
    let travel_limits = builder.travel_limits();
    let lift_mm = builder.scene.heights.lift_mm;
    let (lower, probe) = match surface.is_flat() {
        true => {
            let leg = |from_mm, to_mm| [vec![CartesianSegment::rise(at_mm, from_mm, to_mm)]];
            (leg(lift_mm, from_mm), leg(from_mm, -PROBE_DEPTH_MM))
        }
        false => {
            let leg = |from, to| [vec![CartesianSegment::Across { from, to }]];
            let over = |height_mm| over_sheet(surface, at_mm, height_mm);
            let above = ToolPose::over(surface, at_mm, lift_mm);
            (
                leg(above, over(from_mm)),
                leg(over(from_mm), over(-PROBE_DEPTH_MM)),
            )
        }
    };
    if !surface.is_flat() || (lift_mm - from_mm).abs() > 1e-6 {
        builder.follow(label(SpanKind::Lower), &lower, travel_limits)?;
    }
    let probe_limits = TipLimits {
        speed_m_s: SPEED_SHARE * PROBE_MM_S.min(builder.scene.limits.draw_mm_s) / 1e3,
        ..travel_limits
    };
    builder.follow(label(SpanKind::Probe), &probe, probe_limits)?;
    Ok(())
}

/// Returns the tool over a point of the surface, along the normal of its sheet. On the way along the normal of a slope a joint that
/// hardly turns would stick and slip, which feels like a touch.
fn over_sheet(surface: &Surface, at_mm: [f64; 2], height_mm: f64) -> ToolPose {
    let up = match surface.radius_mm() {
        Some(_) => surface.at(at_mm).normal.into_inner(),
        None => surface.flat().rotation * Vector3::z(),
    };
    let on = ToolPose::over(surface, at_mm, 0.0);
    ToolPose {
        point_m: on.point_m + up.scale(height_mm / 1e3),
        ..on
    }
}
