//! A queue's requests and drawings, as calls to nodes, and the interpretation of their answers.

use std::time::Duration;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::draw_queue::{HandoutOutcome, NodeReport, ReportedDrawing};
use super::peer_list::own_report;
use super::{Fleet, FleetPeer, RemoteCallError, RemoteCallWatch, ToolAnswer, ToolEffect};
use call::{QueueTag, ReceivedArguments};

/// Time in which a node must answer a queue's request, or counts as unreachable: a third of a lease.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The role with which a queue calls.
const ROLE: &str = "planner";

/// Codes of refusals that concern the drawing: the same node would refuse it again.
const ABOUT_THE_DRAWING: [&str; 7] = [
    "arguments_refused",
    "design_refused",
    "gate_refused",
    "no_canvas",
    "no_design",
    "plan_refused",
    "scene",
];

/// Code of the refusal of a drawing that the node has begun already: its next report tells of it.
const BEGUN_BEFORE: &str = "queue_begun_before";

impl Fleet {
    /// Asks a node for its drawings of a batch, which also holds the batch there. A node that does not answer in time is
    /// unreachable.
    pub async fn ask_queue(&self, peer: &FleetPeer, tag: QueueTag) -> NodeReport {
        match self.ask_own_report(peer, tag).await {
            Ok(own) => node_report(&own),
            Err(error) => NodeReport::Unavailable(error.to_string()),
        }
    }

    /// Returns a node's report of itself and, under `queue`, of the drawings of queues.
    ///
    /// # Errors
    /// The reason why there is no report.
    pub async fn ask_own_report(
        &self,
        peer: &FleetPeer,
        tag: QueueTag,
    ) -> Result<Map<String, Value>, RemoteCallError> {
        let sending = self.queue_call(peer, "list_nodes", Map::new(), tag);
        let answer = timeout(ANSWER_WITHIN, sending).await;
        own_report(answer.map_err(|_| RemoteCallError::Silent(ANSWER_WITHIN))??)
    }

    /// Hands a drawing to a node: it plans the drawing and, if it can draw it, begins exactly that plan. `arguments` are those of
    /// `stroke`.
    pub async fn hand_out(
        &self,
        peer: &FleetPeer,
        tag: QueueTag,
        mut arguments: Map<String, Value>,
    ) -> HandoutOutcome {
        arguments.insert("dry_run".to_owned(), true.into());
        let planned = self.queue_call(peer, "stroke", arguments.clone(), tag.clone());
        let planned = match planned.await {
            Ok(planned) if planned.is_error => return refusal(&planned),
            Ok(planned) => planned,
            // A dry run moves nothing, whatever its outcome.
            Err(error) => return HandoutOutcome::NotNow(error.to_string()),
        };
        let Some(plan) = planned.structured.get("plan_hash") else {
            return HandoutOutcome::NotNow(
                "it cannot plan for this queue: its version is different".into(),
            );
        };
        arguments.remove("dry_run");
        arguments.insert("plan".to_owned(), plan.clone());
        match self.queue_call(peer, "stroke", arguments, tag).await {
            Ok(begun) if begun.is_error => refusal(&begun),
            Ok(begun) => HandoutOutcome::Taken(begun.text),
            Err(RemoteCallError::Refused(reason)) => HandoutOutcome::NotNow(reason),
            Err(error @ RemoteCallError::Ambiguous(_)) => HandoutOutcome::NotNow(error.to_string()),
            Err(error) => {
                tracing::warn!(
                    node = peer.name,
                    "a drawing was sent, but its answer was lost: {error}"
                );
                HandoutOutcome::Lost
            }
        }
    }

    async fn queue_call(
        &self,
        peer: &FleetPeer,
        tool: &str,
        arguments: Map<String, Value>,
        tag: QueueTag,
    ) -> Result<ToolAnswer, RemoteCallError> {
        let arguments = ReceivedArguments::Value(Value::Object(arguments));
        let caller = format!("queue {}", tag.batch);
        let mut call = self.own_call(peer, tool, arguments, caller);
        // Even with an operator's token, which would need no approval.
        call.hop.role = Some(ROLE.to_owned());
        call.hop.queue = Some(tag);
        // As a call that moves, it is never sent twice; the next request finds what was lost.
        let effect = ToolEffect::Moves;
        let watch = RemoteCallWatch::unobserved();
        self.forward(peer, call, effect, &watch).await
    }
}

/// Code of a drawing that was drawn, and whose pictures found no place on the disk.
const FILES_LOST: &str = "files_not_written";

fn refusal(answer: &ToolAnswer) -> HandoutOutcome {
    match answer.code() {
        Some(code) if ABOUT_THE_DRAWING.contains(&code) => {
            HandoutOutcome::CannotDraw(answer.text.clone())
        }
        // It was drawn, or begun: the node's next report says which.
        Some(BEGUN_BEFORE | FILES_LOST) => HandoutOutcome::Lost,
        _ => HandoutOutcome::NotNow(answer.text.clone()),
    }
}

/// Message about a node whose report cannot be read.
const ANOTHER_VERSION: &str = "it cannot take part in this queue: its version is different";

/// Reads a node's report of itself.
fn node_report(own: &Map<String, Value>) -> NodeReport {
    let Some(Value::Object(queue)) = own.get("queue") else {
        return NodeReport::Unavailable(ANOTHER_VERSION.to_owned());
    };
    if let Some(reason) = queue.get("refused").and_then(Value::as_str) {
        return NodeReport::Unavailable(reason.to_owned());
    }
    let as_u32 = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let drawings = queue.get("drawings").and_then(Value::as_array);
    let drawings = drawings.into_iter().flatten();
    let reported = |entry| ReportedDrawing::deserialize(entry).ok();
    let grant = queue.get("grant").and_then(Value::as_u64);
    let journals = queue.get("journals").and_then(Value::as_str);
    let (Some(grant), Some(journals)) = (grant, journals) else {
        return NodeReport::Unavailable(ANOTHER_VERSION.to_owned());
    };
    NodeReport::Held {
        grant,
        journals: journals.to_owned(),
        generation: queue.get("generation").and_then(as_u32).unwrap_or(0),
        drawings: drawings.filter_map(reported).collect(),
        standing: standing(own),
    }
}

/// Returns whether a node's arm is free to draw, or the reason why not.
fn standing(own: &Map<String, Value>) -> Result<(), String> {
    let arm = own.get("arms").and_then(|arms| arms.get(0));
    let arm = arm.ok_or("it has no arm")?;
    let text = |path: &str| arm.pointer(path).and_then(Value::as_str);
    if let Some(job) = text("/job/id") {
        return Err(format!("its arm is busy with {job}"));
    }
    if let Some(latch) = text("/latched") {
        return Err(format!("{latch}: a person must end this at that node"));
    }
    if let (Some(job), Some(left)) = (text("/unfinished/job"), text("/unfinished/words")) {
        return Err(format!(
            "{job} is unfinished there ({left}): a person must resume it"
        ));
    }
    match arm.get("motion_enabled") == Some(&json!(true)) {
        true => Ok(()),
        false => {
            Err("motion is not enabled there: a person must run `steadyhand enable`".to_owned())
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
mod tests {
    use super::*;

    fn own(arm: &Value, queue: &Value) -> Map<String, Value> {
        Map::from_iter([
            ("arms".to_owned(), json!([arm])),
            ("queue".to_owned(), queue.clone()),
        ])
    }

    #[test]
    fn a_report_that_cannot_be_read_does_not_permit_handing_out() {
        let ready = json!({"motion_enabled": true, "job": null});
        for odd in [
            json!(null),
            json!([]),
            json!({"drawings": []}),
            json!({"drawings": [], "grant": 7}),
            json!({"refused": "queue x hands this batch out"}),
        ] {
            let report = node_report(&own(&ready, &odd));
            assert!(matches!(report, NodeReport::Unavailable(_)), "{odd}");
        }
        let queue = json!({"drawings": [], "grant": 7, "journals": "5f2c"});
        let held = node_report(&own(&ready, &queue));
        let NodeReport::Held {
            grant, journals, ..
        } = held
        else {
            panic!("{held:?}");
        };
        assert_eq!((grant, journals.as_str()), (7, "5f2c"));
    }

    #[test]
    fn an_arm_is_free_only_where_nothing_stands_in_the_way() {
        let free =
            json!({"motion_enabled": true, "job": null, "latched": null, "unfinished": null});
        assert_eq!(standing(&own(&free, &json!(null))), Ok(()));
        for (field, value, expected) in [
            ("motion_enabled", json!(false), "not enabled"),
            ("job", json!({"id": "job-3"}), "busy with job-3"),
            ("latched", json!("a stop"), "a stop"),
            (
                "unfinished",
                json!({"job": "job-2", "words": "1 of 3"}),
                "job-2 is unfinished",
            ),
        ] {
            let mut arm = free.clone();
            arm[field] = value;
            let reason = standing(&own(&arm, &json!(null))).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
        assert!(standing(&Map::new()).is_err());
    }
}
