//! `align {"ink": true}`: draws strokes by which play shows, reads the ink by camera, and proposes a better model.

use std::sync::Arc;

use super::super::motion_job::{JobContext, JobError, plan_to_rest};
use super::{reading, rests};
use crate::cameras::CameraCapture;
use crate::reply::Reply;
use crate::{AttachedArm, Node};
use base::wording::count;
use calib::{
    AlignmentResult, CalibrationKind, CalibrationSession, CalibrationStore, FitFinding, FitVerdict,
    InkFit, InkObservation, PatternGap, PatternPath, PatternReading, gap_sketch, gaps, ink_pattern,
    pattern_stage,
};
use call::{Refusal, refusal};
use plan::{Plan, SpanKind};
use scene::{Order as DrawingOrder, Scene, SheetStroke};
use vision::{ExpectedLine, InkOffset, InkReading, PicturedSheet, read_ink};

/// Share of the pattern's places that must be read; fewer, and the sheet was not clean or something hides it.
const READ_SHARE_MIN: f64 = 0.5;

/// Draws, reads and proposes. Nothing is saved.
pub(super) async fn align(ctx: JobContext, scene: Arc<Scene>) -> Result<Reply, JobError> {
    let strokes = ink_pattern(&scene).map_err(|why| refusal!("{why}"))?;
    let store = CalibrationStore::of_state(&ctx.node.state);
    if let Some(why) = reading::blocking_proposal(&store, &scene)? {
        return Err(Refusal::new(why).into());
    }
    let has_camera = scene.fiducials.is_some() && !ctx.node.cameras_of(&ctx.arm).is_empty();
    if has_camera {
        seen(&ctx.node, &ctx.arm, &scene).await?;
    }
    ctx.arm.place_sheet(&scene);
    let over = strokes.iter();
    let over = over.filter_map(|one| Some((one.source.as_str(), *one.points_mm.first()?)));
    ctx.job.update(|card| {
        (card.done, card.of) = (0, strokes.len());
        card.has_later_motions = true;
    });
    let rests = rests::stand(&ctx, &scene, over).await?;
    let plan = draw(&ctx, &scene, &strokes).await?;
    if !has_camera {
        let gaps = gaps(&strokes);
        let asked: Vec<_> = gaps.iter().map(|gap| gap.reading(gap.planned_mm)).collect();
        let observed = InkObservation {
            at_ms: base::clock::calendar_ms(),
            rests,
            ..observe(&scene, &plan, &strokes, &asked)?.unmeasured()
        };
        return wait_for_person(&ctx, &scene, observed, &gaps).await;
    }
    let look = seen(&ctx.node, &ctx.arm, &scene).await?;
    let read = read(&scene, &look, &strokes)?;
    if (read.offsets.len() as f64) < READ_SHARE_MIN * read.places as f64 {
        return Ok(unread(&ctx, &scene, &look, &read));
    }
    let observed = InkObservation {
        camera: Some(look.camera.clone()),
        at_ms: look.at_ms,
        rests,
        ..observe(&scene, &plan, &strokes, &readings(&read))?
    };
    let fit = InkFit::new(&scene, &observed).map_err(|why| refusal!("{why}"))?;
    match fit.proposal() {
        Some(kind) => propose(&ctx, &scene, &fit, observed, kind).await,
        None => Ok(nothing(&ctx, &scene, &fit)),
    }
}

/// Takes a picture in which a camera sees the scene's tags.
async fn seen(
    node: &Node,
    arm: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
) -> Result<CameraCapture, Refusal> {
    let looks = node.capture(arm, Some(scene)).await;
    let mut why_not = Vec::new();
    for (name, look) in looks {
        match look {
            Err(why) => why_not.push(why.to_string()),
            Ok(look) if look.is_old() => why_not.push(format!("camera {name}: its picture is old")),
            Ok(look) => match &look.sheet {
                Some(Ok(_)) => return Ok(look),
                Some(Err(error)) => why_not.push(format!("camera {name}: {error}")),
                None => why_not.push(format!("camera {name} has no focal_px in the node file")),
            },
        }
    }
    Err(refusal!(
        "no camera sees the sheet, so nothing is drawn for one to read: {}",
        why_not.join("; ")
    ))
}

/// Draws the pattern, and goes out of the camera's sight.
async fn draw(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    strokes: &[SheetStroke],
) -> Result<Plan, JobError> {
    let permit = ctx.ask(scene)?;
    let pattern = strokes.to_vec();
    let plan = ctx
        .plan(scene, move |scene, start, watch| {
            plan::draw_strokes(scene, start, &pattern, DrawingOrder::AsDrawn, watch)
        })
        .await?;
    ctx.run(scene, permit, &plan).await?;
    let permit = ctx.ask(scene)?;
    let away = ctx.plan(scene, plan_to_rest).await?;
    ctx.job.update(|card| card.has_later_motions = false);
    ctx.run_uncounted(scene, permit, &away).await?;
    Ok(plan)
}

fn read(
    scene: &Scene,
    look: &CameraCapture,
    strokes: &[SheetStroke],
) -> Result<InkReading, Refusal> {
    let unseen = || refusal!("the sheet was not seen");
    let tags = scene.fiducials.as_ref().ok_or_else(unseen)?;
    let seen = look.sheet.as_ref().and_then(|seen| seen.as_ref().ok());
    let seen = seen.ok_or_else(unseen)?;
    let points = strokes.iter().map(|stroke| stroke.points_mm.clone());
    let lines: Vec<_> = points.map(|points_mm| ExpectedLine { points_mm }).collect();
    let sheet = PicturedSheet {
        frame: &look.frame,
        lens: &seen.lens,
        sheet: &seen.sighting.sheet,
        tags: &tags.layout,
        line_mm: scene.pen(0).map_or(0.5, |pen| pen.width_mm),
    };
    Ok(read_ink(&sheet, &lines))
}

fn observe(
    scene: &Scene,
    plan: &Plan,
    strokes: &[SheetStroke],
    read: &[PatternReading],
) -> Result<InkObservation, Refusal> {
    let stage = pattern_stage(scene).ok_or_else(|| refusal!("the scene has no pen"))?;
    let drawn = |stroke: &SheetStroke| {
        let mut all = plan.strokes.iter();
        let item = all.position(|one| one.source == stroke.source);
        let mut spans = plan.trajectory.spans.iter();
        let span = spans.find(|span| span.kind == SpanKind::Draw && span.item == item);
        span.map_or(0..0, |span| span.first..span.end)
    };
    let path = PatternPath {
        sent: &plan.trajectory.samples,
        reached: plan.trajectory.reached(),
        strokes: strokes.iter().map(drawn).collect(),
    };
    Ok(path.observe(&stage, read))
}

fn readings(read: &InkReading) -> Vec<PatternReading> {
    let reading = |of: &InkOffset| PatternReading {
        stroke: of.line,
        piece: of.piece,
        at_mm: of.at_mm,
        from: None,
        across: of.across,
        off_mm: of.off_mm,
        sigma_mm: of.sigma_mm,
    };
    read.offsets.iter().map(reading).collect()
}

/// Keeps what was drawn for a person to measure.
async fn wait_for_person(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    observed: InkObservation,
    gaps: &[PatternGap],
) -> Result<Reply, JobError> {
    let next = format!(
        "an operator measures the gaps of the pattern, which `steadyhand calibrate play --scene {}` asks for",
        scene.name
    );
    let session = CalibrationSession {
        kind: CalibrationKind::Play,
        ink: Some(observed),
        ..reading::session(&ctx.node, &ctx.arm, scene)?
    };
    super::touch::keep(ctx, &session, scene).await?;
    let finding = FitFinding {
        verdict: FitVerdict::Usable,
        reasons: vec!["no camera sees this sheet: nothing of the ink is read yet".to_owned()],
    };
    let found = AlignmentResult::without_points(scene, finding, next);
    let reply = Reply::done(format!(
        "pattern drawn: {} of it are to be measured by a person; nothing is proposed until then",
        count(gaps.len(), "gap")
    ));
    let sketch = gap_sketch(gaps);
    Ok(super::report(ctx, scene, &found, reply, &sketch))
}

/// Keeps what was read as the proposal.
async fn propose(
    ctx: &JobContext,
    scene: &Arc<Scene>,
    fit: &InkFit,
    observed: InkObservation,
    kind: CalibrationKind,
) -> Result<Reply, JobError> {
    let session = CalibrationSession {
        kind,
        ink: Some(observed),
        ..reading::session(&ctx.node, &ctx.arm, scene)?
    };
    let what = match kind {
        CalibrationKind::Play => "play and sag of the joints",
        _ => "the sheet's place and its correction",
    };
    let message = format!(
        "pattern drawn and read: {}; {what}: proposed, and nothing is saved until an operator accepts it",
        fit.words()
    );
    let then = "then a clean sheet, and align with ink again";
    super::propose(ctx, scene, &session, message, then).await
}

/// The answer where ink and plan agree as far as can be known.
fn nothing(ctx: &JobContext, scene: &Scene, fit: &InkFit) -> Reply {
    let next = "stroke draws the design".to_owned();
    let found = AlignmentResult::without_points(scene, FitFinding::good(), next);
    let words = fit.words();
    let reply = Reply::done(format!(
        "pattern drawn and read: {words}; nothing is significant, and nothing is proposed"
    ));
    super::report(ctx, scene, &found, reply, &words)
}

/// The answer where too little of the pattern was read.
fn unread(ctx: &JobContext, scene: &Scene, look: &CameraCapture, read: &InkReading) -> Reply {
    let why = format!(
        "camera {} reads {} of {} of the pattern: a clean sheet, a pen that draws, even light, and nothing over the sheet are needed; a camera nearer to it, or of more pixels, reads more",
        look.camera,
        read.offsets.len(),
        count(read.places, "place")
    );
    let mut finding = FitFinding::good();
    finding.redo(why.clone());
    let next = "put a clean sheet and align with ink again".to_owned();
    let found = AlignmentResult::without_points(scene, finding, next);
    let reply = Reply::failed(why.clone()).with("code", "ink_unread");
    super::report(ctx, scene, &found, reply, &why)
}
