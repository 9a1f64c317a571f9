//! Shows where a drawing will lie: the pen goes once round its box or its hull, up, and the arm goes to rest. Nothing is drawn.

use std::sync::Arc;

use super::AttachedArm;
use super::caller_design::CallScene;
use super::dispatch::ToolContext;
use super::motion_job::{self, JobContext, JobError};
use super::preview_text::DrawnExtent;
use super::reply::{Reply, refused};
use super::stroke::{DrawingScope, rounded};
use super::{calibration_check, sheet_check};
use base::plane;
use base::wording::millimetres;
use call::refusal;
use plan::{VisitPoint, VisitTarget};
use scene::{Scene, SheetStroke};

/// Name of its jobs, which no tool has: a frame is no drawing, and cannot be resumed.
pub(super) const FRAME: &str = "frame";

/// Parameter that asks for the hull in place of the box.
const HULL: &str = "hull";

/// Most corners of a hull: the arm stands still at each.
const HULL_CORNERS_MAX: usize = 24;

/// Outline round which the pen goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameOutline {
    /// The box around all lines.
    Box,
    /// Their convex hull.
    Hull,
}

impl FrameOutline {
    pub(super) const fn of(is_hull: bool) -> Self {
        if is_hull { Self::Hull } else { Self::Box }
    }

    /// Returns its corners in turn, each with its name.
    fn corners(self, extent: DrawnExtent, strokes: &[SheetStroke]) -> Vec<(String, [f64; 2])> {
        let [[left, low], [right, high]] = extent.corners();
        match self {
            Self::Box => [
                ("lower left", [left, low]),
                ("lower right", [right, low]),
                ("upper right", [right, high]),
                ("upper left", [left, high]),
            ]
            .map(|(name, at_mm)| (name.to_owned(), at_mm))
            .to_vec(),
            Self::Hull => {
                let points = strokes.iter().flat_map(|stroke| &stroke.points_mm);
                let hull = plane::convex_hull(points.copied());
                let hull = plane::fewer_corners(hull, HULL_CORNERS_MAX).into_iter();
                let hull = hull.enumerate();
                hull.map(|(at, at_mm)| (format!("corner {}", at + 1), at_mm))
                    .collect()
            }
        }
    }
}

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
    let outline = FrameOutline::of(ctx.is(HULL));
    let work = move |ctx| show(ctx, scene, DrawingScope::default(), outline);
    let started = motion_job::start_job(ctx.node, arm, call, work).await;
    Ok(started.wait_for_end(ctx.node, arm, ctx.watch).await)
}

/// Refuses a call that asks for the frame of a drawing that it would go on with.
pub(super) fn check_no_resume(ctx: &ToolContext<'_>) -> Result<(), Box<Reply>> {
    match ctx.is(FRAME) {
        false => Ok(()),
        true => Err(refused(
            "arguments_refused",
            "`resume` finishes a drawing, but `frame` draws nothing. Next: send only one of them",
        )),
    }
}

/// Refuses a call that asks for a hull without a frame: it would draw.
pub(super) fn check_hull(ctx: &ToolContext<'_>) -> Result<(), Box<Reply>> {
    match ctx.is(HULL) && !ctx.is(FRAME) {
        false => Ok(()),
        true => Err(refused(
            "arguments_refused",
            "`hull` works only with `frame`. Next: send `\"frame\": true` with it",
        )),
    }
}

/// Leads the pen round what would be drawn, then the arm to rest.
pub(super) async fn show(
    ctx: JobContext,
    scene: Arc<Scene>,
    drawing: DrawingScope,
    outline: FrameOutline,
) -> Result<Reply, JobError> {
    let permit = ctx.ask(&scene)?;
    let drawn = drawing.scene(&scene);
    let extent = DrawnExtent::of(&drawn.strokes);
    let extent = extent.ok_or_else(|| refusal!("nothing would be drawn, so there is no frame"))?;
    let height_mm = scene.heights.lift_mm;
    let corners = outline.corners(extent, &drawn.strokes);
    let outline_mm: Vec<[f64; 2]> = corners
        .iter()
        .map(|(_, at_mm)| at_mm.map(rounded))
        .collect();
    let points = visits(corners, height_mm);
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
        "the raised pen went once around x {left:.1} to {right:.1} mm, y {low:.1} to {high:.1} mm, {} over the sheet; nothing was drawn",
        millimetres(height_mm, 1)
    );
    Ok(Reply::done(message)
        .with("arm", ctx.arm.title())
        .with("state", "rest")
        .with("stroke_count", 0)
        .with("box_mm", box_mm)
        .with("outline_mm", outline_mm)
        .with("height_mm", rounded(height_mm)))
}

/// Returns visits of corners in turn, and of the first again.
fn visits(mut corners: Vec<(String, [f64; 2])>, height_mm: f64) -> Vec<VisitPoint> {
    let first = corners
        .first()
        .map(|(name, at_mm)| (format!("{name} again"), *at_mm));
    corners.extend(first);
    let visit = |(name, at_mm)| VisitPoint {
        name: format!("{name} of the frame"),
        target: VisitTarget::Sheet { at_mm, height_mm },
        pen: 0,
        dwell_s: 0.0,
    };
    corners.into_iter().map(visit).collect()
}
