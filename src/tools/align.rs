//! `align`: visits known points, reads back where the tip is, and draws a cross where the drawing is not; or feels the sheet; or draws a pattern and
//! reads its ink; or touches what another arm touches; or takes a person's reading of the cross. The answer has three parts: what was measured, what that is
//! worth, and what to do next. It saves no calibration.

mod bases;
mod cross;
mod ink;
mod probe_places;
mod reading;
mod rests;
mod touch;
mod touch_grid;

use std::sync::Arc;

use nalgebra::Point3;

use cross::DrawnCross;
pub use cross::cross_place_mm;

use super::AttachedArm;
use super::calibration_check;
use super::dispatch::ToolContext;
use super::motion_job::{self, JobContext, JobError, tip_mm};
use super::pictures;
use super::reply::{Reply, refused};
use super::sheet_check;
use super::stroke::rounded;
use super::{job_motion, planner_thread};
use base::wording::{count, millimetres, seconds};
use calib::{
    AlignedPoint, AlignmentResult, CalibrationChange, CalibrationKind, CalibrationSession,
    ResolutionClass,
};
use motion::VisitReading;
use plan::{self, VisitPoint, VisitTarget};
use scene::Scene;
use serde_json::{Value, json};

/// Distance from the sheet's edges to the visited corners, and what it is at most of a small sheet's side.
const INSET_MM: f64 = 8.0;
const INSET_SHARE: f64 = 0.25;

/// Dwell time of the tip at a corner before the joints are read.
const DWELL_S: f64 = 0.4;

pub(super) async fn call(ctx: &ToolContext<'_>) -> Result<Reply, Box<Reply>> {
    let arm = ctx.arm()?;
    let scene = ctx.scene(arm)?;
    calibration_check::refuse_other_zeros(arm, &scene)?;
    // To touch for the bases is to touch.
    let is_bases = ctx.is("bases");
    let (is_touch, is_ink) = (ctx.is("touch") && !is_bases, ctx.is("ink"));
    let offset_mm = reading::measured_offset_mm(ctx);
    let modes = [is_touch || is_bases, is_ink, offset_mm.is_some()];
    if modes.into_iter().filter(|mode| *mode).count() > 1 {
        return Err(conflicting_modes());
    }
    if is_bases && scene.beside.is_empty() {
        return Err(refused("arguments_refused", calib::AssessError::OneArm));
    }
    let grid = touch_grid::asked_for(ctx, &scene)?;
    if ctx.is("dry_run") {
        return match offset_mm {
            Some(_) => Err(refused(
                "no_dry_run",
                "`measured` has no dry run, because it moves nothing",
            )),
            None => preview(ctx, arm, &scene, is_touch || is_bases || is_ink).await,
        };
    }
    if let Some(read_mm) = offset_mm {
        return reading::propose(ctx, &scene, read_mm);
    }
    // Nothing is visited over a sheet that has moved: its new place is proposed instead.
    if let Some((capture, offset)) = sheet_check::find_moved_sheet(ctx.node, arm, &scene).await {
        return reading::propose_observed(ctx, &scene, &capture, &offset);
    }
    // The arm is measured anew each time, so only a call still under way counts as the same.
    let call = ctx.job("align", arm, &scene, true)?;
    let started = motion_job::start_job(ctx.node, arm, call, move |ctx| async move {
        if is_bases {
            bases::align(ctx, scene).await
        } else if is_ink {
            ink::align(ctx, scene).await
        } else if is_touch {
            touch::align(ctx, scene, grid).await
        } else {
            align(ctx, scene).await
        }
    })
    .await;
    Ok(started.wait_for_end(ctx.node, arm, ctx.watch).await)
}

fn conflicting_modes() -> Box<Reply> {
    refused(
        "arguments_refused",
        "`touch` feels the sheet (as does `bases`), `ink` draws a pattern and reads it, and `measured` is what a person read. Next: send only one of them",
    )
}

/// Shows where the arm would go, without a motion. What is felt or read decides the rest.
async fn preview(
    ctx: &ToolContext<'_>,
    arm: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
    follows_sensor: bool,
) -> Result<Reply, Box<Reply>> {
    let start = job_motion::measurement(arm).map_err(|reason| refused("refused", reason))?;
    let mut visits = visit_points(scene);
    if follows_sensor {
        visits = visits.pop().into_iter().collect();
    }
    let (points, planned) = (visits.clone(), Arc::clone(scene));
    let plan = planner_thread::preview(arm, ctx.watch, move |watch| {
        plan::visit(&planned, &start.position_rad, &points, watch)
    });
    let plan = plan.await.map_err(|error| error.reply().1.boxed())?;
    let words = format!(
        "The arm would visit {} of scene {} in {}, {} above the sheet",
        count(visits.len(), "point"),
        scene.title(),
        seconds(plan.report.duration_s),
        millimetres(scene.heights.hover_mm, 1),
    );
    let rest = match follows_sensor {
        true => "; this is only the approach: the rest depends on what the tip feels",
        false => ", then draw its registration cross",
    };
    let last = visits
        .last()
        .map(|visit| target_mm(scene, visit).map(rounded));
    let mut reply = Reply::done(format!("{words}{rest}."))
        .with("moved", false)
        .with("arm_time_s", rounded(plan.report.duration_s))
        .with("pen_up_mm", rounded(plan.report.pen_up_mm))
        .with("arm", arm.title());
    reply.set_some("end_mm", last);
    Ok(reply)
}

async fn align(ctx: JobContext, scene: Arc<Scene>) -> Result<Reply, JobError> {
    let permit = ctx.ask(&scene)?;
    let visits = visit_points(&scene);
    ctx.arm.keep_or_place_sheet(&scene, ctx.job.number());
    let points = visits.clone();
    let plan = ctx
        .plan(&scene, move |scene, start, watch| {
            plan::visit(scene, start, &points, watch)
        })
        .await?;
    ctx.job.update(|card| {
        (card.done, card.of) = (0, visits.len() + cross::LINES);
        card.has_later_motions = true;
    });
    let done = ctx.run(&scene, permit, &plan).await?;
    let points = measure(&scene, &visits, &done.visits);
    ctx.job.update(|card| card.done_before = visits.len());
    let cross = DrawnCross::draw(&ctx, &scene).await?;
    let result = AlignmentResult::visited(
        &scene,
        points,
        &ResolutionClass::of_arm(&scene.arm).limits(),
    );
    let errors = result.points.iter().map(|point| point.tracking_error_mm);
    let worst_mm = errors.fold(0.0, f64::max);
    let message = format!(
        "{} visited, largest tracking error {}; {}",
        count(result.points.len(), "point"),
        millimetres(worst_mm, 2),
        cross.words(&scene)
    );
    let mut reply = Reply::done(message)
        .with("stroke_count", cross.strokes)
        .with("tracking_error_mm_max", worst_mm)
        .with("sheet_mm", scene.surface.size_mm());
    reply.set_some("cross_mm", cross.at_mm);
    reply.set_some("cross_inked", cross.is_inked);
    Ok(report(&ctx, &scene, &result, reply, &result.describe()))
}

/// Returns the points to visit: the calibrator, each ink cap, the sheet's corners and its centre.
fn visit_points(scene: &Scene) -> Vec<VisitPoint> {
    let hover_mm = scene.heights.hover_mm;
    let above = |point: &Point3<f64>| VisitTarget::Point {
        point_m: point + nalgebra::Vector3::new(0.0, 0.0, hover_mm / 1e3),
    };
    let visit = |name: String, target| VisitPoint {
        name,
        target,
        pen: 0,
        dwell_s: DWELL_S,
    };
    let sheet = |at_mm| VisitTarget::Sheet {
        at_mm,
        height_mm: hover_mm,
    };
    let calibrator = scene.calibrator_m.iter();
    let calibrator = calibrator.map(|at| visit("calibrator".to_owned(), above(at)));
    let inks = scene.inks.iter();
    let inks = inks.map(|ink| visit(format!("ink {}", ink.name), above(&ink.rim_m)));
    let sheet_points = sheet_places(scene).into_iter();
    let sheet_points = sheet_points.map(|(name, at_mm)| visit(name.to_owned(), sheet(at_mm)));
    calibrator.chain(inks).chain(sheet_points).collect()
}

/// Returns the sheet's corners, inset so that the tip can reach them all, and its centre, by name.
fn sheet_places(scene: &Scene) -> [(&'static str, [f64; 2]); 5] {
    let size_mm = scene.surface.size_mm();
    let [left, bottom] = size_mm.map(|side| INSET_MM.min(side * INSET_SHARE));
    let (right, top) = (size_mm[0] - left, size_mm[1] - bottom);
    [
        ("lower left", [left, bottom]),
        ("lower right", [right, bottom]),
        ("upper right", [right, top]),
        ("upper left", [left, top]),
        ("centre", size_mm.map(|side| side / 2.0)),
    ]
}

fn target_mm(scene: &Scene, visit: &VisitPoint) -> [f64; 3] {
    let at = match visit.target {
        VisitTarget::Point { point_m } => point_m,
        VisitTarget::Sheet { at_mm, height_mm } => {
            let contact = scene.surface.at(at_mm);
            contact.point_m + contact.normal.scale(height_mm / 1e3)
        }
    };
    [at.x * 1e3, at.y * 1e3, at.z * 1e3]
}

fn measure(scene: &Scene, points: &[VisitPoint], visited: &[VisitReading]) -> Vec<AlignedPoint> {
    visited
        .iter()
        .filter_map(|reading| {
            let visit = points.get(reading.item)?;
            let target_mm = target_mm(scene, visit);
            let measured_mm = tip_mm(scene, visit.pen, &reading.position_rad)?;
            let error = (Point3::from(measured_mm) - Point3::from(target_mm)).norm();
            Some(AlignedPoint {
                name: visit.name.clone(),
                target_mm: target_mm.map(rounded),
                measured_mm: measured_mm.map(rounded),
                tracking_error_mm: rounded(error),
                ..AlignedPoint::default()
            })
        })
        .collect()
}

/// Keeps a session as the proposal, and answers with the message, the proposal's size and assessment, and `then`, the step
/// after an operator accepts it.
async fn propose(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    session: &CalibrationSession,
    message: String,
    then: &str,
) -> Result<Reply, JobError> {
    let assessed = touch::keep(ctx, session, scene).await?;
    let next = reading::next_step(&assessed, then);
    let result = AlignmentResult::without_points(scene, assessed.finding.clone(), next);
    let reply = Reply::done(message).with("change", change_json(assessed.change));
    let reply = with_practice_hint(ctx, scene, session, reply);
    let text = calib::report::assessment_text(session, &assessed);
    Ok(report(ctx, scene, &result, reply, &text))
}

/// Hint for a simulated arm whose sheet has no place of its own.
const SHEET_FOLLOWS_SCENE: &str = "this simulated sheet always lies where the scene says: an accepted proposal moves the sheet too, so the error stays. To practise, give the sheet a place of its own: `truth = \"FOLDER\"` of the arm in the node file (docs/practice.md)";

/// Adds, to the proposal of a sheet's place, that accepting it moves a simulated sheet as well, where it does.
fn with_practice_hint(
    ctx: &JobContext,
    scene: &Scene,
    session: &CalibrationSession,
    reply: Reply,
) -> Reply {
    let workcell = ctx.arm.workcell.as_ref();
    let follows = workcell.is_some_and(|workcell| !workcell.has_true_sheet(scene));
    if !follows || session.kind != CalibrationKind::Sheet {
        return reply;
    }
    let mut reply = reply.hint(SHEET_FOLLOWS_SCENE);
    reply.text = format!("{}\nnote: {SHEET_FOLLOWS_SCENE}", reply.text);
    reply
}

/// Adds the result to a reply as data, text and files, with its points as a picture too.
fn report(
    ctx: &JobContext,
    scene: &Scene,
    result: &AlignmentResult,
    reply: Reply,
    text: &str,
) -> Reply {
    let page = (!result.points.is_empty()).then(|| result.html());
    let json = serde_json::to_vec_pretty(result).unwrap_or_default();
    let picture = drawn_picture(ctx, scene);
    let files = pictures::write(
        &ctx.node,
        &ctx.job.card().id,
        &[
            ("align.html", page.as_deref().map(str::as_bytes)),
            ("align.json", Some(&json)),
            ("align.txt", Some(text.as_bytes())),
            ("drawn.png", picture.as_deref()),
        ],
    );
    let mut reply = files.add_to(add_findings(result, reply));
    reply.text = format!("{}\n{text}", reply.text);
    reply.show(picture);
    reply
}

/// Returns the size of a proposed change as data.
fn change_json(change: CalibrationChange) -> Value {
    json!({ "mm": rounded(change.mm), "deg": rounded(change.deg) })
}

/// Paints the ink that a simulated pen has drawn.
fn drawn_picture(ctx: &JobContext, scene: &Scene) -> Option<Vec<u8>> {
    let ink = ctx.arm.workcell.as_ref()?.ink();
    pictures::ink(scene, &ink)
}

fn add_findings(result: &AlignmentResult, reply: Reply) -> Reply {
    reply
        .with("points", &result.points)
        .with("verdict", result.finding.verdict)
        .with("reasons", &result.finding.reasons)
        .with("next", &result.next)
        .hint(&result.next)
}
