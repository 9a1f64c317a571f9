//! `reset`: lifts the tip, goes to the ready pose and to rest, and ends an ordinary stop.

use std::sync::Arc;

use super::dispatch::ToolContext;
use super::motion_job::{self, JobContext, JobError};
use super::reply::{Reply, refused};
use super::sense::latch_text;
use super::which_arm::arm_option;
use super::{AttachedArm, Node, job_motion, planner_thread};
use base::wording::seconds;
use job::PastJob;
use permit::{ActorRank, StopLatch};
use scene::{DEFAULT_SCENE, Scene};
use serde_json::json;

pub(super) async fn call(ctx: &ToolContext<'_>) -> Result<Reply, Box<Reply>> {
    let arm = ctx.arm()?;
    let scene = scene(ctx)?;
    let who = ctx.request.who;
    if ctx.is("dry_run") {
        return preview(ctx, arm, &scene).await;
    }
    let call = ctx.job("reset", arm, &scene, true)?;
    tokio::select! {
        () = arm.wait_for_stopped_job() => {}
        () = ctx.watch.cancelled.cancelled() => {
            let reason = "the call was given up before the arm stood still; nothing moved for it";
            return Err(Reply::failed(reason).boxed());
        }
    }
    let last = Arc::clone(&scene);
    let work = move |ctx| run(ctx, last, who);
    let started = motion_job::start_job(ctx.node, arm, call, work).await;
    let reply = started.wait_for_end(ctx.node, arm, ctx.watch).await;
    let steps = arm.motion.snapshot().recovery;
    let reply = match reply.is_error && !steps.is_empty() {
        true => reply
            .with("steps", steps)
            .hint("an operator does these steps in order"),
        false => reply,
    };
    let reply = match reply.code() == Some("needs_enabling") {
        true => reply.with_more_words(&format!(
            "arm {} last moved in scene `{}`, so only that scene says which way is up",
            arm.name, scene.name
        )),
        false => reply,
    };
    let mut understood = ctx.reading.understood.clone();
    understood.insert("scene".to_owned(), scene.name.as_str().into());
    let reply = reply.with("understood", understood);
    let others = ctx.node.waiting_for_reset(Some(arm));
    if reply.is_error || others.is_empty() {
        return Ok(reply);
    }
    let others = others.iter();
    let others: Vec<String> = others.map(|other| other.line(who)).collect();
    Ok(reply.with_more_words(&others.join("; ")))
}

/// An arm that a reset would bring to rest.
struct WaitingArm<'a> {
    arm: &'a Arc<AttachedArm>,
    /// Why it needs a reset; `None` if it only stands away from rest.
    need: Option<&'static str>,
}

impl WaitingArm<'_> {
    /// Returns what it waits for, with the call or the command that ends that.
    fn line(&self, who: ActorRank) -> String {
        let name = &self.arm.name;
        let next = match who {
            ActorRank::Operator => format!("`steadyhand reset {}`", arm_option(name)),
            ActorRank::Planner | ActorRank::Node => format!("reset {}", json!({ "arm": name })),
        };
        match self.need {
            Some(need) => format!("arm {name} needs its own reset ({need}): {next}"),
            None => format!("arm {name} is not at rest: {next} brings it there"),
        }
    }
}

impl Node {
    /// Returns the arms that need a reset or stand away from rest, without this one.
    fn waiting_for_reset(&self, without: Option<&Arc<AttachedArm>>) -> Vec<WaitingArm<'_>> {
        let is_other =
            |arm: &&Arc<AttachedArm>| without.is_none_or(|without| !Arc::ptr_eq(arm, without));
        let others = self.arms.iter().filter(is_other);
        let waiting = others.filter_map(|arm| {
            let need = self.need_of_reset(arm);
            (need.is_some() || is_away_from_rest(arm)).then_some(WaitingArm { arm, need })
        });
        waiting.collect()
    }

    /// Returns why an arm needs a reset, if it does.
    fn need_of_reset(&self, arm: &AttachedArm) -> Option<&'static str> {
        let is_down = || pen_text(self, arm).is_some();
        match arm.permits().latched() {
            Some(latch) => Some(latch_text(&latch)),
            None => is_down().then_some("its pen may still stand on the paper"),
        }
    }

    /// Returns the arm that a reset means which names none: the default arm, unless another one alone needs it.
    ///
    /// # Errors
    /// Several others need a reset, and the default arm does not.
    pub(super) fn arm_to_reset(
        &self,
        who: ActorRank,
    ) -> Result<Option<&Arc<AttachedArm>>, Box<Reply>> {
        let default = self.arm(None);
        let mut waiting = self.waiting_for_reset(None);
        // An arm that merely stands away from rest is not moved unasked.
        waiting.retain(|one| one.need.is_some());
        let is_default =
            |one: &WaitingArm<'_>| default.is_some_and(|default| Arc::ptr_eq(one.arm, default));
        match waiting.as_slice() {
            [] => Ok(default),
            all if all.iter().any(is_default) => Ok(default),
            [one] => Ok(Some(one.arm)),
            several => {
                let lines: Vec<String> = several.iter().map(|one| one.line(who)).collect();
                Err(refused(
                    "which_arm",
                    format!("this call does not name an arm, and {}", lines.join("; ")),
                ))
            }
        }
    }
}

/// Returns whether an arm that nothing moves was last measured away from the rest pose of its last scene.
fn is_away_from_rest(arm: &AttachedArm) -> bool {
    let snapshot = arm.motion.snapshot();
    let is_busy = arm.under_way().is_some() || snapshot.state.is_under_way();
    let has_moved = snapshot.measured.is_some() && arm.last_scene().is_some();
    has_moved && !is_busy && !arm.is_at_rest()
}

/// Returns the scene that an arm last moved in, and its overlay, if it must be enabled before a reset.
pub(super) fn scene_to_enable(arm: &AttachedArm) -> Option<(String, Option<String>)> {
    let scene = arm.last_scene()?;
    let (overlay, now) = (scene.overlay.clone(), arm.motion.clock().now());
    let permits = arm.permits();
    let is_enabled = permits.is_enabled_by_name(&scene.name, overlay.as_deref(), now);
    (!is_enabled).then(|| (scene.name.clone(), overlay))
}

/// Returns the commands, without the program's name, by which an operator brings an arm to rest that last moved in a scene.
pub(super) fn commands(
    node: &Node,
    arm: &AttachedArm,
    scene: &str,
    overlay: Option<&str>,
) -> Vec<String> {
    let now = arm.motion.clock().now();
    let is_enabled = arm.permits().is_enabled_by_name(scene, overlay, now);
    let enable = (!is_enabled).then(|| permit::enabling_command(scene, overlay));
    commands_with(node, arm, enable, scene)
}

/// Returns [`commands`] for the next process with this node's state, which keeps no permission.
pub(super) fn commands_at_next_start(
    node: &Node,
    arm: &AttachedArm,
    past: &PastJob,
) -> Vec<String> {
    let enable = permit::enabling_command(&past.scene, past.overlay());
    commands_with(node, arm, Some(enable), &past.scene)
}

/// Returns the commands that end a drawing's wait for a person, and then bring its arm to rest. That wait's end withdraws
/// permission, except for a simulated arm.
pub(super) fn commands_after_wait(node: &Node, arm: &AttachedArm, scene: &Scene) -> Vec<String> {
    let (name, overlay) = (&scene.name, scene.overlay.as_deref());
    let mut next = match arm.workcell {
        Some(_) => commands(node, arm, name, overlay),
        None => {
            let enable = permit::enabling_command(name, overlay);
            commands_with(node, arm, Some(enable), name)
        }
    };
    next.insert(0, "stop".to_owned());
    next
}

/// Returns these commands, with the one that enables motion if one is needed.
fn commands_with(
    node: &Node,
    arm: &AttachedArm,
    enable: Option<String>,
    scene: &str,
) -> Vec<String> {
    let option = node.arm_option(arm);
    let clear = matches!(arm.permits().latched(), Some(StopLatch::Emergency(_)));
    let clear = clear.then(|| "clear".to_owned());
    let enable = enable.map(|enable| enable + &option);
    // A node that no longer knows the scene needs its name.
    let reset = match arm.last_scene() {
        Some(_) => format!("reset{option}"),
        None => format!("reset --scene {scene}{option}"),
    };
    clear.into_iter().chain(enable).chain([reset]).collect()
}

/// Returns commands as they are typed, in backticks.
pub(super) fn as_typed(commands: &[String]) -> Vec<String> {
    let typed = commands.iter();
    typed
        .map(|command| format!("`steadyhand {command}`"))
        .collect()
}

/// Warns that the last motion of an arm on a port may have left its pen in the paper, and says how to lift it. A simulated arm
/// is back at rest after a restart.
pub(super) fn pen_text(node: &Node, arm: &AttachedArm) -> Option<String> {
    if arm.workcell.is_some() {
        return None;
    }
    let past = node.job_store.pen_left_down(arm.key())?;
    let commands = commands(node, arm, &past.scene, past.overlay());
    Some(format!(
        "its pen may still stand on the paper: {} lifts it",
        as_typed(&commands).join(", then ")
    ))
}

/// Returns [`pen_text`] as the rest of a sentence.
pub(super) fn pen_clause(node: &Node, arm: &AttachedArm) -> String {
    pen_text(node, arm).map_or_else(String::new, |text| format!("; {text}"))
}

/// Returns the scene last moved in: the tip is at its sheet, regardless of the caller's arguments.
fn scene(ctx: &ToolContext<'_>) -> Result<Arc<Scene>, Box<Reply>> {
    let arm = ctx.arm()?;
    let requested = ctx.text("scene");
    match (arm.last_scene(), requested) {
        (Some(last), Some(requested))
            if ![&*last.name, last.shared_name()].contains(&requested) =>
        {
            Err(refused(
                "other_scene",
                format!(
                    "the arm last moved in scene `{}`, so only that scene says which way is up. Next: leave out `scene`",
                    last.name
                ),
            ))
        }
        (Some(last), _) => Ok(last),
        (None, requested) if ctx.request.who == ActorRank::Operator => {
            if requested.is_some() {
                return ctx.scene(arm);
            }
            let (library, model) = (&ctx.node.scenes, &*arm.motion.arm().file.name);
            let scenes = library.scenes_for(&[model]);
            let name = DEFAULT_SCENE;
            if !scenes.iter().any(|own| own == name) {
                let why = format!("scene `{name}` is not for it");
                return Err(which_scene(&why, &scenes));
            }
            let (permits, now) = (arm.permits(), arm.motion.clock().now());
            if permits.any_enabled(now) && !permits.is_enabled_by_name(name, None, now) {
                let why = format!("motion is enabled for {}", permits.enabled_text(now));
                return Err(which_scene(&why, &scenes));
            }
            let scene = ctx.node.scene(arm, name, None);
            scene.map_err(|error| refused("scene", error))
        }
        (None, _) => Err(refused(
            "operator_must_reset",
            "this arm has not moved since the node started, so the node does not know which way is up. Next: an operator runs `steadyhand reset --scene NAME`",
        )),
    }
}

/// Refuses to guess the scene of an arm for which the default scene is not meant.
fn which_scene(why: &str, scenes: &[String]) -> Box<Reply> {
    refused(
        "scene",
        format!(
            "this arm has not moved since the node started, and {why}. Its scenes: {}. Next: name the scene in which it stands: `steadyhand reset --scene NAME`",
            scenes.join(", ")
        ),
    )
}

/// Shows the way to rest, without a motion.
async fn preview(
    ctx: &ToolContext<'_>,
    arm: &AttachedArm,
    scene: &Arc<Scene>,
) -> Result<Reply, Box<Reply>> {
    let start = job_motion::measurement(arm).map_err(|reason| refused("refused", reason))?;
    let (planned, poses) = (Arc::clone(scene), [scene.ready_rad, scene.rest_rad]);
    let plan = planner_thread::preview(arm, ctx.watch, move |watch| {
        plan::go_to(&planned, &start.position_rad, &poses, watch)
    });
    let plan = plan.await.map_err(|error| error.reply().1.boxed())?;
    let seconds_text = seconds(plan.report.duration_s);
    let end_deg = scene
        .rest_rad
        .iter()
        .map(|rad| super::stroke::rounded(rad.to_degrees()));
    Ok(Reply::done(format!(
        "The arm would lift the pen and go to the rest pose of scene {} in {seconds_text}.",
        scene.title()
    ))
    .with("moved", false)
    .with("arm_time_s", super::stroke::rounded(plan.report.duration_s))
    .with("end_deg", end_deg.collect::<Vec<f64>>())
    .with("arm", arm.title()))
}

async fn run(ctx: JobContext, scene: Arc<Scene>, who: ActorRank) -> Result<Reply, JobError> {
    let permits = Arc::clone(ctx.arm.permits());
    let now = ctx.arm.motion.clock().now();
    let permit = permits.ask_reset(&scene, who, now);
    let permit = permit.map_err(JobError::Denied)?;
    let latch_before = permits.latched();
    let plan = ctx.plan_to_rest(&scene).await?;
    let done = ctx.run(&scene, permit.clone(), &plan).await?;
    if !permits.unlatch(&permit) {
        return Err(JobError::Overtaken);
    }
    let ended = match latch_before {
        Some(StopLatch::Stopped(_)) => "; the stop is over",
        Some(StopLatch::Fault(_) | StopLatch::Hot(_)) => "; the fault is over",
        _ => "",
    };
    Ok(done.with_sags(
        Reply::done(format!(
            "the pen is up and the arm is at rest, measured within {:.1}° of its rest pose{ended}",
            done.off_rad.to_degrees()
        ))
        .with("state", "rest")
        .with("arm_time_s", super::stroke::rounded(done.arm_time_s)),
    ))
}
