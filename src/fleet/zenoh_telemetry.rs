//! Publishes a node's state and joints to every permitted listener: `steadyhand/NAME/state` and `steadyhand/NAME/arm/ARM/joints`.
//! What cannot be sent at once is dropped. Nothing waits for telemetry, and no decision depends on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::{Session, Wait};

/// Interval at which joints are published.
const JOINTS_EVERY: Duration = Duration::from_millis(100);

/// Interval at which an unchanged state is published again.
const STATE_EVERY: Duration = Duration::from_millis(500);

/// Source of a node's telemetry.
pub trait TelemetrySource: Send + Sync {
    /// Returns its arms, their jobs and what is enabled; the same value while nothing changes.
    fn state(&self) -> Value;

    /// Returns the joints of each arm by its name, with their age.
    fn joints(&self) -> Vec<(String, Value)>;
}

/// Publishes telemetry on the calling thread until `ended` is set.
pub(super) fn publish(
    session: &Session,
    node: &str,
    source: &Arc<dyn TelemetrySource>,
    ended: &AtomicBool,
) {
    if let Err(error) = base::background_thread::yield_to_arms() {
        tracing::debug!("cannot lower the priority of the telemetry thread: {error}");
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
        let is_due =
            |(published, at): &(Value, Instant)| *published != state || at.elapsed() >= STATE_EVERY;
        if last.as_ref().is_none_or(is_due) {
            put(session, &format!("steadyhand/{node}/state"), &state);
            last = Some((state, Instant::now()));
        }
        std::thread::park_timeout(JOINTS_EVERY);
    }
}

/// Returns a name as part of a key. Characters with a meaning in keys are percent-encoded.
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
