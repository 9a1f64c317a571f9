//! Finds causes that keep a node's arms from being used, without any transaction on their buses.

use serde_json::{Value, json};

use super::operator_verb::VerbReply;
use base::units::ServoState;
use base::wording::count;
use driver::diagnose::{AttachedState, HostSystem, attached};
use tools::{AttachedArm, Node};

/// Returns the findings with fixes, and a row for each servo, of every arm.
pub(super) fn reply(node: &Node) -> VerbReply {
    let arms: Vec<Value> = node.arms.iter().map(|seat| arm_row(node, seat)).collect();
    let findings = arms.iter().filter_map(|arm| arm["findings"].as_array());
    let text = match findings.map(Vec::len).sum() {
        0 => "the node sees no problem".to_owned(),
        findings => count(findings, "finding"),
    };
    VerbReply::with_data(text, &arms)
}

fn arm_row(node: &Node, seat: &AttachedArm) -> Value {
    let snapshot = seat.motion.snapshot();
    let measured = snapshot.measured.as_ref();
    let servos: &[ServoState] = measured.map_or(&[], |arm| &arm.servos);
    let mut entries = node.file.arms.iter();
    let entry = entries.find(|entry| entry.name == seat.name);
    let state = AttachedState {
        arm: seat.motion.arm(),
        port: entry
            .filter(|entry| !entry.is_simulated())
            .map(|entry| entry.port.as_str()),
        identity: &snapshot.identity,
        servos,
        fault: snapshot.fault.as_deref(),
        recovery: snapshot.recovery,
        warnings: &snapshot.warnings,
    };
    let rows = snapshot.identity.iter().map(|identity| {
        let id = identity.servo.id;
        let reading = servos.iter().find(|servo| servo.id == id);
        let counted = snapshot.counts.servos.iter().find(|servo| servo.id == id);
        json!({
            "servo": identity.servo.to_string(),
            "model": identity.model,
            "firmware": format!("{}.{}", identity.firmware.0, identity.firmware.1),
            "identity": identity.fingerprint(),
            "voltage_v": reading.and_then(|servo| servo.voltage_v),
            "temperature_c": reading.and_then(|servo| servo.temperature_c),
            "error_bits": reading.and_then(|servo| servo.error_bits),
            "retries": counted.map(|servo| servo.retries),
        })
    });
    let mut findings = attached(&HostSystem::default(), &state);
    for finding in &mut findings {
        finding.fix = node.commands_for_arm(seat, &finding.fix);
    }
    json!({
        "arm": seat.name,
        "port": entry.map(|entry| &entry.port),
        "findings": findings,
        "servos": rows.collect::<Vec<_>>(),
    })
}
