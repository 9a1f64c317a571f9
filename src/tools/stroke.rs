//! `stroke`: draws the scene's design.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::caller_design::CallScene;
use super::completed_motion::CompletedMotion;
use super::design_arguments::IMAGE_KEY;
use super::dispatch::ToolContext;
use super::motion_job::{self, JobContext, JobError};
use super::preview::DrawingPreview;
use super::preview_text::DrawnExtent;
use super::reply::{Reply, refused};
use super::team::{DrawnPart, StandingArms, TeamPlan};
use super::{
    AttachedArm, calibration_check, frame, job_motion, pictures, planner_thread, repeated_drawing,
    resume, sheet_check, sheet_ink, team_stroke,
};
use base::lock::MutexExt;
use base::units::ClockInstant;
use base::wording::{count, millimetres, seconds};
use call::Refusal;
use design::compare::{InkDeviation, deviation_mm};
use motion::DrawingDeviation;
use plan::{self, Plan};
use scene::{Order as DrawingOrder, Revision, Scene, SharedScene, SheetStroke};

pub(super) async fn call(ctx: &ToolContext<'_>) -> Result<Reply, Box<Reply>> {
    let arm = ctx.arm()?;
    frame::check_hull(ctx)?;
    if ctx.is("resume") {
        frame::check_no_resume(ctx)?;
        ctx.check_design_fits()?;
        return resume::call(ctx, arm).await;
    }
    if let Some(shared) = team_stroke::shared_scene(ctx)? {
        ctx.check_design_fits()?;
        let reply = team_stroke::call(ctx, shared).await;
        let reply = reply.unwrap_or_else(|refused| *refused);
        return Ok(reply.with("understood", &ctx.reading.understood));
    }
    let target = ctx.drawing_scene(arm).map_err(|refused| {
        refused
            .with("understood", ctx.understood_undrawable())
            .boxed()
    })?;
    let understood = target.understood(ctx);
    let reply = begin(ctx, arm, target).await;
    let reply = reply.unwrap_or_else(|refused| *refused);
    Ok(reply.with("understood", understood))
}

/// Previews or draws a scene, with the caller's design on it where there is one.
async fn begin(
    ctx: &ToolContext<'_>,
    arm: &Arc<AttachedArm>,
    target: CallScene,
) -> Result<Reply, Box<Reply>> {
    let scene = Arc::clone(&target.scene);
    let drawing = DrawingScope {
        plan: ctx.plan_hash(),
        ..DrawingScope::default()
    };
    if ctx.is("dry_run") {
        let reply = dry_run(ctx, &scene, drawing).await;
        let displaced = resume::DisplacedDrawing::of(ctx.node, arm);
        // The preview of a doubtful call leads to no other motion.
        return Ok(match displaced.filter(|_| ctx.order.is_some()) {
            Some(displaced) => reply.hint(&displaced.warning()),
            None => reply,
        });
    }
    if ctx.is(frame::FRAME) {
        return frame::call(ctx, arm, &target).await;
    }
    calibration_check::check(ctx.node, arm, &scene)?;
    resume::check_none_cut_short(ctx, arm)?;
    ctx.check_previewed(arm, &scene)?;
    // Checked before planning, so that no caller waits for a plan that is not carried out, and again
    // before anything moves.
    sheet_check::check(ctx.node, arm, &scene).await?;
    let mut call = ctx.job("stroke", arm, &scene, ctx.is("again"))?;
    target.note_in(ctx, &mut call)?;
    let work = move |ctx| draw(ctx, scene, drawing);
    let queued = ctx.queued_drawing()?;
    if let Some(queued) = &queued {
        queued.ticket().clone_into(&mut call.accepted.ticket);
        // Two drawings of a batch may be alike.
        call.key.work = format!("{} {}", call.key.work, queued.ticket());
    } else if let Some(reply) = repeated_drawing::answer(ctx, arm, &call).await {
        return Ok(reply);
    }
    let displaced = resume::DisplacedDrawing::of(ctx.node, arm);
    let started = motion_job::start_job(ctx.node, arm, call, work).await;
    let reply = match queued {
        Some(_) => started.wait_for_start(arm, ctx.watch).await,
        None => started.wait_for_end(ctx.node, arm, ctx.watch).await,
    };
    Ok(match displaced {
        Some(displaced) => displaced.mention_in(ctx.node, reply),
        None => reply,
    })
}

impl ToolContext<'_> {
    /// Returns the hash of the only plan that may be drawn, ignoring case and surrounding blanks.
    pub(super) fn plan_hash(&self) -> Option<String> {
        self.text("plan").map(normalized_hash)
    }

    /// Returns the arguments that say what this call draws: those that were given, with the scene.
    fn drawn_arguments(&self, scene: &Scene) -> Map<String, Value> {
        let is_about_it = |name: &str| !["dry_run", "debug", "plan", "again"].contains(&name);
        let mut arguments = Map::new();
        if !self.is("resume") {
            arguments.insert("scene".to_owned(), scene.name.as_str().into());
        }
        let given = self.reading.given.iter();
        let given = given.filter(|(name, _)| is_about_it(name));
        arguments.extend(given.map(|(name, value)| (name.clone(), value.clone())));
        arguments
    }

    /// Returns the arguments of the call that draws exactly the previewed plan; `None` for a plan that is refused, and where
    /// anything of this call was not understood.
    fn drawing_call(&self, scene: &Scene, preview: &DrawingPreview) -> Option<Map<String, Value>> {
        let is_offered = preview.refusals.is_empty() && self.is_understood_whole();
        let plan = preview.plan.as_ref().filter(|_| is_offered)?;
        let mut call = self.drawn_arguments(scene);
        // A picture is not sent back: its preview is remembered, and the plan names it.
        if call.contains_key(IMAGE_KEY) {
            call.clear();
        }
        call.insert("plan".to_owned(), plan.hash.as_str().into());
        Some(call)
    }

    /// Returns whether nothing of this call was left over.
    fn is_understood_whole(&self) -> bool {
        self.order.is_some() && self.reading.leftover.is_empty()
    }
}

/// Normalises a plan's hash to the form that plans have.
pub(super) fn normalized_hash(written: &str) -> String {
    let quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
    written.trim_matches(quotes).to_lowercase()
}

/// Part of a scene to draw; the default is all of it.
#[derive(Clone, Default)]
pub(super) struct DrawingScope {
    /// The scene that the arm shares with others, which draw their parts at the same time.
    pub(super) shared: Option<Arc<SharedScene>>,
    /// Remaining strokes of an earlier job, in place of the whole design.
    pub(super) rest: Option<UnfinishedRest>,
    /// The hash of the only plan that may be carried out.
    pub(super) plan: Option<String>,
}

/// The part of a drawing that an earlier job left.
#[derive(Clone)]
pub(super) struct UnfinishedRest {
    /// The remaining strokes; the first begins a little before where the earlier job left it.
    pub(super) strokes: Vec<SheetStroke>,
    /// The number of strokes that earlier jobs completed.
    pub(super) done_before: usize,
}

impl DrawingScope {
    /// Returns the scene of all arms that draw together: of this one alone where it shares none.
    fn shared_scene(&self, scene: &Arc<Scene>) -> Arc<SharedScene> {
        let of_one = || Arc::new(SharedScene::of_one(Scene::clone(scene)));
        self.shared.clone().unwrap_or_else(of_one)
    }

    /// Returns the scene with only these strokes to draw.
    pub(super) fn scene(&self, scene: &Arc<Scene>) -> Arc<Scene> {
        match &self.rest {
            None => Arc::clone(scene),
            Some(rest) => Arc::new(Scene {
                strokes: rest.strokes.clone(),
                order: DrawingOrder::AsDrawn,
                ..Scene::clone(scene)
            }),
        }
    }
}

/// Recent previews, to describe what has changed since.
#[derive(Default)]
pub(super) struct PreviewHistory(Mutex<VecDeque<RememberedPreview>>);

#[derive(Clone)]
pub(super) struct RememberedPreview {
    pub(super) hash: String,
    /// The arguments that say what is drawn.
    pub(super) arguments: Map<String, Value>,
    scene: String,
    revision: Revision,
    words: String,
    at: ClockInstant,
}

impl RememberedPreview {
    /// Returns the bytes of the texts in its arguments.
    fn text_bytes(&self) -> usize {
        let texts = self.arguments.values().filter_map(Value::as_str);
        texts.map(str::len).sum()
    }
}

/// Fraction of its tolerance from which the joint that deviated most is named: two encoder counts.
const NAMED_FROM: f64 = 0.2;

/// Most previews that are remembered, most bytes of the designs in their calls, and for how long.
const PREVIEWS_MAX: usize = 64;
const PREVIEWED_BYTES_MAX: usize = 16 << 20;
const PREVIEWED_FOR: Duration = Duration::from_secs(60 * 60);

/// Fewest digits by which a plan is named.
pub(super) const PLAN_DIGITS_MIN: usize = 8;

/// Digits of a whole hash.
pub(super) const PLAN_DIGITS_MAX: usize = 64;

/// Returns the beginning of a plan's hash that is shown: eight digits, or more up to one that no number has.
pub(super) fn shown_hash(hash: &str) -> &str {
    let is_letter = |c: char| matches!(c, 'a'..='d' | 'f');
    let end = match hash.find(is_letter) {
        Some(at) => (at + 1).max(PLAN_DIGITS_MIN),
        None => hash.len(),
    };
    hash.get(..end).unwrap_or(hash)
}

/// Returns whether a plan is named by its hash, or by a beginning of at least eight digits.
pub(super) fn is_plan(named: &str, hash: &str) -> bool {
    named.len() >= PLAN_DIGITS_MIN && hash.starts_with(named)
}

impl PreviewHistory {
    fn remember(
        &self,
        scene: &Scene,
        plan: &Plan,
        (arguments, at): (Map<String, Value>, ClockInstant),
    ) {
        let mut all = self.0.locked();
        all.retain(|preview| preview.hash != plan.hash);
        all.push_back(RememberedPreview {
            hash: plan.hash.clone(),
            arguments,
            scene: scene.title(),
            revision: scene.revision,
            words: size_text(plan),
            at,
        });
        let bytes = |all: &VecDeque<RememberedPreview>| {
            all.iter().map(RememberedPreview::text_bytes).sum::<usize>()
        };
        while all.len() > PREVIEWS_MAX || bytes(&all) > PREVIEWED_BYTES_MAX {
            all.pop_front();
        }
    }

    /// Returns the preview of the last hour whose plan has this name, if there is one.
    ///
    /// # Errors
    /// The name is too short, or several plans have it.
    pub(super) fn find(
        &self,
        named: &str,
        now: ClockInstant,
    ) -> Result<Option<RememberedPreview>, String> {
        if named.len() < PLAN_DIGITS_MIN {
            return Err(format!(
                "`plan` needs at least {PLAN_DIGITS_MIN} hexadecimal digits"
            ));
        }
        let all = self.0.locked();
        let is_found = |one: &&RememberedPreview| {
            is_plan(named, &one.hash) && now.since(one.at) < PREVIEWED_FOR
        };
        let found: Vec<&RememberedPreview> = all.iter().filter(is_found).collect();
        match found.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some((*one).clone())),
            _ => Err("several plans begin with these digits: send more of them".to_owned()),
        }
    }

    /// Describes the changes since the preview with this hash.
    fn changed(&self, hash: &str, scene: &Scene, plan: &Plan) -> String {
        let all = self.0.locked();
        let now = size_text(plan);
        match all.iter().find(|preview| is_plan(hash, &preview.hash)) {
            None => format!("no dry run has made it since the node started. The plan is now {now}"),
            Some(before) if before.scene != scene.title() => format!(
                "it was made for scene {}; this call is for {}",
                before.scene,
                scene.title()
            ),
            Some(before) if before.revision != scene.revision => format!(
                "scene {} has changed from revision {} to {}: its file, design, overlay, arm or calibration. Planned as {}, now {now}",
                before.scene, before.revision, scene.revision, before.words
            ),
            Some(before) if scene.canvas.is_some() => format!(
                "the design, its size or its place has changed: planned as {}, now {now}",
                before.words
            ),
            Some(before) => format!(
                "the rest of the drawing has changed: planned as {}, now {now}",
                before.words
            ),
        }
    }
}

pub(super) fn size_text(plan: &Plan) -> String {
    let report = &plan.report;
    format!(
        "{}, {} of line, {}",
        report.strokes_text(),
        millimetres(report.pen_down_mm, 1),
        seconds(report.duration_s)
    )
}

pub(super) async fn dry_run(
    ctx: &ToolContext<'_>,
    scene: &Arc<Scene>,
    drawing: DrawingScope,
) -> Reply {
    preview_reply(ctx, scene, drawing)
        .await
        .unwrap_or_else(|error| error.reply().1)
}

async fn preview_reply(
    ctx: &ToolContext<'_>,
    scene: &Arc<Scene>,
    drawing: DrawingScope,
) -> Result<Reply, JobError> {
    let arm = ctx.arm().map_err(Refusal::from)?;
    let start = job_motion::measurement(arm)?;
    let (planned, is_resumed) = (Arc::clone(scene), drawing.rest.is_some());
    let standing = StandingArms::beside(ctx.node, arm, scene).await?;
    let preview = planner_thread::preview(arm, ctx.watch, move |watch| {
        let (scene, start) = (drawing.scene(&planned), &start.position_rad);
        DrawingPreview::beside(&standing, &scene, start, watch)
    })
    .await?;
    if let Some(plan) = &preview.plan {
        let arguments = ctx.drawn_arguments(scene);
        ctx.node
            .previews
            .remember(scene, plan, (arguments, ctx.node.clock.now()));
    }
    let picture = pictures::preview(scene, &preview);
    let folder = format!("preview-{}", ctx.node.number());
    let files = pictures::write(ctx.node, &folder, &[("plan.png", picture.as_deref())]);
    let call = ctx.drawing_call(scene, &preview);
    let words = preview.text(call.as_ref());
    let message = match ctx.order {
        Some(_) => format!("planned, not drawn: {words}"),
        None => format!("The arm would draw scene {}: {words}.", scene.title()),
    };
    let mut reply = if preview.refusals.is_empty() {
        Reply::done(message)
    } else {
        Reply::failed(message)
            .with("code", "plan_refused")
            .with("refusals", &preview.refusals)
    };
    let call = call.map(|call| json!({"tool": "stroke", "arguments": call}));
    reply.set_some("draw_call", call);
    if let Some(plan) = &preview.plan {
        add_facts(&mut reply, plan);
        reply.set_some("box_mm", DrawnExtent::of(&plan.strokes));
        add_extremes(&mut reply, plan);
        add_stretch(&mut reply, scene, plan);
        reply.set("arm_time_s", rounded(plan.report.duration_s));
    }
    if let Some(plan) = preview.plan.as_ref().filter(|_| !is_resumed) {
        let covered_mm = ctx.node.covered_mm(arm, scene, &plan.strokes);
        reply = sheet_ink::say_covered(reply, covered_mm, "would go");
    }
    reply.show(picture);
    reply.set("sheet_mm", scene.surface.size_mm());
    reply.set_some("design_notes", &scene.notes);
    Ok(files.add_to(reply.with("arm", arm.title())))
}

pub(super) async fn draw(
    ctx: JobContext,
    scene: Arc<Scene>,
    drawing: DrawingScope,
) -> Result<Reply, JobError> {
    let permit = ctx.ask(&scene)?;
    let planned = drawing.scene(&scene);
    let TeamPlan {
        plan,
        hash: plan_hash,
    } = ctx.plan_drawing(&drawing.shared_scene(&planned)).await?;
    if let Some(canvas) = &scene.canvas {
        let within = canvas.check_time(plan.report.duration_s);
        within.map_err(Refusal::from)?;
    }
    if let Some(hash) = drawing
        .plan
        .as_ref()
        .filter(|hash| !is_plan(hash, &plan_hash))
    {
        return Err(refuse_changed_plan(&ctx, hash, &scene, &plan).into());
    }
    ctx.job.update(|card| {
        (card.done, card.of) = (0, plan.report.stroke_count);
        card.plan_hash = Some(plan_hash.clone());
    });
    // The ink of an earlier job stays, if this process laid its sheet.
    let placed = ctx.arm.placed_scene();
    let is_continued =
        drawing.rest.is_some() && placed.is_some_and(|placed| placed.revision == scene.revision);
    let covered_mm = match drawing.rest {
        // What is drawn again there is part of the same drawing.
        Some(_) => 0.0,
        None => ctx.node.covered_mm(&ctx.arm, &scene, &plan.strokes),
    };
    if !is_continued {
        ctx.arm.keep_or_place_sheet(&scene, ctx.job.number());
    }
    let workcell = ctx.arm.workcell.as_ref();
    let earlier_lines = workcell.map_or(0, |workcell| workcell.ink().len());
    let done = ctx.run_drawing(&scene, permit, &plan).await?;
    ctx.job.update(|card| card.done = card.of);
    // What other arms draw is not missing.
    let design = match drawing.shared {
        Some(_) => &plan.strokes,
        None => &planned.strokes,
    };
    let part = DrawnPart {
        scene: Arc::clone(&scene),
        plan: plan.clone(),
        ink: workcell.map(|workcell| workcell.ink()),
    };
    let drawn = (design.as_slice(), earlier_lines, part);
    let reply = drawn_reply(&ctx, &done, drawn)
        .await
        // By this one it is called, also where other arms draw parts of it.
        .with("plan_hash", plan_hash);
    if reply.is_error && reply.code() != Some(pictures::FILES_LOST) {
        return Err(JobError::Deviated(reply.boxed()));
    }
    let Some(rest) = drawing.rest else {
        return Ok(sheet_ink::say_covered(reply, covered_mm, "went"));
    };
    let total = rest.done_before + plan.report.stroke_count;
    let strokes = count(total, "stroke");
    Ok(reply.with_more_words(&format!("the drawing is complete: {total} of {strokes}")))
}

/// Refuses a drawing because its plan differs from the requested one.
fn refuse_changed_plan(
    ctx: &JobContext,
    requested_hash: &str,
    scene: &Scene,
    plan: &Plan,
) -> Box<Reply> {
    let requested_hash: String = requested_hash.chars().take(64).collect();
    let changed = ctx.node.previews.changed(&requested_hash, scene, plan);
    let mut reply = refused(
        "plan_changed",
        format!(
            "plan {requested_hash:?} cannot be drawn: {changed}. Next: this call with `dry_run` true and without `plan` shows the present plan"
        ),
    );
    add_facts(&mut reply, plan);
    reply.boxed()
}

/// Describes what was drawn. The ink is compared with these strokes, without the lines that were on
/// the sheet before, which are of another job. Of several arms, one shows what all have drawn.
async fn drawn_reply(
    ctx: &JobContext,
    done: &CompletedMotion,
    (strokes, earlier_lines, own): (&[SheetStroke], usize, DrawnPart),
) -> Reply {
    let own_ink = |ink: &Vec<_>| deviation(strokes, ink.get(earlier_lines..).unwrap_or_default());
    let deviation = own.ink.as_ref().map(own_ink);
    let (scene, plan) = (Arc::clone(&own.scene), own.plan.clone());
    let [planned, inked] = pictures::drawn(&ctx.team.gather_drawn(own).await);
    let pictures = [
        ("plan.png", planned.as_deref()),
        ("drawn.png", inked.as_deref()),
    ];
    let files = pictures::write(&ctx.node, &ctx.job.card().id, &pictures);
    let words = message(&plan, done, deviation.as_ref());
    let mut reply = outcome(done, deviation.as_ref(), words);
    add_design_notes(&mut reply, &scene);
    add_facts(&mut reply, &plan);
    add_stretch(&mut reply, &scene, &plan);
    if let Some(deviation) = &deviation {
        add_ink(&mut reply, deviation);
    }
    reply.set("arm_time_s", rounded(done.arm_time_s));
    reply.set("joint_error_deg", rounded(done.off_rad.to_degrees()));
    reply = done.with_sags(reply);
    if let Some(measured) = &done.deviation {
        add_measured(&mut reply, measured);
    }
    let basis = calibration_check::uncalibrated_basis(&ctx.node, &ctx.arm, &scene);
    reply.set_some("calibration", basis);
    let past = ctx.entry.past();
    reply.set_some("pens_measured", past.pens_measured);
    reply.set_some("depth_trims", past.depth_trims);
    reply.show(planned.into_iter().chain(inked));
    let look = match scene.canvas {
        Some(_) => r#"`sense` with `"grid": true` shows the sheet in mm"#,
        None => "`sense` shows the drawing",
    };
    files
        .add_to(reply)
        .hint(&format!("{look}; `reset` brings the arm to rest"))
}

/// Adds what was left out of a design that came with the call, or was read in another way than it is written.
fn add_design_notes(reply: &mut Reply, scene: &Scene) {
    if scene.canvas.is_none() && scene.drawing.is_none() {
        return;
    }
    for note in &scene.notes {
        reply.text = format!("{}\nnote: {note}", reply.text);
    }
    reply.set_some("design_notes", &scene.notes);
}

/// Returns the deviation of a drawing that a joint did not follow.
fn unfollowed(done: &CompletedMotion) -> Option<&DrawingDeviation> {
    let measured = done.deviation.as_ref();
    measured.filter(|measured| measured.is_beyond_tolerance())
}

/// Begins the answer. A drawing that a joint did not follow, or whose ink is missing, is no success.
fn outcome(done: &CompletedMotion, ink: Option<&InkDeviation>, message: String) -> Reply {
    let ink = ink.filter(|ink| ink.is_ink_missing());
    let (code, hint) = match (unfollowed(done), ink) {
        (None, None) => return Reply::done(message),
        (Some(measured), _) => (
            "did_not_follow",
            format!(
                "check what {} presses against, and whether the sheet or the joint's zero differs from the scene",
                measured.joint
            ),
        ),
        (None, Some(ink)) if ink.is_without_ink() => (
            "ink_missing",
            "`align` with `touch` measures the sheet's place".to_owned(),
        ),
        (None, Some(_)) => (
            "ink_missing",
            "a person calibrates the arm: `steadyhand calibrate play`".to_owned(),
        ),
    };
    let reply = Reply::failed(message).with("code", code);
    reply.hint(&format!("{hint}; the same call draws all of it again"))
}

fn message(plan: &Plan, done: &CompletedMotion, deviation: Option<&InkDeviation>) -> String {
    let report = &plan.report;
    let is_drawn = !deviation.is_some_and(InkDeviation::is_ink_missing);
    let line = format!(
        "{} {}, {} of line, in {} of arm time",
        if is_drawn { "drew" } else { "moved along" },
        report.strokes_text(),
        millimetres(report.pen_down_mm, 0),
        seconds(done.arm_time_s)
    );
    let ink = match deviation {
        Some(ink) => ink_text(ink),
        None => "the ink on the paper was not measured".to_owned(),
    };
    let joints = done.deviation.as_ref().map(measured_text);
    format!("{line}; {ink}{}", joints.unwrap_or_default())
}

/// Describes the ink that was measured: where it lies, and how much of the design has none.
fn ink_text(ink: &InkDeviation) -> String {
    let allowed = match ink.is_ink_missing() {
        true => format!(" ({} allowed)", millimetres(ink.missing_allowed_mm(), 1)),
        false => String::new(),
    };
    if ink.is_without_ink() {
        let missing = millimetres(ink.missing_mm, 1);
        return format!(
            "there is no ink on the paper: {missing} of the design is missing{allowed}"
        );
    }
    format!(
        "the ink is at most {} from the design{}{allowed}",
        millimetres(ink.off_max_mm, 2),
        ink.missing_text("the design")
    )
}

/// Adds how far the ink is from the design, where there is any, and how much of the design has none.
fn add_ink(reply: &mut Reply, ink: &InkDeviation) {
    if ink.max_mm.is_finite() {
        reply.set("deviation_mm_max", rounded(ink.off_max_mm));
        reply.set("deviation_mm_p95", rounded(ink.off_p95_mm));
    }
    reply.set("missing_mm", rounded(ink.missing_mm));
}

/// Adds how far the measured joints were from the commanded ones while the pen drew.
fn add_measured(reply: &mut Reply, measured: &DrawingDeviation) {
    let degrees = |rad: f64| rounded(rad.to_degrees());
    reply.set("joint_deviation_deg_max", degrees(measured.joint_rad));
    reply.set_some("joint_deviation_joint", named_joint(measured));
    reply.set("joint_tolerance_deg", degrees(measured.tolerance_rad));
    reply.set("tip_deviation_mm_max", rounded(measured.tip_mm));
}

/// Describes how far the measured joints were from the commanded ones while the pen drew.
fn measured_text(measured: &DrawingDeviation) -> String {
    let off = format!("{:.2}°", measured.joint_rad.to_degrees());
    let allowed = format!("{:.1}°", measured.tolerance_rad.to_degrees());
    let tip = millimetres(measured.tip_mm, 1);
    if measured.is_beyond_tolerance() {
        return format!(
            "; {} did not follow: while the pen drew, this joint was {off} off (at most {allowed}), and the tip was {tip} off",
            measured.joint
        );
    }
    let joint = named_joint(measured).map(|joint| format!("{joint}; "));
    format!(
        "; while the pen drew, the joints were at most {off} off ({}{allowed} is allowed), and the tip was {tip} off",
        joint.unwrap_or_default()
    )
}

/// Returns the joint that deviated most, unless all were as near as their encoders round.
fn named_joint(measured: &DrawingDeviation) -> Option<&str> {
    let is_rounding = measured.joint_rad < NAMED_FROM * measured.tolerance_rad;
    (!is_rounding).then_some(measured.joint.as_str())
}

fn add_facts(reply: &mut Reply, plan: &Plan) {
    let report = &plan.report;
    reply.set("stroke_count", report.stroke_count);
    reply.set("pen_down_mm", rounded(report.pen_down_mm));
    reply.set("planned_s", rounded(report.duration_s));
    reply.set("dips", report.dips);
    reply.set("plan_hash", &plan.hash);
    let expected_mm = report.expected_deviation_mm.map(rounded);
    reply.set_some("expected_deviation_mm", expected_mm);
}

/// Adds the plan's extreme values to the reply, for callers that cannot see the picture.
fn add_extremes(reply: &mut Reply, plan: &Plan) {
    let report = &plan.report;
    reply.set("pen_up_mm", rounded(report.pen_up_mm));
    reply.set("tilt_max_deg", rounded(report.tilt_max_deg));
    reply.set("margin_least_deg", rounded(report.margin_least_deg));
    reply.set("margin_least_joint", &report.margin_least_joint);
    reply.set("at_speed_share", rounded(report.at_speed_share));
}

/// Adds how much the surface stretches the design; a flat one does not.
fn add_stretch(reply: &mut Reply, scene: &Scene, plan: &Plan) {
    if !scene.surface.is_flat() {
        reply.set("stretch_max", rounded(plan.report.stretch_max));
    }
}

fn deviation(strokes: &[SheetStroke], ink: &[(usize, Vec<[f64; 2]>)]) -> InkDeviation {
    let design = strokes.iter().map(|stroke| stroke.points_mm.clone());
    let design: Vec<Vec<[f64; 2]>> = design.collect();
    let ink: Vec<Vec<[f64; 2]>> = ink.iter().map(|(_, line)| line.clone()).collect();
    deviation_mm(&design, &ink)
}

/// Rounds to a thousandth: further digits are noise.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::{normalized_hash, shown_hash};

    #[test]
    fn a_shown_plan_cannot_be_read_as_a_number() {
        for (hash, shown) in [
            ("3f9a0c11aa", "3f9a0c11"),
            ("12345678e9b1", "12345678e9b"),
            ("1234567890", "1234567890"),
        ] {
            assert_eq!(shown_hash(hash), shown, "{hash}");
        }
    }

    #[test]
    fn quotes_around_a_hash_are_form() {
        for written in ["4f2a", " 4F2A\n", "`4f2a`", "\"4f2a\""] {
            assert_eq!(normalized_hash(written), "4f2a", "{written}");
        }
    }
}
