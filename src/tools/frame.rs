//! Shows where a drawing will lie: the pen goes once round its box, up, and the arm goes to rest. Nothing is drawn.

use std::sync::Arc;

use super::AttachedArm;
use super::caller_design::CallScene;
use super::dispatch::ToolContext;
use super::motion_job::{self, JobContext, JobError};
use super::preview_text::DrawnExtent;
use super::reply::{Reply, refused};
use super::stroke::{DrawingScope, rounded};
use super::{calibration_check, sheet_check};
use base::wording::millimetres;
use call::refusal;
use plan::{VisitPoint, VisitTarget};
use scene::Scene;

/// Name of its jobs, which no tool has: a frame is no drawing, and cannot be resumed.
pub(super) const FRAME: &str = "frame";

/// Shows the frame of the drawing that a call of `stroke` describes.
pub(super) async fn call(
    ctx: &ToolContext<'_>,
    arm: &Arc<AttachedArm>,
    target: &CallScene,
) -> Result<Reply, Box<Reply>> {
    let scene = Arc::clone(&target.scene);
    calibration_check::check(ctx.node, arm, &scene)?;
    ctx.check_previewed(arm, &scene)?;
    sheet_check::check(ctx.node, arm, &scene).await?;
    let mut call = ctx.job(FRAME, arm, &scene, true)?;
    target.note_in(ctx, &mut call)?;
    let work = move |ctx| show(ctx, scene, DrawingScope::default());
    let started = motion_job::start_job(ctx.node, arm, call, work).await;
    Ok(started.wait_for_end(ctx.node, arm, ctx.watch).await)
}

/// Refuses a call that asks for the frame of a drawing that it would go on with.
pub(super) fn check_no_resume(ctx: &ToolContext<'_>) -> Result<(), Box<Reply>> {
    match ctx.is(FRAME) {
        false => Ok(()),
        true => Err(refused(
            "arguments_refused",
            "`resume` continues a drawing, and `frame` draws nothing. Next: send only one of them",
        )),
    }
}

/// Leads the pen round the box of what would be drawn, then the arm to rest.
pub(super) async fn show(
    ctx: JobContext,
    scene: Arc<Scene>,
    drawing: DrawingScope,
) -> Result<Reply, JobError> {
    let permit = ctx.ask(&scene)?;
    let extent = DrawnExtent::of(&drawing.scene(&scene).strokes);
    let extent = extent.ok_or_else(|| refusal!("nothing would be drawn, so there is no frame"))?;
    let height_mm = scene.heights.lift_mm;
    let points = corners(extent, height_mm);
    ctx.job.update(|card| {
        (card.done, card.of) = (0, points.len());
        card.has_later_motions = true;
    });
    let plan = ctx
        .plan(&scene, move |scene, start, watch| {
            plan::visit(scene, start, &points, watch)
        })
        .await?;
    ctx.run(&scene, permit, &plan).await?;
    let permit = ctx.ask(&scene)?;
    let to_rest = ctx.plan_to_rest(&scene).await?;
    ctx.job.update(|card| card.has_later_motions = false);
    ctx.run_uncounted(&scene, permit, &to_rest).await?;
    ctx.job.update(|card| card.done = card.of);
    let box_mm = extent.corners();
    let [[left, low], [right, high]] = box_mm;
    let message = format!(
        "the pen went once round x {left:.1} to {right:.1} mm, y {low:.1} to {high:.1} mm, {} over the sheet; nothing was drawn",
        millimetres(height_mm, 1)
    );
    Ok(Reply::done(message)
        .with("arm", ctx.arm.title())
        .with("state", "rest")
        .with("stroke_count", 0)
        .with("box_mm", box_mm)
        .with("height_mm", rounded(height_mm)))
}

/// Returns the corners of a box in turn, and the first again.
fn corners(extent: DrawnExtent, height_mm: f64) -> Vec<VisitPoint> {
    let [[left, low], [right, high]] = extent.corners();
    let places = [
        ("lower left", [left, low]),
        ("lower right", [right, low]),
        ("upper right", [right, high]),
        ("upper left", [left, high]),
        ("lower left again", [left, low]),
    ];
    let visit = |(name, at_mm): (&str, [f64; 2])| VisitPoint {
        name: format!("{name} of the frame"),
        target: VisitTarget::Sheet { at_mm, height_mm },
        pen: 0,
        dwell_s: 0.0,
    };
    places.into_iter().map(visit).collect()
}
