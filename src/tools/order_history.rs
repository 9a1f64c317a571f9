//! An operator's orders in the audit log, which says what stood where their own files are away.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};

use base::clock::calendar_ms;
use job::ArmKey;
use permit::{NumberedOrders, OrderVerb, RecordedOrders, StandingOrder, StandingOrders};

/// Kind of the records.
pub(super) const KIND: &str = "orders";

/// The last orders of each arm that earlier processes have recorded.
#[derive(Debug, Default)]
pub(super) struct OrderHistory {
    last: HashMap<(String, bool), NumberedOrders>,
    /// `true` if a node was here, and its audit log has no orders.
    is_lost: bool,
    /// `true` if the folder of jobs is away: one of them may have been interrupted.
    has_lost_jobs: bool,
}

impl OrderHistory {
    /// Reads the audit log of a state folder, before this process adds to it.
    #[must_use]
    pub(super) fn read(state: &Path) -> Self {
        let mut last = HashMap::new();
        job::visit_audit(state, KIND, |text| {
            if let Some((arm, change)) = read_entry(text) {
                last.entry(arm).or_insert(change);
            }
        });
        Self {
            is_lost: last.is_empty() && job::was_node_here(state),
            has_lost_jobs: !job::has_jobs(state),
            last,
        }
    }

    /// Returns what is recorded of an arm.
    #[must_use]
    pub(super) fn of_arm(&self, arm: ArmKey<'_>) -> RecordedOrders {
        match self.last.get(&(arm.name.to_owned(), arm.is_on_port)) {
            Some(change) => RecordedOrders::Last(self.with_lost_jobs(change.clone())),
            None if self.is_lost => RecordedOrders::Lost,
            None => RecordedOrders::None,
        }
    }

    /// Adds that lost jobs disable an arm.
    fn with_lost_jobs(&self, mut change: NumberedOrders) -> NumberedOrders {
        if self.has_lost_jobs {
            let by = "the node, because its folder of jobs was removed";
            let order = StandingOrder::new(OrderVerb::Disable, by, calendar_ms());
            change.orders.give(order);
        }
        change
    }
}

/// Returns a change of an arm's orders, as the audit log keeps it.
#[must_use]
pub fn order_entry(arm: &str, is_on_port: bool, change: &NumberedOrders) -> String {
    json!({
        "arm": arm,
        "on_port": is_on_port,
        "number": change.number,
        "orders": change.orders.to_lines(),
    })
    .to_string()
}

fn read_entry(text: &str) -> Option<((String, bool), NumberedOrders)> {
    let entry: Value = serde_json::from_str(text).ok()?;
    let arm = entry.get("arm")?.as_str()?.to_owned();
    let is_on_port = entry.get("on_port")?.as_bool()?;
    let orders = StandingOrders::read(entry.get("orders")?.as_str()?.lines())?;
    let number = entry.get("number")?.as_u64()?;
    Some(((arm, is_on_port), NumberedOrders { number, orders }))
}
