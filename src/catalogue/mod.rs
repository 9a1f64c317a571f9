//! Every tool as data: its names, words, parameters, effect, examples and results. How a tool is done is elsewhere.
//!
//! One entry is the only source of what models, people and clients are told about a tool.

mod describe;
mod entry;
mod here;
mod prompts;
mod render;
mod schema;
mod tools;

pub use describe::{description, instructions, summary};
pub use entry::{
    Effect, Field, FieldKind, Given, Hints, Kind, Listed, Parameter, Tool, Vocabulary,
};
pub use here::{ENUM_MAX, Here};
pub use prompts::{PROMPTS, Prompt};
pub use render::{Format, usage};
pub use schema::{input, output};
pub use tools::TOOLS;

/// The tool of this exact name, alias or unlisted name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS
        .iter()
        .find(|tool| tool.names().any(|known| known == name))
}

/// Every name that a tool answers to, with its tool; listed or not.
pub fn names() -> impl Iterator<Item = (&'static str, &'static Tool)> {
    TOOLS
        .iter()
        .flat_map(|tool| tool.names().map(move |name| (name, tool)))
}

/// The list as clients of this node see it: the tools, then their aliases if those are listed.
#[must_use]
pub fn list(here: &Here) -> Vec<Listed> {
    let tools = TOOLS.iter().map(|tool| listed(tool, here));
    let aliases = TOOLS
        .iter()
        .flat_map(|tool| tool.aliases.iter().map(move |name| alias(tool, name)));
    tools
        .chain(aliases.filter(|_| here.aliases_listed))
        .collect()
}

fn listed(tool: &Tool, here: &Here) -> Listed {
    Listed {
        name: tool.name.to_owned(),
        title: tool.title.to_owned(),
        description: description(tool, here),
        input_schema: input(tool, here),
        output_schema: Some(output(tool)),
        hints: tool.hints(),
        alias_of: None,
    }
}

/// An alias is read as fully as its tool and told in one line.
fn alias(tool: &'static Tool, name: &str) -> Listed {
    Listed {
        name: name.to_owned(),
        title: tool.title.to_owned(),
        description: format!("Same as {}. Minimal call: {{}}", tool.name),
        input_schema: schema::bare(),
        output_schema: None,
        hints: tool.hints(),
        alias_of: Some(tool.name),
    }
}

#[cfg(test)]
fn tests_here() -> Here {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Here {
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
        aliases_listed: true,
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

    use super::{Effect, find, list, names, tests_here};

    #[test]
    fn no_two_tools_answer_to_one_name() {
        let all: Vec<&str> = names().map(|(name, _)| name).collect();
        let distinct: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), distinct.len());
    }

    #[test]
    fn every_word_for_stop_stops_and_is_not_listed() {
        let listed: Vec<String> = list(&tests_here())
            .into_iter()
            .map(|tool| tool.name)
            .collect();
        for name in [
            "emergency_stop",
            "estop",
            "e_stop",
            "halt",
            "abort",
            "freeze",
        ] {
            assert_eq!(find(name).unwrap().effect, Effect::Stops);
            assert!(!listed.iter().any(|listed| listed == name));
        }
    }

    #[test]
    fn aliases_are_listed_only_where_the_node_says_so() {
        let mut here = tests_here();
        assert_eq!(list(&here).len(), 13);
        here.aliases_listed = false;
        let names: Vec<String> = list(&here).into_iter().map(|tool| tool.name).collect();
        assert_eq!(
            names,
            ["align", "reset", "sense", "stroke", "list_nodes", "stop"]
        );
    }
}
