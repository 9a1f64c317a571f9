//! `align {"ink": true}`: draws strokes that reveal play, reads the ink by camera, and proposes a better model.

use std::sync::Arc;

use super::super::motion_job::{JobContext, JobError};
use super::{reading, rests};
use crate::cameras::CameraCapture;
use crate::reply::Reply;
use crate::{AttachedArm, Node};
use base::wording::{count, joined};
use calib::{
    AlignmentResult, CalibrationKind, CalibrationSession, FitFinding, FitVerdict, InkFit,
    InkObservation, PatternGap, PatternPath, PatternReading, gap_sketch, gaps, ink_pattern,
    pattern_stage,
};
use call::{Refusal, refusal};
use motion::PathReading;
use plan::{Plan, SpanKind};
use scene::{Order as DrawingOrder, Scene, SheetStroke};
use vision::{ExpectedLine, InkOffset, InkReading, PicturedSheet, read_ink};

/// Smallest fraction of the pattern's places that must be read: with fewer, the sheet was not clean or something hides it.
const READ_FRACTION_MIN: f64 = 0.5;

/// Draws the pattern, reads its ink and proposes what follows. Nothing is saved.
pub(super) async fn align(ctx: JobContext, scene: Arc<Scene>) -> Result<Reply, JobError> {
    calib::check_own(CalibrationKind::Play, &scene, "", "").map_err(|error| refusal!("{error}"))?;
    let strokes = ink_pattern(&scene).map_err(|error| refusal!("{error}"))?;
    let _claim = reading::claim(&ctx, &scene, "draws a pattern")?;
    let has_camera = scene.fiducials.is_some() && !ctx.node.cameras_of(&ctx.arm).is_empty();
    if has_camera {
        capture_sheet(&ctx.node, &ctx.arm, &scene).await?;
    }
    ctx.arm.place_sheet(&scene, ctx.job.number());
    let places = strokes.iter();
    let places = places.filter_map(|one| Some((one.source.as_str(), *one.points_mm.first()?)));
    ctx.job.update(|card| {
        (card.done, card.of) = (0, strokes.len());
        card.has_later_motions = true;
    });
    let rests = rests::measure_rests(&ctx, &scene, places).await?;
    let drawn = draw(&ctx, &scene, &strokes).await?;
    if !has_camera {
        let gaps = gaps(&strokes);
        let planned_readings: Vec<_> = gaps.iter().map(|gap| gap.reading(gap.planned_mm)).collect();
        let observation = InkObservation {
            at_ms: base::clock::calendar_ms(),
            rests,
            ..observe(&scene, &drawn, &strokes, &planned_readings)?.unmeasured()
        };
        return wait_for_person(&ctx, &scene, observation, &gaps).await;
    }
    let capture = capture_sheet(&ctx.node, &ctx.arm, &scene).await?;
    let reading = read(&scene, &capture, &strokes)?;
    if (reading.offsets.len() as f64) < READ_FRACTION_MIN * reading.places as f64 {
        return Ok(unread(&ctx, &scene, &capture, &reading));
    }
    let observation = InkObservation {
        camera: Some(capture.camera.clone()),
        at_ms: capture.at_ms,
        rests,
        ..observe(&scene, &drawn, &strokes, &readings(&reading))?
    };
    let fit = InkFit::new(&scene, &observation).map_err(|error| refusal!("{error}"))?;
    match fit.proposal() {
        Some(kind) => propose(&ctx, &scene, &fit, observation, kind).await,
        None => Ok(nothing_significant(&ctx, &scene, &fit)),
    }
}

/// Takes a picture in which a camera sees the scene's tags.
async fn capture_sheet(
    node: &Node,
    arm: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
) -> Result<CameraCapture, Refusal> {
    let captures = node.capture(arm, Some(scene)).await;
    let mut reasons = Vec::new();
    for (name, look) in captures {
        match look {
            Err(error) => reasons.push(error.to_string()),
            Ok(look) => match (look.old_reason(), &look.sheet) {
                (Some(reason), _) => reasons.push(reason),
                (None, Some(Ok(_))) => return Ok(look),
                (None, Some(Err(error))) => reasons.push(format!("camera {name}: {error}")),
                (None, None) => {
                    reasons.push(format!("camera {name} has no `focal_px` in the node file"));
                }
            },
        }
    }
    Err(refusal!(
        "no camera sees the sheet, so no pattern was drawn: {}",
        joined(&reasons)
    ))
}

/// A pattern that was drawn, and the joints as they were read meanwhile.
struct DrawnPattern {
    plan: Plan,
    readings: Vec<PathReading>,
}

/// Draws the pattern, then moves out of the camera's sight.
async fn draw(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    strokes: &[SheetStroke],
) -> Result<DrawnPattern, JobError> {
    let permit = ctx.ask(scene)?;
    let pattern = strokes.to_vec();
    let plan = ctx
        .plan(scene, move |scene, start, watch| {
            plan::draw_strokes(scene, start, &pattern, DrawingOrder::AsDrawn, watch)
        })
        .await?;
    let done = ctx.run_read(scene, permit, &plan).await?;
    let permit = ctx.ask(scene)?;
    let away = ctx.plan_to_rest(scene).await?;
    ctx.job.update(|card| card.has_later_motions = false);
    ctx.run_uncounted(scene, permit, &away).await?;
    Ok(DrawnPattern {
        plan,
        readings: done.readings,
    })
}

fn read(
    scene: &Scene,
    capture: &CameraCapture,
    strokes: &[SheetStroke],
) -> Result<InkReading, Refusal> {
    let not_seen = || refusal!("the sheet was not seen");
    let tags = scene.fiducials.as_ref().ok_or_else(not_seen)?;
    let sheet = capture.sheet.as_ref().and_then(|sheet| sheet.as_ref().ok());
    let sheet = sheet.ok_or_else(not_seen)?;
    let points = strokes.iter().map(|stroke| stroke.points_mm.clone());
    let lines: Vec<_> = points.map(|points_mm| ExpectedLine { points_mm }).collect();
    let sheet = PicturedSheet {
        frame: &capture.frame,
        lens: &sheet.lens,
        sheet: &sheet.location.sheet,
        tags: &tags.layout,
        line_mm: scene.pen(0).map_or(0.5, |pen| pen.width_mm),
    };
    Ok(read_ink(&sheet, &lines))
}

fn observe(
    scene: &Scene,
    DrawnPattern { plan, readings }: &DrawnPattern,
    strokes: &[SheetStroke],
    offsets: &[PatternReading],
) -> Result<InkObservation, Refusal> {
    let stage = pattern_stage(scene).ok_or_else(|| refusal!("the scene has no pen"))?;
    let drawn = |stroke: &SheetStroke| {
        let mut all = plan.strokes.iter();
        let item = all.position(|planned| planned.source == stroke.source);
        let mut spans = plan.trajectory.spans.iter();
        let span = spans.find(|span| span.kind == SpanKind::Draw && span.item == item);
        span.map_or(0..0, |span| span.first..span.end)
    };
    let read = |at: &PathReading| (at.sample, at.position_rad);
    let path = PatternPath {
        sent: &plan.trajectory.samples,
        reached: plan.trajectory.reached(),
        strokes: strokes.iter().map(drawn).collect(),
        read: readings.iter().map(read).collect(),
    };
    Ok(path.observe(&stage, offsets))
}

fn readings(ink: &InkReading) -> Vec<PatternReading> {
    let reading = |offset: &InkOffset| PatternReading {
        stroke: offset.line,
        piece: offset.piece,
        at_mm: offset.at_mm,
        from: None,
        across: offset.across,
        off_mm: offset.off_mm,
        sigma_mm: offset.sigma_mm,
    };
    ink.offsets.iter().map(reading).collect()
}

/// Keeps what was drawn for a person to measure.
async fn wait_for_person(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    observation: InkObservation,
    gaps: &[PatternGap],
) -> Result<Reply, JobError> {
    let next = format!(
        "an operator measures the gaps of the pattern with `steadyhand calibrate play --scene {}`",
        scene.name
    );
    let session = CalibrationSession {
        kind: CalibrationKind::Play,
        ink: Some(observation),
        ..reading::session(&ctx.node, &ctx.arm, scene)?
    };
    super::touch::keep(ctx, &session, scene).await?;
    let finding = FitFinding {
        verdict: FitVerdict::Usable,
        reasons: vec!["no camera sees this sheet, so its ink is not read yet".to_owned()],
        notes: Vec::new(),
    };
    let result = AlignmentResult::without_points(scene, finding, next);
    let reply = Reply::done(format!(
        "the pattern is drawn. Now a person measures {} of it; nothing is proposed before that",
        count(gaps.len(), "gap")
    ));
    let sketch = gap_sketch(gaps);
    Ok(super::report(ctx, scene, &result, reply, &sketch))
}

/// Keeps the observation as the proposal.
async fn propose(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    fit: &InkFit,
    observation: InkObservation,
    kind: CalibrationKind,
) -> Result<Reply, JobError> {
    let session = CalibrationSession {
        kind,
        ink: Some(observation),
        ..reading::session(&ctx.node, &ctx.arm, scene)?
    };
    let subject = match kind {
        CalibrationKind::Play => "Play and sag of the joints",
        _ => "The sheet's place and its correction",
    };
    let message = format!(
        "the pattern was drawn and read: {}. {subject} are proposed; they are saved only if an operator accepts them",
        fit.describe()
    );
    let then = "then call `align` with `ink` again on a clean sheet";
    super::propose(ctx, scene, &session, message, then).await
}

/// Answers that ink and plan agree as far as can be measured.
fn nothing_significant(ctx: &JobContext, scene: &Scene, fit: &InkFit) -> Reply {
    let next = "`stroke` draws the design".to_owned();
    let result = AlignmentResult::without_points(scene, FitFinding::good(), next);
    let words = fit.describe();
    let reply = Reply::done(format!(
        "the pattern was drawn and read: {words}. No error is significant, so nothing is proposed"
    ));
    super::report(ctx, scene, &result, reply, &words)
}

/// Answers that too little of the pattern was read.
fn unread(ctx: &JobContext, scene: &Scene, capture: &CameraCapture, reading: &InkReading) -> Reply {
    let reason = format!(
        "camera {} could read only {} of {} of the pattern. It needs a clean sheet, a pen that draws, even light and nothing over the sheet. A nearer camera or more pixels help",
        capture.camera,
        reading.offsets.len(),
        count(reading.places, "place")
    );
    let mut finding = FitFinding::good();
    finding.redo(reason.clone());
    let next = "put in a clean sheet and call `align` with `ink` again".to_owned();
    let result = AlignmentResult::without_points(scene, finding, next);
    let reply = Reply::failed(reason.clone()).with("code", "ink_unread");
    super::report(ctx, scene, &result, reply, &reason)
}
