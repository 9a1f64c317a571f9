//! The toolset `recording`, as data: two tools that tell what was recorded. Neither moves nor writes anything.

use std::sync::LazyLock;

use super::{
    ParameterKind, ResultField, ResultFieldKind, ToolDefinition, ToolEffect, ToolParameter,
};

/// The tools, in the order in which they are used and listed.
pub static RECORDING_TOOLS: LazyLock<Vec<ToolDefinition>> =
    LazyLock::new(|| vec![list_recordings(), get_recording()]);

fn reads(name: &str, title: &str, does: &str, when: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        title: title.to_owned(),
        aliases: Vec::new(),
        also: Vec::new(),
        effect: ToolEffect::Reads,
        writes: false,
        does: does.to_owned(),
        default_action: String::new(),
        parameters: Vec::new(),
        unlisted: Vec::new(),
        canvas_parameters: Vec::new(),
        examples: Vec::new(),
        when: vec![when.to_owned()],
        fields: &[],
        destructive: false,
        idempotent: true,
        open_world: false,
    }
}

fn list_recordings() -> ToolDefinition {
    ToolDefinition {
        fields: &[
            ResultField {
                name: "recordings",
                kind: ResultFieldKind::Objects,
                words: "per recorded job its name and size, the newest first, 50 at most",
            },
            ResultField {
                name: "n",
                kind: ResultFieldKind::Whole,
                words: "how many there are",
            },
        ],
        ..reads(
            "list_recordings",
            "List recordings",
            "List the jobs of this node that were recorded",
            "After: get_recording with one of them.",
        )
    }
}

fn get_recording() -> ToolDefinition {
    ToolDefinition {
        parameters: vec![ToolParameter {
            name: "job".to_owned(),
            aliases: Vec::new(),
            kind: ParameterKind::Text,
            required: true,
            default: None,
            words: "name of a recorded job, such as job-12".to_owned(),
        }],
        fields: &[
            ResultField {
                name: "recording",
                kind: ResultFieldKind::Object,
                words: "duration, ticks and those that are missing, how far the ink is from the plan, how joints followed",
            },
            ResultField {
                name: "off",
                kind: ResultFieldKind::Objects,
                words: "per stroke whose ink is off by more than 0.5 mm where, by how much and why",
            },
        ],
        ..reads(
            "get_recording",
            "Get a recording",
            "Say what a recorded job did: how the joints followed, where the ink is off and why",
            "Before: list_recordings.",
        )
    }
}
