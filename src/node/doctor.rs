//! Finds causes that keep a node's arms from being used, without asking their buses anything.

use serde_json::{Value, json};

use super::operator_verb::VerbReply;
use base::units::ServoState;
use base::wording::count;
use driver::diagnose::{AttachedState, HostSystem, attached};
use tools::{AttachedArm, Node};

/// Returns findings with fixes, and a row of each servo, of every arm.
pub(super) fn reply(node: &Node) -> VerbReply {
    let arms: Vec<Value> = node.arms.iter().map(|seat| arm(node, seat)).collect();
    let findings = arms.iter().filter_map(|arm| arm["findings"].as_array());
    let words = match findings.map(Vec::len).sum() {
        0 => "nothing is wrong, as far as the node sees it".to_owned(),
        found => count(found, "finding"),
    };
    VerbReply::with_data(words, &arms)
}

fn arm(node: &Node, seat: &AttachedArm) -> Value {
    let seen = seat.motion.snapshot();
    let servos: &[ServoState] = seen.measured.as_ref().map_or(&[], |seen| &seen.servos);
    let mut entries = node.file.arms.iter();
    let entry = entries.find(|entry| entry.name == seat.name);
    let state = AttachedState {
        arm: seat.motion.arm(),
        port: entry
            .filter(|entry| !entry.is_simulated())
            .map(|entry| entry.port.as_str()),
        identity: &seen.identity,
        servos,
        fault: seen.fault.as_deref(),
        recovery: seen.recovery,
        warnings: &seen.warnings,
    };
    let rows = seen.identity.iter().map(|one| {
        let id = one.servo.id;
        let read = servos.iter().find(|servo| servo.id == id);
        let counted = seen.counts.servos.iter().find(|servo| servo.id == id);
        json!({
            "servo": one.servo.to_string(),
            "model": one.model,
            "firmware": format!("{}.{}", one.firmware.0, one.firmware.1),
            "identity": one.fingerprint(),
            "voltage_v": read.and_then(|servo| servo.voltage_v),
            "temperature_c": read.and_then(|servo| servo.temperature_c),
            "error_bits": read.and_then(|servo| servo.error_bits),
            "retries": counted.map(|servo| servo.retries),
        })
    });
    json!({
        "arm": seat.name,
        "port": entry.map(|entry| &entry.port),
        "findings": attached(&HostSystem::default(), &state),
        "servos": rows.collect::<Vec<_>>(),
    })
}
