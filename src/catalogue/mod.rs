//! Every tool as data: its names, description, parameters, effect, examples and results. Its implementation is elsewhere.
//!
//! One entry is the only source of everything that models, people and clients learn about a tool.

mod describe;
mod exam_tools;
mod help_page;
mod known_names;
mod prompts;
mod recording_tools;
mod render;
mod schema;
mod tool_definition;
mod tools;

pub use describe::{
    CANVAS_LINE, DESCRIPTION_CHARS_MAX, description, instructions, purpose_in, summary,
};
pub use exam_tools::EXAM_TOOLS;
pub use help_page::{help, page, table, usage};
pub use known_names::{ENUM_MAX, EVERYWHERE, KnownNames, ListedNames};
pub use prompts::{CataloguePrompt, PROMPTS};
pub use recording_tools::RECORDING_TOOLS;
pub use render::CatalogueFormat;
pub use schema::{input, output};
pub use tool_definition::{
    ListedTool, NameSource, ParameterKind, ResultField, ResultFieldKind, ToolDefinition,
    ToolEffect, ToolHints, ToolParameter, field,
};
pub use tools::{PREVIEW, PREVIEW_NAMES, TOOLS};

/// Returns the list as clients of this node see it: the tools by name, then by alias, unless the node lists only one of the two.
/// A tool without an alias is always listed by its own name.
#[must_use]
pub fn list(known: &KnownNames) -> Vec<ListedTool> {
    let has_plain = known.listed_names != ListedNames::Robot;
    let by_own = |tool: &&ToolDefinition| has_plain || tool.aliases.is_empty();
    let own = known.tools().filter(by_own);
    let own = own.map(|tool| listed(tool, &tool.name, known));
    let aliases = known.tools().flat_map(|tool| {
        tool.aliases
            .iter()
            .map(move |name| listed(tool, name, known))
    });
    let has_aliases = known.listed_names != ListedNames::Plain;
    own.chain(aliases.filter(|_| has_aliases)).collect()
}

/// Returns a tool as it is listed under one of its names. An alias is listed as a full tool: a planner that is bound to schemas
/// could not call a name without one.
fn listed(tool: &ToolDefinition, name: &str, known: &KnownNames) -> ListedTool {
    ListedTool {
        name: name.to_owned(),
        title: tool.title.clone(),
        summary: summary(tool),
        description: description(tool, known),
        input_schema: input(tool, known),
        output_schema: output(tool),
        hints: tool.hints(),
        alias_of: (name != tool.name).then(|| tool.name.clone()),
    }
}

#[cfg(test)]
fn test_names() -> KnownNames {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    KnownNames {
        scenes: names(&[
            "default",
            "a5_sheet",
            "calibration",
            "letters",
            "two_pens",
            "widowx",
        ]),
        overlays: names(&["crosses", "leaf"]),
        arms: names(&["so101"]),
        nodes: names(&["here"]),
        ..KnownNames::default()
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ListedNames, TOOLS, ToolEffect, list, test_names};

    #[test]
    fn no_two_tools_answer_to_one_name() {
        let all: Vec<&str> = TOOLS
            .iter()
            .flat_map(super::ToolDefinition::names)
            .collect();
        let distinct: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), distinct.len());
    }

    #[test]
    fn every_alias_of_stop_stops_and_is_not_listed() {
        let known = test_names();
        let listed: Vec<String> = list(&known).into_iter().map(|tool| tool.name).collect();
        for name in [
            "emergency_stop",
            "estop",
            "e_stop",
            "halt",
            "abort",
            "freeze",
        ] {
            assert_eq!(known.find(name).unwrap().effect, ToolEffect::Stops);
            assert!(!listed.iter().any(|listed| listed == name));
        }
    }

    #[test]
    fn the_node_chooses_the_listed_names_and_every_name_is_understood() {
        let plain = ["align", "reset", "sense", "stroke", "list_nodes", "stop"];
        let robot = [
            "robot_align",
            "robot_reset",
            "robot_sense",
            "robot_stroke",
            "system_list_nodes",
            "robot_stop",
        ];
        let both = [plain, robot].concat();
        for (listed_names, names) in [
            (ListedNames::Both, both.as_slice()),
            (ListedNames::Plain, &plain),
            (ListedNames::Robot, &robot),
        ] {
            let known = super::KnownNames {
                listed_names,
                ..test_names()
            };
            let listed: Vec<String> = list(&known).into_iter().map(|tool| tool.name).collect();
            assert_eq!(listed, names);
            assert!(both.iter().all(|name| known.find(name).is_some()));
        }
    }

    #[test]
    fn an_alias_is_a_full_tool() {
        let tools = list(&test_names());
        for alias in tools.iter().filter(|tool| tool.alias_of.is_some()) {
            let own = tools
                .iter()
                .find(|tool| Some(&tool.name) == alias.alias_of.as_ref());
            let own = own.unwrap();
            assert_eq!(alias.input_schema, own.input_schema, "{}", alias.name);
            assert_eq!(alias.output_schema, own.output_schema, "{}", alias.name);
            assert_eq!(alias.description, own.description, "{}", alias.name);
        }
    }

    #[test]
    fn names_from_earlier_systems_are_understood() {
        let known = test_names();
        for name in ["list_scenes", "ping_nodes", "robot_list_nodes"] {
            assert_eq!(known.find(name).unwrap().name, "list_nodes");
        }
    }
}
