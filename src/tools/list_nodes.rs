//! `list_nodes`: this node with its state, and the others of the node file.

use serde_json::{Value, json};

use super::answer::Reply;
use super::dispatch::Order;
use super::{Node, Seat};

pub(super) fn call(order: &Order<'_>) -> Reply {
    let node = order.node;
    let others = node.file.nodes.iter().map(
        |peer| json!({"name": peer.name, "url": peer.url, "this": false, "state": "not asked"}),
    );
    let nodes: Vec<Value> = std::iter::once(own(node)).chain(others).collect();
    let names: Vec<&str> = nodes
        .iter()
        .filter_map(|node| node.get("name")?.as_str())
        .collect();
    Reply::done(format!("{} node(s): {}", nodes.len(), names.join(", "))).with("nodes", nodes)
}

fn own(node: &Node) -> Value {
    json!({
        "name": node.file.name,
        "this": true,
        "version": env!("CARGO_PKG_VERSION"),
        "forgiveness": node.file.forgiveness(),
        "arms": node.seats.iter().map(|seat| arm(node, seat)).collect::<Vec<_>>(),
        "journal_damaged": node.book.damaged(),
        "scenes": node.here().scenes,
        "overlays": node.scenes.overlays(),
    })
}

fn arm(node: &Node, seat: &Seat) -> Value {
    let snapshot = seat.motion.snapshot();
    json!({
        "name": seat.name,
        "arm": seat.title(),
        "simulated": seat.studio.is_some(),
        "state": snapshot.state,
        "enabled": seat.permits().enabled(seat.motion.clock().now()),
        "unfinished": node.unfinished(seat),
        "lease": seat.holder(node.lease_idle()),
        "job": seat.board.job().filter(|job| !job.is_over()).map(|job| job.card()),
    })
}
