//! A node's part in a fleet over Zenoh: the telemetry that it publishes, and the stops that it receives.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::operator_verb::OperatorVerb;
use super::verb_dispatch;
use args::ReceivedArguments;
use fleet::stop_fan_out::{FleetStop, StopAcknowledgement};
use fleet::zenoh_presence::{
    FleetRole, ZenohAnnouncement, ZenohCertificates, ZenohOptions, announce,
};
use fleet::zenoh_telemetry::TelemetrySource;
use permit::ActorRank;
use tools::{Node, StopCause};

/// The caller of stops that come over the engine, in the audit log.
const CALLER: &str = "the fleet";

/// Joins the node's fleet, if its file names a router, until the returned value is dropped.
///
/// # Errors
/// Zenoh rejects the file's settings.
pub(super) fn join(node: &Arc<Node>) -> anyhow::Result<Option<ZenohAnnouncement>> {
    let (Some(entry), Some(fleet)) = (&node.file.fleet.zenoh, &node.fleet) else {
        return Ok(None);
    };
    let files = (entry.ca.clone(), entry.cert.clone(), entry.key.clone());
    let certificates = match files {
        (Some(ca), Some(cert), Some(key)) => Some(ZenohCertificates { ca, cert, key }),
        _ => None,
    };
    let options = ZenohOptions {
        node: node.file.name.clone(),
        router: entry.router.clone(),
        lease: Duration::from_millis(entry.lease_ms),
        certificates,
    };
    let stopped_node = Arc::clone(node);
    let role = FleetRole {
        stop: Arc::new(move |order| Box::pin(stop(&stopped_node, order))),
        runtime: tokio::runtime::Handle::current(),
        telemetry: Arc::new(NodeTelemetry(Arc::clone(node))),
    };
    Ok(Some(announce(&options, fleet, role)?))
}

/// Stops every arm before it returns. The returned future waits until they stand.
fn stop(
    node: &Arc<Node>,
    order: FleetStop,
) -> impl Future<Output = StopAcknowledgement> + Send + use<> {
    let (by, verb) = match (order.is_emergency, order.is_operators) {
        (true, _) => (ActorRank::Operator, OperatorVerb::Estop),
        (false, true) => (ActorRank::Operator, OperatorVerb::Stop),
        (false, false) => (ActorRank::Planner, OperatorVerb::Stop),
    };
    let cause = StopCause::by("a stop from the fleet", CALLER);
    node.stop_all(by, order.is_emergency, &cause);
    let (node, arrived) = (Arc::clone(node), node.stamp_arrival().of_stop());
    async move {
        let (success, message) = match by {
            ActorRank::Operator => {
                let reply = verb_dispatch::run_for_operator(&node, CALLER, verb, arrived).await;
                (reply.done, reply.text)
            }
            _ => {
                let arguments = ReceivedArguments::Absent;
                let call = (by, "stop", arguments);
                let reply = verb_dispatch::call_as(&node, CALLER, arrived, call).await;
                (!reply.is_error, reply.text)
            }
        };
        StopAcknowledgement { success, message }
    }
}

/// Telemetry of a node for its fleet.
struct NodeTelemetry(Arc<Node>);

impl TelemetrySource for NodeTelemetry {
    fn state(&self) -> Value {
        self.0.telemetry_state()
    }

    fn joints(&self) -> Vec<(String, Value)> {
        self.0.telemetry_joints()
    }
}
