//! Telemetry: state and joints that a node publishes unasked, if its fleet has an engine for that.

use serde_json::{Value, json};

use super::Node;
use super::list_nodes;
use super::stroke::rounded;

impl Node {
    /// Returns the arms as `list_nodes` reports them.
    #[must_use]
    pub fn telemetry_state(&self) -> Value {
        let arms: Vec<Value> = self
            .arms
            .iter()
            .map(|arm| list_nodes::arm_json(self, arm))
            .collect();
        json!({ "node": self.file.name, "arms": arms })
    }

    /// Returns the measured joints of each arm that was read, by arm name: in radians, with the age of the reading.
    #[must_use]
    pub fn telemetry_joints(&self) -> Vec<(String, Value)> {
        let joints = self.arms.iter().filter_map(|arm| {
            let measured = arm.motion.snapshot().measured?;
            let age_s = arm.motion.clock().now().seconds_since(measured.at);
            let position_rad: Vec<f64> =
                measured.position_rad.iter().map(|q| rounded(*q)).collect();
            let reading = json!({
                "age_ms": (age_s * 1e3).round(),
                "position_rad": position_rad,
            });
            Some((arm.name.clone(), reading))
        });
        joints.collect()
    }
}
