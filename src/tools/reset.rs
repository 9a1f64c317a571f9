//! `reset`: lifts the tip, goes to the ready pose and to rest, and ends an ordinary stop.

use std::sync::Arc;

use super::dispatch::ToolContext;
use super::motion_job::{self, JobContext, JobError};
use super::reply::{Reply, refused};
use super::{AttachedArm, Node};
use permit::{ActorRank, StopLatch};
use scene::Scene;

pub(super) async fn call(ctx: &ToolContext<'_>) -> Result<Reply, Box<Reply>> {
    let arm = ctx.arm()?;
    let scene = scene(ctx)?;
    let who = ctx.request.who;
    let call = ctx.job("reset", arm, &scene, true);
    tokio::select! {
        () = arm.wait_for_stopped_job() => {}
        () = ctx.watch.cancelled.cancelled() => {
            let reason = "the call was given up before the arm stood; nothing moved for it";
            return Err(Reply::failed(reason).boxed());
        }
    }
    let last = Arc::clone(&scene);
    let work = move |ctx| run(ctx, last, who);
    let started = motion_job::start_job(ctx.node, arm, call, work);
    let reply = started.wait_for_end(ctx.node, arm, ctx.watch).await;
    let steps = arm.motion.snapshot().recovery;
    let reply = match reply.is_error && !steps.is_empty() {
        true => reply
            .with("steps", steps)
            .hint("these steps are an operator's, one after the other"),
        false => reply,
    };
    let mut understood = ctx.reading.understood.clone();
    understood.insert("scene".to_owned(), scene.name.as_str().into());
    Ok(reply.with("understood", understood))
}

/// Returns the commands, without the program's name, by which an operator brings an arm to rest that last moved in a scene.
pub(super) fn commands(arm: &AttachedArm, scene: &str, overlay: Option<&str>) -> Vec<String> {
    let (permits, now) = (arm.permits(), arm.motion.clock().now());
    let clear = matches!(permits.latched(), Some(StopLatch::Emergency(_)));
    let clear = clear.then(|| "clear".to_owned());
    let is_enabled = permits.is_enabled_by_name(scene, overlay, now);
    let enable = (!is_enabled).then(|| permit::enabling_command(scene, overlay));
    // A node that no longer knows the scene needs its name.
    let reset = match arm.last_scene() {
        Some(_) => "reset".to_owned(),
        None => format!("reset --scene {scene}"),
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
    let past = node.job_store.pen_left_down(&arm.name)?;
    let commands = commands(arm, &past.scene, past.overlay());
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
        (Some(last), Some(requested)) if last.name != requested => Err(refused(
            "other_scene",
            format!(
                "the arm last moved in scene `{}`, so only that scene says which way is up; call reset without `scene`",
                last.name
            ),
        )),
        (Some(last), _) => Ok(last),
        (None, _) if ctx.request.who == ActorRank::Operator => ctx.scene(arm),
        (None, _) => Err(refused(
            "operator_must_reset",
            "this arm has not moved since the node started, so which way is up is unknown; an operator must reset it: `steadyhand reset --scene NAME`",
        )),
    }
}

async fn run(ctx: JobContext, scene: Arc<Scene>, who: ActorRank) -> Result<Reply, JobError> {
    let permits = Arc::clone(ctx.arm.permits());
    let now = ctx.arm.motion.clock().now();
    let permit = permits.ask_reset(&scene, who, now);
    let permit = permit.map_err(JobError::Denied)?;
    let latch_before = permits.latched();
    let plan = ctx.plan(&scene, motion_job::plan_to_rest).await?;
    let done = ctx.run(&scene, permit.clone(), &plan).await?;
    if !permits.unlatch(&permit) {
        return Err(JobError::Overtaken);
    }
    let ended = match latch_before {
        Some(StopLatch::Stopped(_)) => "; the stop is over",
        Some(StopLatch::Fault(_) | StopLatch::Hot(_)) => "; the fault is over",
        _ => "",
    };
    Ok(Reply::done(format!(
        "the pen is up and the arm is at rest, read back within {:.1}°{ended}",
        done.off_rad.to_degrees()
    ))
    .with("state", "rest")
    .with("arm_time_s", super::stroke::rounded(done.arm_time_s)))
}
