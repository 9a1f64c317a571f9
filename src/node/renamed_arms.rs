//! An operator's orders for arms that the node file has no longer: they stand for every arm of the same place.

use std::collections::BTreeSet;

use config::ArmEntry;
use permit::OrderFiles;
use tools::Node;

/// Beginnings of the names of the files that keep orders.
const PREFIXES: [&str; 2] = ["standing-orders-", "emergency-stop-"];

/// Takes over the orders of arms that are called otherwise now, and writes that none stands for the old names once these are kept. Must be called on
/// a runtime.
pub(super) fn take_over_orders(node: &Node) {
    for (is_on_port, place) in [(true, ".port"), (false, ".simulator")] {
        for part in renamed(node, place) {
            take_over(node, &part, is_on_port);
        }
    }
}

/// Returns the names of arms, as in file names, that have files of orders and that the node file does not have.
fn renamed(node: &Node, place: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(&node.state)
        .into_iter()
        .flatten()
        .flatten();
    let parts = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let arm = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
        arm?.strip_suffix(place).map(str::to_owned)
    });
    let is_known = |part: &String| {
        node.file
            .arms
            .iter()
            .any(|arm| arm.file_name_part() == *part)
    };
    parts.filter(|part| !is_known(part)).collect()
}

fn take_over(node: &Node, part: &str, is_on_port: bool) {
    let files = OrderFiles::of_arm(&node.state, part, is_on_port);
    let orders = files.kept();
    let is_of_place = |entry: &ArmEntry| entry.is_simulated() != is_on_port;
    let arms = node.file.arms.iter().zip(&node.arms);
    let arms = arms.filter(|(entry, _)| is_of_place(entry));
    let permits: Vec<_> = arms.map(|(_, seat)| seat.permits().clone()).collect();
    if orders.is_empty() || permits.is_empty() {
        return;
    }
    let kind = if is_on_port { "real" } else { "simulated" };
    tracing::warn!(
        "the node file no longer has the {kind} arm {part}, so an operator's orders for it now apply to every {kind} arm: {orders}"
    );
    for permits in &permits {
        permits.disable();
        for order in orders.iter() {
            permits.give_order(order.verb, &format!("{}, for arm {part}", order.by));
        }
    }
    base::task::spawn(async move {
        for permits in permits {
            if permits.orders_are_kept().await.is_err() {
                return;
            }
        }
        // The next start takes over what could not be handed over.
        let _ = files.hand_over();
    });
}
