//! Places where the arm stands still over the sheet: its joint angles there show how it sags.

use std::sync::Arc;

use super::super::motion_job::{JobContext, JobError};
use super::{DWELL_S, reading};
use crate::reply::Reply;
use base::clock;
use calib::{CalibrationKind, CalibrationSession, InkObservation, RestReading, SagFit};
use plan::{VisitPoint, VisitTarget};
use scene::Scene;

/// Heights at which the arm stands still, in turn: each loads the joints differently.
const HEIGHTS_MM: [f64; 2] = [10.0, 35.0];

/// Stands still over each named place, and records the joint angles sent and measured there.
pub(super) async fn measure_rests(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    places: impl Iterator<Item = (&str, [f64; 2])>,
) -> Result<Vec<RestReading>, JobError> {
    let visit = |((name, at_mm), height_mm): ((&str, [f64; 2]), &f64)| VisitPoint {
        name: format!("over {name}"),
        target: VisitTarget::Sheet {
            at_mm,
            height_mm: *height_mm,
        },
        pen: 0,
        dwell_s: DWELL_S,
    };
    let visits: Vec<VisitPoint> = places.zip(HEIGHTS_MM.iter().cycle()).map(visit).collect();
    let (_, done) = ctx
        .run_preparatory(scene, move |scene, start, watch| {
            plan::visit(scene, start, &visits, watch)
        })
        .await?;
    let readings = done
        .visits
        .iter()
        .map(|visit| RestReading::new(&visit.goal_rad, &visit.position_rad));
    Ok(readings.collect())
}

/// Proposes sag that the arm's file does not have. Nothing is saved.
pub(super) async fn propose(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    fit: &SagFit,
    rests: Vec<RestReading>,
) -> Result<Reply, JobError> {
    let session = CalibrationSession {
        kind: CalibrationKind::Play,
        ink: Some(InkObservation {
            at_ms: clock::calendar_ms(),
            rests,
            ..InkObservation::default()
        }),
        ..reading::session(&ctx.node, &ctx.arm, scene)?
    };
    let message = format!(
        "{}, so the pen would be at a different height than planned; nothing was touched. The new values are only proposed: if no operator accepts them, the next touch works with the old ones",
        fit.describe_changes().join("; ")
    );
    super::propose(ctx, scene, &session, message, reading::ALIGN_AGAIN).await
}
