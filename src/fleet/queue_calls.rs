//! A queue's questions and drawings, as calls to nodes, and what their answers say.

use std::time::Duration;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::draw_queue::{HandoutOutcome, NodeReport, ReportedDrawing};
use super::peer_list::own_report;
use super::{Fleet, FleetPeer, RemoteCallError, RemoteCallWatch, ToolAnswer, ToolEffect};
use call::{QueueTag, ReceivedArguments};

/// A node that has not answered a queue's question by then counts as out of reach: a third of what a lease lasts.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The role in which a queue calls.
const ROLE: &str = "planner";

/// Codes of refusals that are about the drawing: the same node would refuse it again.
const ABOUT_THE_DRAWING: [&str; 7] = [
    "arguments_refused",
    "design_refused",
    "gate_refused",
    "no_canvas",
    "no_design",
    "plan_refused",
    "scene",
];

/// Code of the refusal of a drawing that the node has begun: it has to be asked for it.
const BEGUN_BEFORE: &str = "queue_begun_before";

impl Fleet {
    /// Asks a node what it has of a batch, and so holds the batch there. A node that does not answer in time is out of reach.
    pub async fn ask_queue(&self, peer: &FleetPeer, tag: QueueTag) -> NodeReport {
        match self.ask_own_report(peer, tag).await {
            Ok(own) => node_report(&own),
            Err(error) => NodeReport::Unheard(error.to_string()),
        }
    }

    /// Returns what a node says of itself and, under `queue`, of the drawings of queues.
    ///
    /// # Errors
    /// Why it said nothing.
    pub async fn ask_own_report(
        &self,
        peer: &FleetPeer,
        tag: QueueTag,
    ) -> Result<Map<String, Value>, RemoteCallError> {
        let asked = self.queue_call(peer, "list_nodes", Map::new(), tag);
        let answer = timeout(ANSWER_WITHIN, asked).await;
        own_report(answer.map_err(|_| RemoteCallError::Silent(ANSWER_WITHIN))??)
    }

    /// Hands a drawing to a node: has it planned there, and if the node can draw it, begun by exactly that plan. `arguments`
    /// are those of `stroke`.
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
            // A dry run moves nothing, whatever became of it.
            Err(error) => return HandoutOutcome::NotNow(error.to_string()),
        };
        let Some(plan) = planned.structured.get("plan_hash") else {
            return HandoutOutcome::NotNow("it planned nothing: it is of another version".into());
        };
        arguments.remove("dry_run");
        arguments.insert("plan".to_owned(), plan.clone());
        match self.queue_call(peer, "stroke", arguments, tag).await {
            Ok(begun) if begun.is_error => refusal(&begun),
            Ok(begun) => HandoutOutcome::Taken(begun.text),
            Err(RemoteCallError::Refused(why)) => HandoutOutcome::NotNow(why),
            Err(error @ RemoteCallError::Ambiguous(_)) => HandoutOutcome::NotNow(error.to_string()),
            Err(error) => {
                tracing::warn!(
                    node = peer.name,
                    "a drawing was handed out, and its answer is lost: {error}"
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
        let mut letter = self.own_call(peer, tool, arguments, caller);
        // Whatever the token may do: an operator's would need no approval.
        letter.hop.role = Some(ROLE.to_owned());
        letter.hop.queue = Some(tag);
        // Nothing of it is sent twice: what is lost is found again by the next question.
        let effect = ToolEffect::Moves;
        let watch = RemoteCallWatch::unobserved();
        self.forward(peer, letter, effect, &watch).await
    }
}

fn refusal(answer: &ToolAnswer) -> HandoutOutcome {
    match answer.code() {
        Some(code) if ABOUT_THE_DRAWING.contains(&code) => {
            HandoutOutcome::CannotDraw(answer.text.clone())
        }
        Some(BEGUN_BEFORE) => HandoutOutcome::Lost,
        _ => HandoutOutcome::NotNow(answer.text.clone()),
    }
}

/// Said of a node whose report cannot be read.
const ANOTHER_VERSION: &str = "it knows no queues of this kind: it is of another version";

/// Reads a node's report of itself.
fn node_report(own: &Map<String, Value>) -> NodeReport {
    let Some(Value::Object(queue)) = own.get("queue") else {
        return NodeReport::Unheard(ANOTHER_VERSION.to_owned());
    };
    if let Some(why) = queue.get("refused").and_then(Value::as_str) {
        return NodeReport::Unheard(why.to_owned());
    }
    let number = |of: &Value| of.as_u64().and_then(|number| u32::try_from(number).ok());
    let drawings = queue.get("drawings").and_then(Value::as_array);
    let drawings = drawings.into_iter().flatten();
    let reported = |told| ReportedDrawing::deserialize(told).ok();
    let grant = queue.get("grant").and_then(Value::as_u64);
    let journals = queue.get("journals").and_then(Value::as_str);
    let (Some(grant), Some(journals)) = (grant, journals) else {
        return NodeReport::Unheard(ANOTHER_VERSION.to_owned());
    };
    NodeReport::Held {
        grant,
        journals: journals.to_owned(),
        generation: queue.get("generation").and_then(number).unwrap_or(0),
        drawings: drawings.filter_map(reported).collect(),
        standing: standing(own),
    }
}

/// Says whether a node's arm is free to draw, or why not.
fn standing(own: &Map<String, Value>) -> Result<(), String> {
    let arm = own.get("arms").and_then(|arms| arms.get(0));
    let arm = arm.ok_or("it has no arm")?;
    let words = |path: &str| arm.pointer(path).and_then(Value::as_str);
    if let Some(job) = words("/job/id") {
        return Err(format!("its arm is busy with {job}"));
    }
    if let Some(why) = words("/latched") {
        return Err(format!("{why}; a person goes on there"));
    }
    if let (Some(job), Some(left)) = (words("/unfinished/job"), words("/unfinished/words")) {
        return Err(format!(
            "{job} is half done there ({left}); a person goes on with it"
        ));
    }
    match arm.get("motion_enabled") == Some(&json!(true)) {
        true => Ok(()),
        false => Err("motion is not enabled there: a person says `steadyhand enable`".to_owned()),
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
    fn a_report_that_cannot_be_read_is_no_leave_to_hand_out() {
        let ready = json!({"motion_enabled": true, "job": null});
        for odd in [
            json!(null),
            json!([]),
            json!({"drawings": []}),
            json!({"drawings": [], "grant": 7}),
            json!({"refused": "queue x hands this batch out"}),
        ] {
            let report = node_report(&own(&ready, &odd));
            assert!(matches!(report, NodeReport::Unheard(_)), "{odd}");
        }
        let told = json!({"drawings": [], "grant": 7, "journals": "5f2c"});
        let held = node_report(&own(&ready, &told));
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
        for (field, value, told) in [
            ("motion_enabled", json!(false), "not enabled"),
            ("job", json!({"id": "job-3"}), "busy with job-3"),
            ("latched", json!("a stop"), "a stop"),
            (
                "unfinished",
                json!({"job": "job-2", "words": "1 of 3"}),
                "job-2 is half done",
            ),
        ] {
            let mut arm = free.clone();
            arm[field] = value;
            let why = standing(&own(&arm, &json!(null))).unwrap_err();
            assert!(why.contains(told), "{why}");
        }
        assert!(standing(&Map::new()).is_err());
    }
}
