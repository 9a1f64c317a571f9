//! Writes calls to the audit log and detects a caller that repeats the same refused call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::dispatch::ToolRequest;
use super::reply::Reply;
use super::{AttachedArm, Node, journal_entries};
use base::lock::MutexExt;
use permit::ActorRank;

/// Arguments longer than this are cut in the audit log; a job's journal has more of them.
const ARGUMENTS_CHARS_MAX: usize = 500;

/// Refusals of one kind in a row after which the caller is sent to the operator.
const SAME_REFUSALS: u32 = 3;

/// Noted at the start if the previous process was killed or lost its power.
const UNCLOSED: &str = "the previous process did not close this log. Records from its last second may be missing, but only of calls that moved nothing";

/// Callers whose refusals are remembered.
const CALLERS_MAX: usize = 64;

/// A call, before it is carried out.
pub(super) struct AuditedCall {
    caller: String,
    who: ActorRank,
    tool: String,
    arguments: String,
}

impl AuditedCall {
    pub(super) fn from_request(request: &ToolRequest) -> Self {
        let arguments = journal_entries::arguments_text(&request.arguments);
        Self {
            caller: request.caller.clone(),
            who: request.who,
            tool: request.tool.chars().take(80).collect(),
            arguments: arguments.chars().take(ARGUMENTS_CHARS_MAX).collect(),
        }
    }

    /// Returns the call with its outcome, as the audit log keeps it.
    pub(super) fn entry_text(&self, reply: &Reply) -> String {
        let job = reply.structured.get("job").and_then(|job| job.get("id"));
        json!({
            "by": self.who,
            "caller": self.caller,
            "tool": self.tool,
            "arguments": self.arguments,
            "success": !reply.is_error,
            "not_understood": left_over_keys(reply),
            "code": reply.structured.get("code"),
            "job": job,
            "message": reply.text.lines().next(),
        })
        .to_string()
    }
}

/// Returns the keys of a call that no parameter has; `None` if there are none.
fn left_over_keys(reply: &Reply) -> Option<Vec<&str>> {
    let repairs = reply.structured.get("repairs").and_then(Value::as_array);
    let is_left = |repair: &&Value| {
        repair
            .get("code")
            .is_some_and(|code| code == "not_understood")
    };
    let fields = repairs.into_iter().flatten().filter(is_left);
    let fields = fields.filter_map(|repair| repair.get("field")?.as_str());
    let keys: Vec<&str> = fields.filter(|field| *field != "arguments").collect();
    (!keys.is_empty()).then_some(keys)
}

/// The last refusal of each caller, and how often in a row it was the same.
#[derive(Default)]
pub(super) struct RefusalHistory(Mutex<VecDeque<(String, String, u32)>>);

impl RefusalHistory {
    /// Advises a caller to ask the operator after several refusals with the same code in a row. Refusals by the rate limit do not count.
    pub(super) fn judge(&self, call: &AuditedCall, reply: Reply) -> Reply {
        let code = reply
            .code()
            .filter(|code| reply.is_error && *code != super::access::RATE);
        let kind = code.map(|code| format!("`{}` was refused with `{code}`", call.tool));
        let mut history = self.0.locked();
        let mut callers = history.iter();
        let index = callers.position(|(caller, _, _)| *caller == call.caller);
        let previous = index.and_then(|index| history.remove(index));
        let Some(kind) = kind else {
            return reply;
        };
        let times = match previous {
            Some((_, last, times)) if last == kind => times.saturating_add(1),
            _ => 1,
        };
        history.push_back((call.caller.clone(), kind.clone(), times));
        if history.len() > CALLERS_MAX {
            history.pop_front();
        }
        if times < SAME_REFUSALS {
            return reply;
        }
        reply.hint(&format!(
            "{kind} {times} times in a row. If the next correction does not help, ask the operator"
        ))
    }
}

impl Node {
    /// Records every stop in the audit log once the stop has completed, regardless of its source. No stop waits for
    /// this. Must be called on a runtime.
    pub fn note_stops(self: &Arc<Self>) {
        for arm in &self.arms {
            let (node, arm) = (Arc::downgrade(self), Arc::clone(arm));
            let mut snapshots = arm.motion.watch();
            base::task::spawn(async move {
                let mut noted = 0;
                while let Ok(snapshot) = snapshots.wait_for(|now| now.stop_serial > noted).await {
                    noted = snapshot.stop_serial;
                    drop(snapshot);
                    let Some(node) = node.upgrade() else { return };
                    node.note_last_stop(&arm);
                }
            });
        }
    }

    /// Records the last stop of each arm, if that was not done yet, and then the end of this process.
    pub fn note_end(&self, text: impl Into<String>) {
        self.arms.iter().for_each(|arm| self.note_last_stop(arm));
        self.audit.note_end(text);
    }

    fn note_last_stop(&self, arm: &AttachedArm) {
        // Locked until the stop is noted, so that a caller that sees it done finds it in the log.
        let mut noted = arm.stops_noted.locked();
        let snapshot = arm.motion.snapshot();
        if snapshot.stop_serial > *noted {
            *noted = snapshot.stop_serial;
            let (count, report) = (snapshot.stop_serial, &snapshot.stop);
            let cause = arm.last_stop_cause();
            let text = json!({
                "arm": arm.name,
                "count": count,
                "cause": cause.as_ref().map(|cause| &cause.cause),
                "caller": cause.as_ref().and_then(|cause| cause.caller.as_ref()),
                "report": report,
            });
            self.audit.note("stop", text.to_string());
            if let Some(cause) = cause {
                tracing::info!(arm = arm.name, "stopped: {cause}");
            }
        }
    }

    /// Records the node's configuration at start. A different hash means a different configuration.
    pub fn note_start(&self) {
        let file = serde_json::to_string(&self.file).unwrap_or_default();
        let arms = self.arms.iter().map(|arm| {
            let enabled = arm.permits().enabled_text(arm.motion.clock().now());
            json!({"name": arm.name, "arm": arm.title(), "enabled": enabled})
        });
        let arms: Vec<Value> = arms.collect();
        let mut text = json!({
            "node": self.file.name,
            "version": env!("CARGO_PKG_VERSION"),
            "arms": arms,
            "configuration": file,
        });
        if let Some(text) = text.as_object_mut().filter(|_| !self.audit.was_closed()) {
            text.insert("gap".to_owned(), UNCLOSED.into());
        }
        self.audit.note("start", text.to_string());
    }
}
