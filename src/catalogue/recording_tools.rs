//! The toolset `recording`, as data: two tools that report recorded jobs. Neither moves nor writes anything.

use std::sync::LazyLock;

use super::ResultFieldKind::{Object, Objects, Whole};
use super::tool_definition::{required, texts};
use super::{ParameterKind, ToolDefinition, field};

/// The tools, in the order in which they are used and listed.
pub static RECORDING_TOOLS: LazyLock<Vec<ToolDefinition>> =
    LazyLock::new(|| vec![list_recordings(), get_recording()]);

fn list_recordings() -> ToolDefinition {
    ToolDefinition {
        when: texts(&["After: get_recording with one of them."]),
        fields: vec![
            field(
                "recordings",
                Objects,
                "per recorded job its name and size, the newest first, 50 at most",
            ),
            field("n", Whole, "how many there are"),
        ],
        ..ToolDefinition::reading(
            "list_recordings",
            "List recordings",
            "List the jobs of this node that were recorded",
            Vec::new(),
        )
    }
}

fn get_recording() -> ToolDefinition {
    let words = "name of a recorded job, such as job-12";
    let job = required("job", ParameterKind::Text, words);
    ToolDefinition {
        when: texts(&["Before: list_recordings."]),
        fields: vec![
            field(
                "recording",
                Object,
                "duration, ticks and those that are missing, how far the ink is from the plan, how joints followed",
            ),
            field(
                "off",
                Objects,
                "per stroke whose ink is off by more than 0.5 mm where, by how much and why",
            ),
        ],
        ..ToolDefinition::reading(
            "get_recording",
            "Get a recording",
            "Say what a recorded job did: how the joints followed, where the ink is off and why",
            vec![job],
        )
    }
}
