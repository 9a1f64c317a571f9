//! Going down to feel where the sheet is.

use std::sync::Arc;

use super::cartesian_path::CartesianSegment;
use super::compensation::slower;
use super::error::PlanError;
use super::follow_path::PathError;
use super::time_parameterization::TipLimits;
use super::trajectory::SpanKind;
use super::trajectory_builder::{HoverTarget, SpanLabel, TrajectoryBuilder};
use super::visit::go_above;
use super::{Plan, PlanObserver, plan_report};
use base::units::JointVector;
use scene::{PROBE_DEPTH_MM, PROBE_FROM_MM, PROBE_MM_S, Scene};

/// Rounding on the way to samples must not pass the limit.
const SPEED_SHARE: f64 = 0.98;

/// Share of the joints' speeds and accelerations with which a probe is planned: its servos have half of their torque.
const TORQUE_SHARE: f64 = 0.5;

/// Plans a probe: goes above a point of the sheet and from there slowly down, [`PROBE_DEPTH_MM`]
/// deeper than the sheet is believed to be. The executor turns back where the tip touches; at the
/// end of the plan it gives up.
///
/// # Errors
/// [`PlanError::Refused`] where the point cannot be probed, or cancelled.
pub fn probe(
    scene: &Scene,
    start: &JointVector,
    at_mm: [f64; 2],
    pen: usize,
    watch: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    let scene = &gentle(scene);
    let mut build = TrajectoryBuilder::new(scene, start, watch)?;
    if let Err(mut stuck) = down(&mut build, at_mm, pen) {
        stuck.at_mm = Some(at_mm);
        build.refuse(None, "the point to be probed", stuck);
    }
    plan_report::without_ink(build)
}

/// Returns the scene with joints that are as fast as half of their torque makes them.
fn gentle(scene: &Scene) -> Scene {
    Scene {
        arm: Arc::new(slower(&scene.arm, [TORQUE_SHARE; 3])),
        ..scene.clone()
    }
}

fn down(build: &mut TrajectoryBuilder<'_>, at_mm: [f64; 2], pen: usize) -> Result<(), PathError> {
    go_above(build, 0, pen, HoverTarget::Sheet(at_mm))?;
    let what = |kind| SpanLabel::new(kind, Some(0), pen);
    let leg = |from_mm, to_mm| [vec![CartesianSegment::rise(at_mm, from_mm, to_mm)]];
    let travelling = build.travel_limits();
    let lift_mm = build.scene.heights.lift_mm;
    if (lift_mm - PROBE_FROM_MM).abs() > 1e-6 {
        let lower = leg(lift_mm, PROBE_FROM_MM);
        build.follow(what(SpanKind::Lower), &lower, travelling)?;
    }
    let slowly = TipLimits {
        speed_m_s: SPEED_SHARE * PROBE_MM_S.min(build.scene.limits.draw_mm_s) / 1e3,
        ..travelling
    };
    let probe = leg(PROBE_FROM_MM, -PROBE_DEPTH_MM);
    build.follow(what(SpanKind::Probe), &probe, slowly)?;
    Ok(())
}
