//! Resumes a drawing that was left half done, and restores what a node knows of it at its start.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::dispatch::ToolContext;
use super::node::check_is_for;
use super::reply::{Reply, refused};
use super::reset::{self, pen_clause};
use super::stroke::{self, DrawingScope, UnfinishedRest, rounded};
use super::{
    AttachedArm, Node, calibration_check, job_scene, motion_job, namesake, sheet_check, team_stroke,
};
use args::ArgumentReading;
use base::wording::with_next;
use call::{Refusal, refusal};
use job::PastJob;
use permit::{ActorRank, StopLatch};
use scene::Scene;

/// Length at the end of the drawn line that is drawn again: servos lag behind their setpoints, and after a power failure the
/// end of the line may be missing.
pub(super) const OVERLAP_MM: f64 = 3.0;

/// `stroke` with `resume`.
pub(super) async fn call(
    ctx: &ToolContext<'_>,
    arm: &Arc<AttachedArm>,
) -> Result<Reply, Box<Reply>> {
    check_not_again(ctx)?;
    let own = ctx.node.job_store.unfinished(arm.key());
    let unfinished = match own {
        Some(own) if !team_stroke::is_part(&own) => Some(own),
        own => team_stroke::unfinished(ctx).or(own),
    };
    let past = unfinished.ok_or_else(|| {
        let refused = nothing_to_resume(ctx, arm);
        refused.with("understood", without_scene(ctx)).boxed()
    })?;
    let arm = ctx.node.arm(Some(&past.arm)).unwrap_or(arm);
    check_is_last(ctx, arm, &past)?;
    if let Some(reply) = team_stroke::resume(ctx, &past).await? {
        return Ok(reply);
    }
    let resumed = resume_drawing(ctx, arm, &past).await;
    resumed.map_err(|refused| refused.with("understood", understood(ctx, &past)).boxed())
}

async fn resume_drawing(
    ctx: &ToolContext<'_>,
    arm: &Arc<AttachedArm>,
    past: &PastJob,
) -> Result<Reply, Box<Reply>> {
    check_is_callers(ctx, past)?;
    check_same_target(ctx, past)?;
    let scene = same_scene(ctx.node, arm, past).map_err(|reason| {
        refused(
            "scene_changed",
            with_next(reason, "restore that, or start over with `again` true"),
        )
    })?;
    calibration_check::check(ctx.node, arm, &scene)?;
    let drawing = DrawingScope {
        shared: None,
        rest: Some(rest_of(ctx.node, past)),
        plan: ctx.plan_hash(),
    };
    let understood = understood(ctx, past);
    let reply = if ctx.is("dry_run") {
        stroke::dry_run(ctx, &scene, drawing).await
    } else {
        ctx.check_previewed(arm, &scene)?;
        sheet_check::check(ctx.node, arm, &scene).await?;
        let mut call = ctx.job("stroke", arm, &scene, false)?;
        call.accepted.resumes.clone_from(&past.id);
        call.accepted.first_job.clone_from(&past.first_job);
        call.accepted.ticket.clone_from(&past.ticket);
        call.accepted.drawing = job_scene::kept_drawing(ctx.node, past);
        call.accepted.understood = Value::Object(understood.clone()).to_string();
        // The same job, whatever arguments named it.
        call.key.work = format!("stroke resume {}", past.id);
        let work = move |ctx| stroke::draw(ctx, scene, drawing);
        let started = motion_job::start_job(ctx.node, arm, call, work).await;
        started.wait_for_end(ctx.node, arm, ctx.watch).await
    };
    Ok(reply
        .with("understood", understood)
        .with("resumed", unfinished_json(past)))
}

/// Returns the part of a drawing that a job left.
pub(super) fn rest_of(node: &Node, past: &PastJob) -> UnfinishedRest {
    UnfinishedRest {
        strokes: past.remaining_strokes(OVERLAP_MM),
        done_before: past.drawn.strokes + node.job_store.done_before(past),
    }
}

/// Returns the arguments as they are used, with the scene, overlay and arm of the unfinished job.
pub(super) fn understood(ctx: &ToolContext<'_>, past: &PastJob) -> Map<String, Value> {
    let mut understood = ctx.reading.understood.clone();
    for (name, value) in target_arguments(past) {
        match value {
            Some(value) => understood.insert(name.to_owned(), value.into()),
            None => understood.shift_remove(name),
        };
    }
    understood
}

/// Returns the arguments without a defaulted scene, because without an unfinished drawing there is no scene.
fn without_scene(ctx: &ToolContext<'_>) -> Map<String, Value> {
    let ArgumentReading {
        understood, given, ..
    } = ctx.reading;
    let mut understood = understood.clone();
    understood
        .retain(|name, _| !matches!(name.as_str(), "scene" | "meta") || given.contains_key(name));
    understood
}

/// Returns the arguments of the unfinished job that say what is drawn and by which arm.
fn target_arguments(past: &PastJob) -> [(&'static str, Option<&str>); 3] {
    let (scene, arm) = (past.scene.as_str(), past.arm.as_str());
    [
        ("scene", Some(scene)),
        ("meta", past.overlay()),
        ("arm", Some(arm)),
    ]
}

/// Returns the arguments of a job that a call names otherwise.
fn differing_arguments<'a>(
    given: &Map<String, Value>,
    past: &'a PastJob,
) -> Vec<(&'static str, Option<&'a str>)> {
    let differs = |(name, value): &(&str, Option<&str>)| {
        let named = given.get(*name).and_then(Value::as_str);
        named.is_some_and(|named| Some(named) != *value)
    };
    target_arguments(past).into_iter().filter(differs).collect()
}

/// Refuses a call that names another scene, overlay or arm than the unfinished job's. The corrected call shows what is left and
/// moves nothing; it keeps the other arguments.
pub(super) fn check_same_target(ctx: &ToolContext<'_>, past: &PastJob) -> Result<(), Box<Reply>> {
    let given = &ctx.reading.given;
    let others = differing_arguments(given, past);
    if others.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = others
        .iter()
        .map(|(name, _)| format!("{name} {}", given.get(*name).unwrap_or(&Value::Null)))
        .collect();
    let mut resume = given.clone();
    // The plan was for the drawing that the call named.
    let is_dropped = |key: &str| key == "plan" || others.iter().any(|(name, _)| *name == key);
    resume.retain(|key, _| !is_dropped(key));
    Err(resume_differs(
        past,
        resume,
        &format!("this call names {}", named.join(", ")),
    ))
}

/// Refuses a call that names no scene if its arm has begun a different drawing since the unfinished one: the caller may mean
/// either. The corrected call names the scene of the unfinished one.
fn check_is_last(
    ctx: &ToolContext<'_>,
    arm: &AttachedArm,
    past: &PastJob,
) -> Result<(), Box<Reply>> {
    let given = &ctx.reading.given;
    let last = ctx.node.job_store.last_begun_drawing(arm.key(), |_| true);
    let later =
        last.filter(|last| last.id != past.id && last.resumes != past.id && !last.draws_same(past));
    let Some(later) = later.filter(|_| !given.contains_key("scene")) else {
        return Ok(());
    };
    let mut resume = given.clone();
    let named = target_arguments(past).into_iter();
    let named = named.filter_map(|(name, value)| Some((name, value?)));
    resume.extend(named.map(|(name, value)| (name.to_owned(), value.into())));
    let since = format!(
        "{}, a drawing of {}, was begun later",
        later.id,
        title(&later)
    );
    let refused = resume_differs(past, resume, &since);
    Err(refused.with("understood", without_scene(ctx)).boxed())
}

/// Refuses to resume a drawing that the caller may not mean. `resume` are the arguments that do mean it.
fn resume_differs(past: &PastJob, mut resume: Map<String, Value>, reason: &str) -> Box<Reply> {
    resume.insert("dry_run".to_owned(), true.into());
    let shown = Value::Object(resume.clone());
    refused("resume_differs", format!(
        "`resume` would finish {}, a drawing of {} with arm {} ({}), but {reason}. Next: `stroke {shown}` shows the rest",
        past.id,
        title(past),
        past.arm,
        past.summary(),
    ))
    .with("unfinished", unfinished_json(past))
    .with("corrected_call", json!({"tool": "stroke", "arguments": resume}))
    .boxed()
}

/// Returns the title of a job's scene and its overlay, for people.
pub(super) fn title(past: &PastJob) -> String {
    match past.overlay() {
        _ if !past.drawing.is_empty() => past.scene_title(),
        None => format!("scene {:?}", past.scene),
        Some(overlay) => format!("scene {:?} with overlay {overlay:?}", past.scene),
    }
}

/// Describes why nothing is left to resume of the last drawing that an arm has begun and that `matches` accepts, with the code of
/// that answer; `None` if there is none.
pub(super) fn nothing_left_text(
    node: &Node,
    arm: &AttachedArm,
    matches: impl Fn(&PastJob) -> bool,
) -> Option<(&'static str, String)> {
    let last = node.job_store.last_begun_drawing(arm.key(), matches)?;
    let drawing = format!("{} ({} with arm {:?})", last.id, title(&last), arm.name);
    if !last.is_on_sheet() {
        return Some(("nothing_to_resume", not_resumed_text(&last, &drawing)));
    }
    let given_up = node.job_store.given_up(arm.key());
    let given_up = given_up.map(|past| {
        format!(
            "; {}, a drawing of {} ({}), was replaced by another drawing and cannot be resumed: draw it from its beginning",
            past.id,
            title(&past),
            past.summary()
        )
    });
    let text = format!(
        "there is nothing to resume: {drawing} is drawn completely{}",
        given_up.unwrap_or_default()
    );
    Some(("drawing_complete", text))
}

/// Describes why a drawing that is not all on its sheet cannot be resumed.
fn not_resumed_text(past: &PastJob, drawing: &str) -> String {
    let state = past.state_text();
    match past.settled.as_str() {
        _ if !past.may_have_inked() => {
            format!("there is nothing to resume: {drawing} {state} before the pen drew anything")
        }
        "" => format!("there is nothing to resume: {drawing} {state}"),
        by => format!("there is nothing to resume: {drawing} was replaced by {by}"),
    }
}

/// An unfinished drawing of an arm that another drawing would replace.
pub(super) struct DisplacedDrawing(PastJob);

impl DisplacedDrawing {
    /// Returns the drawing that an arm left half done, if any.
    pub(super) fn of(node: &Node, arm: &AttachedArm) -> Option<Self> {
        node.job_store.unfinished(arm.key()).map(Self)
    }

    fn words(&self) -> String {
        let Self(past) = self;
        format!(
            "{} is an unfinished drawing of {} ({})",
            past.id,
            title(past),
            past.summary()
        )
    }

    /// Warns what happens to it once another drawing begins, and how to resume it instead.
    pub(super) fn warning(&self) -> String {
        let resume = match is_of_operator(&self.0) {
            false => "`stroke` with `resume`",
            true => "`steadyhand draw --resume`",
        };
        format!(
            "{}. {resume} can resume it only until this new drawing begins",
            self.words()
        )
    }

    /// Adds to the answer of another drawing that this one is given up for it, or will be once that one begins to draw.
    pub(super) fn mention_in(&self, node: &Node, reply: Reply) -> Reply {
        let is_open = job::past(&node.state, &self.0.id).is_ok_and(|past| past.settled.is_empty());
        match (is_open, reply.is_error) {
            (true, true) => reply,
            (true, false) => reply.with_more_words(&self.warning()),
            (false, _) => reply.with_more_words(&format!(
                "{}. This drawing replaces it, so it can no longer be resumed",
                self.words()
            )),
        }
    }
}

/// Refuses to resume: the last drawing is complete, or nothing was left half done; names other arms that left a drawing, and the
/// call that shows what is left of the only one.
fn nothing_to_resume(ctx: &ToolContext<'_>, arm: &AttachedArm) -> Box<Reply> {
    let node = ctx.node;
    let others = node.arms.iter();
    let others = others.filter_map(|other| node.job_store.unfinished(other.key()));
    let others: Vec<PastJob> = others.collect();
    let lines = others.iter().map(|past| {
        let (arm, summary) = (&past.arm, past.summary());
        format!("; arm {arm:?} left {} ({summary})", title(past))
    });
    let lines = lines.collect::<String>();
    let left = namesake::drawing_text(node, arm);
    let is_meant = |past: &PastJob| differing_arguments(&ctx.reading.given, past).is_empty();
    let (code, reason) = match (nothing_left_text(node, arm, is_meant), left) {
        (Some((code, last)), left) => (
            code,
            format!(
                "{last}. Without `resume` a drawing starts from its beginning{lines}{}",
                left.map_or_else(String::new, |left| format!("; {left}"))
            ),
        ),
        (None, Some(left)) => ("nothing_to_resume", format!("{left}{lines}")),
        (None, None) => (
            "nothing_to_resume",
            format!(
                "arm {:?} has no unfinished drawing, so there is nothing to resume{lines}",
                arm.name
            ),
        ),
    };
    match others.as_slice() {
        [other] if !is_of_operator(other) => {
            let call = json!({"resume": true, "arm": other.arm, "dry_run": true});
            let words = format!("{reason}. Next: `stroke {call}` shows the rest");
            let corrected = json!({"tool": "stroke", "arguments": call});
            let refused = refused(code, words);
            refused.with("corrected_call", corrected).boxed()
        }
        _ => refused(code, reason),
    }
}

/// Refuses `again` in a call that resumes, because the two contradict each other.
fn check_not_again(ctx: &ToolContext<'_>) -> Result<(), Box<Reply>> {
    if !ctx.is("again") {
        return Ok(());
    }
    Err(refused(
        "resume_or_again",
        "`resume` draws the rest, but `again` draws all of it. Next: send only one of them",
    ))
}

/// Returns the scene of an earlier job, if everything it depends on is unchanged: file, overlay, design,
/// arm and calibration.
pub(super) fn same_scene(
    node: &Node,
    arm: &AttachedArm,
    past: &PastJob,
) -> Result<Arc<Scene>, Refusal> {
    let changed = |reason: Refusal| refusal!("{} cannot be resumed: {reason}", past.id);
    let scene = job_scene::of_job(&node.scenes, &node.state, past).map_err(changed)?;
    check_is_for(arm, &scene).map_err(changed)?;
    Ok(scene)
}

/// Returns the operator's command that draws the rest of a job. A drawing of several arms goes on with all of them.
pub(super) fn command(node: &Node, arm: &AttachedArm, past: &PastJob) -> String {
    let option = match team_stroke::is_part(past) {
        true => String::new(),
        false => node.arm_option(arm),
    };
    format!("draw --resume{option}")
}

/// Returns whether a job draws an operator's drawing.
pub(super) const fn is_of_operator(past: &PastJob) -> bool {
    !past.drawing.is_empty() && !past.is_drawing_of_caller
}

/// Refuses a planner that resumes a drawing which an operator allowed at the terminal: that permission was for one drawing.
pub(super) fn check_is_callers(ctx: &ToolContext<'_>, past: &PastJob) -> Result<(), Box<Reply>> {
    if !is_of_operator(past) || ctx.request.who == ActorRank::Operator {
        return Ok(());
    }
    Err(refused(
        "operators_drawing",
        format!(
            "{} ({}) is an operator's drawing. Next: an operator runs `steadyhand draw --resume`",
            past.id,
            past.scene_title()
        ),
    )
    .with("unfinished", unfinished_json(past))
    .boxed())
}

/// Refuses a new drawing after one that a crash cut short, unless the caller asks for it explicitly: it would draw the
/// existing part twice.
pub(super) fn check_none_cut_short(
    ctx: &ToolContext<'_>,
    arm: &AttachedArm,
) -> Result<(), Box<Reply>> {
    let own = "With `again` true, this call draws its own scene from the beginning";
    match ctx.node.job_store.interrupted(arm.key()) {
        Some(past) if past.is_unfinished() && !ctx.is("again") => Err(refused(
            "interrupted",
            format!(
                "{} was drawing {} and was interrupted: {}{}{}",
                past.id,
                title(&past),
                past.summary(),
                pen_clause(ctx.node, arm),
                match past.drawing.as_str() {
                    _ if !past.is_resumable() =>
                        format!(", and {}. {own}", namesake::PAPER_UNKNOWN),
                    "" => format!(". {own}. Next: `stroke` with `resume` finishes it"),
                    _ => format!(
                        ". {own}. Next: an operator resumes it with `steadyhand draw --resume`"
                    ),
                }
            ),
        )
        .with("unfinished", unfinished_json(&past))
        .boxed()),
        _ => Ok(()),
    }
}

/// Describes an unfinished drawing as data.
pub(super) fn unfinished_json(past: &PastJob) -> Value {
    json!({
        "job": past.id,
        "scene": past.scene,
        "meta": past.overlay(),
        "interrupted": past.interrupted,
        "strokes_done": past.drawn.strokes,
        "strokes": past.strokes.len(),
        "drawn_mm": rounded(past.drawn.mm),
        "perhaps_mm": rounded((past.released_mm - past.drawn.mm).max(0.0)),
        "left_mm": rounded(past.total_mm() - past.drawn.mm),
        "in_progress": past.strokes.get(past.drawn.strokes).map(|stroke| stroke.source.clone()),
        "overlap_mm": OVERLAP_MM,
        "next_pen": past.next_pen().map(|pen| pen + 1),
        "words": past.summary(),
    })
}

impl Node {
    /// Returns the unfinished work of an arm, if any.
    pub(super) fn unfinished(&self, arm: &AttachedArm) -> Option<Value> {
        let interrupted = self.job_store.interrupted(arm.key());
        let unfinished = match interrupted {
            Some(past) if past.tool != "stroke" => Some(past),
            past => self.job_store.unfinished(arm.key()).or(past),
        };
        unfinished.as_ref().map(unfinished_json)
    }

    /// Returns a job's record; `None` for an unknown name.
    #[must_use]
    pub fn job_record(&self, id: &str) -> Option<Value> {
        let is_name =
            id.starts_with("job-") && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let past = is_name.then(|| self.job_store.past(id).ok())??;
        Some(record(&past))
    }

    /// Restores the state after the last process. Restores the last scene of every real arm, disables motion of each arm, real or
    /// simulated, that was moving when the process ended, and asks for a reset of one whose pen may stand on the paper after a
    /// motion that broke. Returns messages for people.
    pub fn recover(&self) -> Vec<String> {
        let mut messages: Vec<String> = self.job_store.damaged().to_vec();
        for arm in &self.arms {
            if arm.workcell.is_none()
                && let Some(past) = self.job_store.last_moved(arm.key())
                && let Ok(scene) = same_scene(self, arm, &past)
            {
                arm.moved_in(&scene);
            }
            messages.extend(namesake::left_on_port(self, arm));
            messages.extend(self.fault_of_last_motion(arm));
            if let Some(past) = self.job_store.interrupted(arm.key()) {
                arm.permits().disable();
                let next = match is_of_operator(&past) {
                    _ if !past.is_resumable() => format!(
                        "motion is disabled until an operator enables it; {}",
                        namesake::PAPER_UNKNOWN
                    ),
                    _ if !past.is_unfinished() => {
                        "motion is disabled until an operator enables it".to_owned()
                    }
                    false => format!(
                        "motion is disabled until an operator enables it; then `{}` draws the rest",
                        self.resume_call(&arm.name, &past.scene)
                    ),
                    true => {
                        "motion is disabled; `steadyhand draw --resume` asks a person, then draws the rest"
                            .to_owned()
                    }
                };
                let message = format!(
                    "{} of arm {} was interrupted: {}{}; {next}{}",
                    past.id,
                    arm.name,
                    past.summary(),
                    pen_clause(self, arm),
                    self.next_pen_text(arm, &past)
                );
                messages.push(self.commands_for_arm(arm, &message));
            }
        }
        messages
    }

    /// Latches a fault if the pen of an arm on a port may be on the paper after a motion that broke or was stopped: the latch
    /// itself ended with the last process. Returns a message about it. What a crash left is resumed without a reset.
    fn fault_of_last_motion(&self, arm: &AttachedArm) -> Option<String> {
        let past = self.broken_pen_down(arm)?;
        let (id, how) = (&past.id, past.state_text());
        let reason = format!("{id} {how}, and the pen may still stand on the paper");
        arm.permits().latch(StopLatch::Fault(reason));
        let paper = pen_clause(self, arm);
        Some(format!("{id} of arm {} {how}{paper}", arm.name))
    }

    /// Returns the last motion of an arm on a port if it broke or was stopped, and may have left the pen on the paper.
    fn broken_pen_down(&self, arm: &AttachedArm) -> Option<PastJob> {
        let past = self.job_store.pen_left_down(arm.key());
        past.filter(|past| arm.workcell.is_none() && !past.interrupted)
    }

    /// Returns the commands, without the program's name, by which an operator brings to rest what waits for that when the next
    /// process with this node's state starts: an arm whose pen may stand on the paper, or that an emergency stop holds.
    #[must_use]
    pub fn resets_at_next_start(&self) -> Vec<String> {
        let waiting = self.arms.iter().filter_map(|arm| {
            let latched = arm.permits().latched();
            let is_emergency = matches!(latched, Some(StopLatch::Emergency(_)));
            let past = match is_emergency {
                true => self.job_store.last_moved(arm.key()),
                false => self.broken_pen_down(arm),
            };
            past.map(|past| reset::commands_at_next_start(self, arm, &past))
        });
        waiting.flatten().collect()
    }

    /// Names the pen or the pause for which a resumed drawing waits for a person; empty if there is neither.
    fn next_pen_text(&self, arm: &AttachedArm, past: &PastJob) -> String {
        if let Some(pause) = past.next_pause() {
            return format!(
                " and first waits for a person: the drawing pauses here ({})",
                pause.asked_by
            );
        }
        let scene = same_scene(self, arm, past).ok();
        let by_hand = scene.filter(|scene| scene.holder.is_by_hand());
        let awaited = by_hand.zip(past.next_pen());
        awaited.map_or_else(String::new, |(scene, pen)| {
            format!(" and asks for {}", scene.pen_words(pen))
        })
    }

    /// Returns whether an operator's word keeps an arm from moving.
    #[must_use]
    pub fn has_orders(&self) -> bool {
        let mut arms = self.arms.iter();
        arms.any(|arm| !arm.permits().orders().is_empty())
    }

    /// Returns whether the last process ended while one of these arms moved, and the job has not been resumed.
    #[must_use]
    pub fn was_cut_short(&self) -> bool {
        let is_interrupted =
            |arm: &Arc<AttachedArm>| self.job_store.interrupted(arm.key()).is_some();
        !self.job_store.damaged().is_empty() || self.arms.iter().any(is_interrupted)
    }
}

/// Returns a job as data.
#[must_use]
pub fn record(past: &PastJob) -> Value {
    json!({
        "id": past.id,
        "tool": past.tool,
        "arm": past.arm,
        "scene": past.scene,
        "overlay": past.overlay,
        "drawing": past.drawing,
        "revision": past.revision,
        "caller": past.caller,
        "received": past.received,
        "understood": past.understood,
        "repairs": past.repairs,
        "resumes": past.resumes,
        "plan_hash": past.plan_hash,
        "strokes": past.strokes.len(),
        "total_mm": rounded(past.total_mm()),
        "drawn_mm": rounded(past.drawn.mm),
        "strokes_done": past.drawn.strokes,
        "planned_s": rounded(past.duration_s),
        "accepted_ms": past.accepted_ms,
        "ended_ms": past.ended_ms,
        "state": past.reported_state(),
        "message": past.message,
        "figures": past.figures,
        "interrupted": past.interrupted,
        "approved": past.approved,
        "pens_confirmed": past.pens_confirmed,
        "pens_measured": past.pens_measured,
        "depth_trims": past.depth_trims,
        "pauses_ended": past.pauses_ended,
        "settled_by": past.settled,
    })
}
