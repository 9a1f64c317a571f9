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
        when: texts(&["Then: get_recording with one of the names."]),
        fields: vec![
            field(
                "recordings",
                Objects,
                "for each recorded job: name and size; newest first, at most 50",
            ),
            field("n", Whole, "number of recorded jobs"),
        ],
        ..ToolDefinition::reading(
            "list_recordings",
            "List recordings",
            "List the recorded jobs of this node",
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
                "duration, ticks, missing ticks, distance of the ink from the plan, errors of the joints",
            ),
            field(
                "off",
                Objects,
                "for each stroke with ink more than 0.5 mm off: where, by how much and why",
            ),
        ],
        ..ToolDefinition::reading(
            "get_recording",
            "Get a recording",
            "Report a recorded job: how closely the joints followed, where the ink is off and why",
            vec![job],
        )
    }
}
