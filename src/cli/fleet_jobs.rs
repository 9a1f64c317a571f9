//! `fleet jobs`: lists what the nodes of a node file draw, and what they have drawn for queues.

use anyhow::Context as _;
use futures::future::join_all;
use serde_json::{Map, Value, json};

use super::{ExitStatus, NodeOptions, terminal_output};
use fleet::{FleetPeer, QueueTag};
use node::{open, peers};

pub(super) async fn run(options: &NodeOptions, as_json: bool) -> anyhow::Result<ExitStatus> {
    let file = open::file(options)?;
    let fleet = peers::fleet(&file).context(super::fleet_draw::NO_PEERS)?;
    let peers = fleet.peers();
    let requests = peers
        .iter()
        .map(|peer| fleet.ask_own_report(peer, QueueTag::reader()));
    let reports = join_all(requests).await;
    let nodes = peers.iter().zip(reports);
    let nodes = nodes.map(|(peer, report)| match report {
        Ok(report) => node_jobs(peer, &report),
        Err(error) => json!({ "node": peer.name, "unreached": error.to_string() }),
    });
    let nodes: Vec<Value> = nodes.collect();
    if as_json {
        terminal_output::json(&json!({ "nodes": nodes }))?;
    } else {
        nodes.iter().for_each(print_node);
    }
    let is_silent = |node: &Value| node.get("unreached").is_some();
    Ok(ExitStatus::of(!nodes.iter().any(is_silent)))
}

fn node_jobs(peer: &FleetPeer, report: &Map<String, Value>) -> Value {
    let arms = report.get("arms").and_then(Value::as_array);
    let arms = arms.into_iter().flatten().map(|arm| {
        json!({
            "arm": arm.get("arm"),
            "state": arm.get("state"),
            "job": arm.get("job"),
        })
    });
    let drawings = report.get("queue").and_then(|queue| queue.get("drawings"));
    json!({
        "node": peer.name,
        "arms": arms.collect::<Vec<_>>(),
        "drawings": drawings,
    })
}

fn print_node(node: &Value) {
    let text = |value: &Value, path: &str| {
        let text = value.pointer(path).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let name = text(node, "/node");
    if let Some(error) = node.get("unreached").and_then(Value::as_str) {
        return terminal_output::line(&format!("{name}: {error}"));
    }
    let list = |field: &str| {
        node.get(field)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    for arm in list("arms") {
        let (state, scene) = (text(arm, "/job/state"), text(arm, "/job/scene"));
        let job = match text(arm, "/job/id") {
            id if id.is_empty() => "no job".to_owned(),
            id => format!("{id} {state} ({scene})"),
        };
        let (arm, state) = (text(arm, "/arm"), text(arm, "/state"));
        terminal_output::line(&format!("{name}: {arm} {state}; {job}"));
    }
    for drawing in list("drawings") {
        let number = drawing
            .get("drawing")
            .map(Value::to_string)
            .unwrap_or_default();
        let (batch, description) = (text(drawing, "/batch"), text(drawing, "/words"));
        terminal_output::line(&format!("  {batch} {number:>3}  {description}"));
    }
}
