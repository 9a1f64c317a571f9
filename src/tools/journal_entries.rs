//! Writes a tool's entries to the job's journal, off the runtime's threads because the disk may be slow.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::motion_job::JobError;
use super::reply::Reply;
use super::{AttachedArm, Node, job_scene};
use args::ReceivedArguments;
use job::{
    AcceptedJob, JobJournal, JournalDrawing, JournalOutcome, TipPlace, UnrecordedError,
    has_come_to_its_end,
};

/// Kind of the audit log's record of a job that begins.
const MOTION: &str = "motion";

/// Reason why a job does not begin: nothing moves that is not recorded.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnrecordedJobError {
    #[error("the journal cannot be written, so nothing may move: {0}")]
    Journal(String),
    #[error("the audit log cannot be written, so nothing may move: {0}")]
    Audit(#[from] UnrecordedError),
}

/// Begins a job's journal, after its record in the audit log, which is signed and on the disk before anything moves.
pub(super) async fn begin(
    node: &Arc<Node>,
    mut accepted: AcceptedJob,
) -> Result<Arc<JobJournal>, UnrecordedJobError> {
    if let Some(damaged) = node.job_store.damaged().first() {
        return Err(UnrecordedJobError::Journal(damaged.clone()));
    }
    let node = Arc::clone(node);
    let begun = tokio::task::spawn_blocking(move || {
        if accepted.drawing.is_none() {
            accepted.drawing = job_scene::drawing_of_last_job(&node, &accepted);
        }
        node.audit.note_durably(MOTION, begin_entry(&accepted))?;
        let begun = node.job_store.begin(&accepted);
        begun.map_err(|error| UnrecordedJobError::Journal(error.to_string()))
    });
    let failed = |_| Err(UnrecordedJobError::Journal("its thread failed".to_owned()));
    begun.await.unwrap_or_else(failed).map(Arc::new)
}

/// Returns the beginning of a job, as the audit log keeps it.
fn begin_entry(accepted: &AcceptedJob) -> String {
    json!({
        "job": accepted.id,
        "caller": accepted.caller,
        "tool": accepted.tool,
        "arm": accepted.arm,
        "on_port": accepted.is_on_port,
        "scene": accepted.scene,
        "revision": accepted.revision,
        "design": accepted.drawing.as_ref().map(design_entry),
    })
    .to_string()
}

/// Returns a job that the audit log says was begun.
pub(super) fn begun_job(state: &Path, id: &str) -> Option<AcceptedJob> {
    let mut found = None;
    job::visit_audit(state, MOTION, |text| {
        let entry: Value = serde_json::from_str(text).unwrap_or_default();
        let text = |key: &str| entry.get(key)?.as_str().map(str::to_owned);
        if found.is_none() && text("job").as_deref() == Some(id) {
            let field = |key: &str| text(key).unwrap_or_default();
            found = Some(AcceptedJob {
                id: id.to_owned(),
                tool: field("tool"),
                arm: field("arm"),
                // A record of an older node, which does not say, counts as one of the arm on the port.
                is_on_port: entry.get("on_port") != Some(&Value::Bool(false)),
                scene: field("scene"),
                revision: field("revision"),
                caller: field("caller"),
                ..AcceptedJob::default()
            });
        }
    });
    found
}

/// Returns the design that came with a call, as the audit log keeps it: its hash, its length, and the words of a text.
fn design_entry(drawing: &JournalDrawing) -> Value {
    json!({
        "blake3": drawing.hash_hex(),
        "bytes": drawing.design.len(),
        "text": drawing.words,
    })
}

/// Ends a job's journal with its answer, and keeps its pictures next to it.
pub(super) async fn end(
    node: &Arc<Node>,
    entry: &Arc<JobJournal>,
    state: &'static str,
    reply: &Reply,
) {
    let (node, entry, reply) = (Arc::clone(node), Arc::clone(entry), reply.clone());
    let ended = tokio::task::spawn_blocking(move || {
        for (index, png) in reply.pngs().enumerate() {
            let path = entry.folder().join(format!("picture-{}.png", index + 1));
            if let Err(error) = std::fs::write(&path, png) {
                tracing::warn!("cannot write {}: {error}", path.display());
            }
        }
        let figures = serde_json::to_string(&reply.structured).unwrap_or_default();
        let message = reply.text.lines().next().unwrap_or_default();
        let tip = tip_at_end(&node, &entry, state, &reply);
        if let Err(error) = entry.ended(state, message, &figures, tip) {
            tracing::error!(
                "the end of {} could not be written to its journal: {error}",
                entry.id()
            );
        }
        if let Some(recorder) = &node.job_recorder {
            recorder.finish(entry.id(), state, message);
        }
        // Last, because it counts what the job takes on the disk.
        node.job_store.ended_with(&entry);
    });
    if ended.await.is_err() {
        tracing::error!("the thread that writes the journal failed");
    }
}

/// Refuses to report a motion whose journal could not be written, during the motion or, where it came
/// to its end, at that end.
pub(super) fn check_journalled(
    journalled: JournalOutcome,
    is_reached: bool,
) -> Result<(), JobError> {
    match (journalled.failure, journalled.end_failure) {
        (Some(reason), _) | (_, Some(reason)) if is_reached => {
            Err(JobError::EndNotJournalled(reason))
        }
        (Some(reason), _) => Err(JobError::Journal(reason)),
        (None, _) => Ok(()),
    }
}

/// Oldest reading of an arm that stands; an older one does not say where the arm is.
const READ_WITHIN_S: f64 = 0.1;

/// Returns where the tip of a job's arm is at its end; `None` for a job that did not move it.
fn tip_at_end(node: &Node, entry: &JobJournal, state: &str, reply: &Reply) -> Option<TipPlace> {
    let past = entry.past();
    let arm = node.arm(Some(&past.arm))?;
    let has_moved = past.moved || arm.board.job().is_some_and(|job| job.has_moved());
    match state {
        _ if !has_moved => None,
        // Plans end off the sheet, but for small steps to it.
        _ if has_come_to_its_end(state) => Some(read_tip(arm, reply).unwrap_or(TipPlace::Off)),
        _ => Some(read_tip(arm, reply).unwrap_or(TipPlace::Unread)),
    }
}

fn read_tip(arm: &AttachedArm, reply: &Reply) -> Option<TipPlace> {
    let measured = arm.motion.snapshot().measured?;
    let age_s = arm.motion.clock().now().seconds_since(measured.at);
    // A stop is called verified only where its standstill was read back.
    let stop = reply.structured.get("stop");
    let is_verified = stop.and_then(|stop| stop.get("verified")) == Some(&Value::Bool(true));
    if !is_verified && age_s > READ_WITHIN_S {
        return None;
    }
    let scene = arm.last_scene()?;
    let [width, height] = scene.surface.size_mm();
    let hand = scene.arm.chain.forward(&measured.position_rad);
    let is_at_sheet = scene.pens.iter().any(|pen| {
        let projection = scene.surface.project(&(hand * pen.tip_m));
        let [x, y] = projection.at_mm;
        let is_over = (0.0..=width).contains(&x) && (0.0..=height).contains(&y);
        is_over && projection.height_mm < scene.heights.lift_least_mm
    });
    Some(match is_at_sheet {
        true => TipPlace::AtSheet,
        false => TipPlace::Off,
    })
}

/// Returns received arguments as text.
pub(super) fn arguments_text(received: &ReceivedArguments) -> String {
    match received {
        ReceivedArguments::Absent => String::new(),
        ReceivedArguments::Value(value) => value.to_string(),
        ReceivedArguments::Text(text) => text.clone(),
    }
}
