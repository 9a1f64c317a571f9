//! Recognises a drawing that its caller asks for again moments after it was drawn, however the call is spelled, and also where an
//! earlier process of this node drew it.

use serde_json::{Map, Value};

use super::AttachedArm;
use super::dispatch::ToolContext;
use super::job_board::{REMEMBERED, done_before};
use super::motion_job::{DONE_BEFORE, MotionJobRequest};
use super::reply::Reply;
use base::clock::calendar_ms;
use call::{IN_PROCESS, is_same_caller};
use job::{JournalDrawing, PastJob};

/// Returns the answer to a call whose drawing was the arm's last motion, moments ago; `None` if it is to be drawn, or is being
/// drawn. What was refused in between, and a node that parked the arm and was started again, change nothing.
pub(super) async fn answer(
    ctx: &ToolContext<'_>,
    arm: &AttachedArm,
    call: &MotionJobRequest,
) -> Option<Reply> {
    let is_own_command = call.accepted.caller == IN_PROCESS;
    if call.again || is_own_command || arm.board.under_way().is_some() {
        return None;
    }
    let last = ctx.node.job_store.last_asked_motion(arm.key());
    let past = last.filter(|past| is_same_drawing(past, call) && is_recent(past))?;
    if let Some((_, job)) = ctx.node.board_job(&past.id) {
        return Some(job.outcome.done_before(DONE_BEFORE).await);
    }
    Some(done_before(kept_answer(&past), DONE_BEFORE))
}

/// Returns whether a job drew what a call asks for: the same caller, revision of the scene, design and plan.
fn is_same_drawing(past: &PastJob, call: &MotionJobRequest) -> bool {
    let accepted = &call.accepted;
    let design_hash = accepted.drawing.as_ref().map(JournalDrawing::hash_hex);
    let is_plan = |named: &String| drawn_plan(past).is_some_and(|drawn| drawn == *named);
    past.tool == accepted.tool
        && past.state == "reached"
        && past.revision == accepted.revision
        && past.design_hash == design_hash.unwrap_or_default()
        && past.resumes.is_empty()
        && is_same_caller(&past.caller, &accepted.caller)
        && call.key.plan.as_ref().is_none_or(is_plan)
}

/// Returns whether a job ended so recently that the same call is not carried out again. The calendar may have been set back a
/// little meanwhile.
fn is_recent(past: &PastJob) -> bool {
    let age_ms = calendar_ms().abs_diff(past.ended_ms);
    u128::from(age_ms) < REMEMBERED.as_millis()
}

/// Returns the hash of the plan that a job drew, all parts of it together.
fn drawn_plan(past: &PastJob) -> Option<String> {
    let hash = figures(past).remove("plan_hash")?;
    hash.as_str().map(str::to_owned)
}

/// Returns the answer that a job's journal keeps; the pictures are named in it.
fn kept_answer(past: &PastJob) -> Reply {
    let structured = figures(past);
    let message = structured.get("message").and_then(Value::as_str);
    Reply {
        text: message.unwrap_or(&past.message).to_owned(),
        structured,
        ..Reply::default()
    }
}

fn figures(past: &PastJob) -> Map<String, Value> {
    serde_json::from_str(&past.figures).unwrap_or_default()
}
