//! Every tool as data: its names, words, parameters, effect, examples and results. How a tool is done is elsewhere.
//!
//! One entry is the only source of what models, people and clients are told about a tool.

mod describe;
mod exam_tools;
mod help_page;
mod known_names;
mod prompts;
mod recording_tools;
mod render;
mod schema;
mod stop_words;
mod tool_definition;
mod tools;

pub use describe::{DESCRIPTION_CHARS_MAX, description, instructions, summary};
pub use exam_tools::EXAM_TOOLS;
pub use help_page::{help, page, table, usage};
pub use known_names::{ENUM_MAX, EVERYWHERE, KnownNames, ListedNames};
pub use prompts::{CataloguePrompt, PROMPTS};
pub use recording_tools::RECORDING_TOOLS;
pub use render::CatalogueFormat;
pub use schema::{input, output};
pub use stop_words::{asks_to_stop, says_stop, words_of};
pub use tool_definition::{
    ListedTool, NameSource, ParameterKind, ResultField, ResultFieldKind, ToolDefinition,
    ToolEffect, ToolHints, ToolParameter, field,
};
pub use tools::{PREVIEW, PREVIEW_NAMES, TOOLS};

/// Returns the list as clients of this node see it: the tools, then the same under their aliases, as far as the node lists either.
/// A tool without an alias is listed by its own name.
#[must_use]
pub fn list(here: &KnownNames) -> Vec<ListedTool> {
    let by_own =
        |tool: &&ToolDefinition| here.listed_names != ListedNames::Robot || tool.aliases.is_empty();
    let own = here.tools().filter(by_own);
    let own = own.map(|tool| listed(tool, &tool.name, here));
    let aliases = here.tools().flat_map(|tool| {
        tool.aliases
            .iter()
            .map(move |name| listed(tool, name, here))
    });
    let has_aliases = here.listed_names != ListedNames::Plain;
    own.chain(aliases.filter(|_| has_aliases)).collect()
}

/// Returns a tool as it is listed by one of its names. An alias is a whole tool: a planner that is bound to schemas could send
/// nothing to one without.
fn listed(tool: &ToolDefinition, name: &str, here: &KnownNames) -> ListedTool {
    ListedTool {
        name: name.to_owned(),
        title: tool.title.clone(),
        summary: summary(tool),
        description: description(tool, here),
        input_schema: input(tool, here),
        output_schema: output(tool),
        hints: tool.hints(),
        alias_of: (name != tool.name).then(|| tool.name.clone()),
    }
}

#[cfg(test)]
fn tests_here() -> KnownNames {
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

    use super::{ListedNames, TOOLS, ToolEffect, list, tests_here};

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
    fn every_word_for_stop_stops_and_is_not_listed() {
        let here = tests_here();
        let listed: Vec<String> = list(&here).into_iter().map(|tool| tool.name).collect();
        for name in [
            "emergency_stop",
            "estop",
            "e_stop",
            "halt",
            "abort",
            "freeze",
        ] {
            assert_eq!(here.find(name).unwrap().effect, ToolEffect::Stops);
            assert!(!listed.iter().any(|listed| listed == name));
        }
    }

    #[test]
    fn the_node_says_which_names_are_listed_and_every_name_is_understood() {
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
            let here = super::KnownNames {
                listed_names,
                ..tests_here()
            };
            let listed: Vec<String> = list(&here).into_iter().map(|tool| tool.name).collect();
            assert_eq!(listed, names);
            assert!(both.iter().all(|name| here.find(name).is_some()));
        }
    }

    #[test]
    fn an_alias_is_a_whole_tool() {
        let tools = list(&tests_here());
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
    fn names_that_earlier_systems_had_are_understood() {
        let here = tests_here();
        for name in ["list_scenes", "ping_nodes", "robot_list_nodes"] {
            assert_eq!(here.find(name).unwrap().name, "list_nodes");
        }
    }
}
