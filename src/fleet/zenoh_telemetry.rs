//! A node's state and joints for every permitted listener: `steadyhand/NAME/state` and `steadyhand/NAME/arm/ARM/joints`. What
//! cannot be sent at once is dropped; nothing waits for it, and nothing is decided by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::{Session, Wait};

/// Joints are told this often.
const JOINTS_EVERY: Duration = Duration::from_millis(100);

/// The state is told when it has changed, and this often without.
const STATE_EVERY: Duration = Duration::from_millis(500);

/// Source of a node's telemetry.
pub trait TelemetrySource: Send + Sync {
    /// Its arms, their jobs and what is enabled: the same value while nothing changes.
    fn state(&self) -> Value;

    /// Joints of each arm by its name, with their age.
    fn joints(&self) -> Vec<(String, Value)>;
}

/// Tells until `ended`, on the thread that calls this.
pub(super) fn tell(
    session: &Session,
    node: &str,
    source: &Arc<dyn TelemetrySource>,
    ended: &AtomicBool,
) {
    if let Err(error) = base::background_thread::yield_to_arms() {
        tracing::debug!("telemetry keeps its priority: {error}");
    }
    let mut last: Option<(Value, Instant)> = None;
    while !ended.load(Ordering::Relaxed) {
        for (arm, joints) in source.joints() {
            put(
                session,
                &format!("steadyhand/{node}/arm/{}/joints", key_chunk(&arm)),
                &joints,
            );
        }
        let state = source.state();
        let is_due = |(told, at): &(Value, Instant)| *told != state || at.elapsed() >= STATE_EVERY;
        if last.as_ref().is_none_or(is_due) {
            put(session, &format!("steadyhand/{node}/state"), &state);
            last = Some((state, Instant::now()));
        }
        std::thread::park_timeout(JOINTS_EVERY);
    }
}

/// Returns a name as part of a key: what means something in keys is written by its number, as in addresses.
fn key_chunk(name: &str) -> String {
    let mut chunk = String::new();
    for c in name.chars() {
        match c {
            '/' | '*' | '$' | '?' | '#' | '%' => chunk.push_str(&format!("%{:02X}", u32::from(c))),
            _ => chunk.push(c),
        }
    }
    chunk
}

fn put(session: &Session, key: &str, value: &Value) {
    let sent = session
        .put(key, value.to_string())
        .congestion_control(CongestionControl::Drop)
        .priority(Priority::DataLow)
        .wait();
    if let Err(error) = sent {
        tracing::debug!("telemetry was not sent: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_an_arm_is_part_of_a_key() {
        assert_eq!(key_chunk("arm"), "arm");
        for name in ["row 2/left", "100 %", "arm #1", "*", "$?", "linker Arm"] {
            let key = format!("steadyhand/node/arm/{}/joints", key_chunk(name));
            let read = zenoh::key_expr::OwnedKeyExpr::new(key.clone());
            assert!(read.is_ok_and(|read| !read.is_wild()), "{key}");
        }
    }
}
