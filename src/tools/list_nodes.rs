//! `list_nodes`: this node with its state, and the last answers of the others. Does not wait for nodes that are down.

use serde_json::{Map, Value, json};

use super::dispatch::ToolContext;
use super::motion_job::refresh_card;
use super::reply::Reply;
use super::sense::{latch_text, state_name, state_text};
use super::stroke::rounded;
use super::{AttachedArm, Node};
use base::clock::calendar_ms;
use base::wording::count;
use fleet::{ClockOffset, PeerPresence, PeerSighting};

pub(super) async fn call(ctx: &ToolContext<'_>) -> Reply {
    let node = ctx.node;
    let mut nodes = vec![own_json(node)];
    if let (Some(tag), Some(Value::Object(own))) = (ctx.queue(), nodes.first_mut()) {
        own.insert("queue".to_owned(), node.queue_report(tag));
    }
    // A node that passed the call on asks the others itself.
    if let Some(fleet) = node.fleet.as_ref().filter(|_| ctx.request.hop.is_none()) {
        nodes.extend(fleet.list().await.into_iter().map(peer_json));
    }
    let names: Vec<String> = nodes.iter().filter_map(display_name).collect();
    let lines: Vec<String> = nodes.iter().map(node_text).collect();
    let message = format!("{}: {}", count(nodes.len(), "node"), names.join(", "));
    let mut reply = Reply::done(message).with_value("nodes", Value::Array(nodes));
    reply.text = lines.join("\n");
    reply
}

/// Describes a node for a client that reads only text.
fn node_text(node: &Value) -> String {
    let text = |of: &Value, field: &str| of.get(field)?.as_str().map(str::to_owned);
    let list = |field: &str| node.get(field).and_then(Value::as_array);
    let has_several = list("arms").is_some_and(|arms| arms.len() > 1);
    let arms = list("arms").into_iter().flatten().map(|arm| {
        let [title, state] = ["arm", "state"].map(|field| text(arm, field).unwrap_or_default());
        let is_limp = arm.get("energised") == Some(&Value::Bool(false));
        let is_unsteady = arm.get("unsteady") == Some(&Value::Bool(true));
        let state = state_text(&state, is_limp, is_unsteady);
        let enabled = text(arm, "enabled").unwrap_or_default();
        let latched =
            text(arm, "latched").map_or(String::new(), |reason| format!("; latched: {reason}"));
        let title = match text(arm, "name").filter(|_| has_several) {
            Some(name) => format!("{name} ({title})"),
            None => title,
        };
        format!("; {title} {state}{latched}; enabled: {enabled}")
    });
    let scenes = list("scenes").into_iter().flatten();
    let scenes: Vec<&str> = scenes.filter_map(Value::as_str).collect();
    let (name, arms) = (
        display_name(node).unwrap_or_default(),
        arms.collect::<String>(),
    );
    match scenes.is_empty() {
        true => format!("{name}{arms}"),
        false => format!("{name}{arms}; scenes: {}", scenes.join(", ")),
    }
}

fn display_name(node: &Value) -> Option<String> {
    let name = node.get("name")?.as_str()?;
    Some(match node.get("reachable") {
        Some(Value::Bool(false)) => format!("{name} (out of reach)"),
        _ => name.to_owned(),
    })
}

fn own_json(node: &Node) -> Value {
    let names = node.known_names();
    let tools: Vec<&str> = names.tools().map(|tool| tool.name.as_str()).collect();
    let mut node_json = json!({
        "name": node.file.name,
        "this": true,
        "reachable": true,
        "version": env!("CARGO_PKG_VERSION"),
        "time_ms": calendar_ms(),
        "forgiveness": node.file.forgiveness(),
        "arms": [],
        "tools": tools,
        "journal_damaged": node.job_store.damaged(),
        "scenes": names.scenes,
        "overlays": names.overlays,
    });
    // Inserted afterwards, because the macro would copy them.
    if let Some(arm_list) = node_json.get_mut("arms") {
        *arm_list = node.arms.iter().map(|arm| arm_json(node, arm)).collect();
    }
    node_json
}

pub(super) fn arm_json(node: &Node, arm: &AttachedArm) -> Value {
    let snapshot = arm.motion.snapshot();
    let job = arm.board.under_way();
    let mut fields = json!({
        "name": arm.name,
        "arm": arm.title(),
        "simulated": arm.workcell.is_some(),
        "state": state_name(&snapshot),
        "energised": snapshot.energised,
        "latched": arm.permits().latched().map(|latch| latch_text(&latch)),
        "motion_enabled": node.may_move(arm),
        "enabled": node.enabled_text(arm),
        "unfinished": node.unfinished(arm),
        "lease": arm.holder(node.lease_idle()),
        "last_calibration": last_calibration(node, arm),
        "job": job.map(|job| {
            refresh_card(arm, &job);
            job.card()
        }),
    });
    if let Some(fields) = fields.as_object_mut() {
        fields.extend(node.neighbour_fields(arm));
        if snapshot.is_unsteady {
            fields.insert("unsteady".to_owned(), true.into());
        }
    }
    fields
}

/// Returns the last `align` that this arm completed.
fn last_calibration(node: &Node, arm: &AttachedArm) -> Option<Value> {
    let past = node.job_store.last_reached(arm.key(), "align", |_| true)?;
    Some(json!({
        "job": past.id,
        "scene": past.scene,
        "ended_ms": past.ended_ms,
        "ago_s": calendar_ms().saturating_sub(past.ended_ms) / 1_000,
    }))
}

/// Describes another node: its answer, or why there is none and its last answer.
fn peer_json(sighting: PeerSighting) -> Value {
    let PeerSighting { peer, presence, .. } = sighting;
    let mut fields = Map::new();
    // A current answer is at the top level; an earlier one is under `last_seen` only.
    let mut answer = sighting
        .report
        .map(|answer| add_freshness(answer, sighting.offset));
    let unreached = sighting.unreached;
    if unreached.is_none() {
        fields = answer.take().unwrap_or_default();
    }
    let mut put = |field: &str, value: Value| fields.insert(field.to_owned(), value);
    put("name", json!(peer.name));
    put("this", json!(false));
    put("address", json!(peer.address));
    put("tags", json!(peer.tags));
    put("reachable", json!(unreached.is_none()));
    if let Some(word) = presence_word(presence) {
        put("presence", json!(word));
    }
    if let PeerPresence::Gone { since } = presence {
        put("gone_s", json!(rounded(since.elapsed().as_secs_f64())));
    }
    let age_s = sighting.age.map(|age| rounded(age.as_secs_f64()));
    let Some(reason) = unreached else {
        put("age_s", json!(age_s));
        return Value::Object(fields);
    };
    put("why", json!(reason));
    if let Some(mut answer) = answer {
        answer.insert("age_s".to_owned(), json!(age_s));
        put("last_seen", Value::Object(answer));
    }
    Value::Object(fields)
}

/// Names a node's presence as an engine reports it; `None` if no engine does.
fn presence_word(presence: PeerPresence) -> Option<&'static str> {
    match presence {
        PeerPresence::Unknown => None,
        PeerPresence::Announced => Some("announced"),
        PeerPresence::Gone { .. } => Some("gone"),
        PeerPresence::Duplicate { .. } => Some("duplicate"),
    }
}

fn add_freshness(mut node: Map<String, Value>, offset: Option<ClockOffset>) -> Map<String, Value> {
    // The node is listed under its name here; the name it gave itself is added.
    node.remove("this");
    node.remove("reachable");
    if let Some(name) = node.remove("name") {
        node.insert("calls_itself".to_owned(), name);
    }
    if let Some(offset) = offset {
        node.insert("clock_offset_ms".to_owned(), json!(offset.ms.round()));
        let within = offset.within_ms.ceil();
        node.insert("clock_offset_within_ms".to_owned(), json!(within));
    }
    node
}
