//! Every tool as data: its names, words, parameters, effect, examples and results. How a tool is done is elsewhere.
//!
//! One entry is the only source of what models, people and clients are told about a tool.

mod describe;
mod entry;
mod exam;
mod here;
mod page;
mod prompts;
mod render;
mod schema;
mod stop_words;
mod tools;

pub use describe::{DESCRIPTION_CHARS_MAX, description, instructions, summary};
pub use entry::{Effect, Field, FieldKind, Hints, Kind, Listed, Parameter, Tool, Vocabulary};
pub use exam::EXAM_TOOLS;
pub use here::{ENUM_MAX, EVERYWHERE, Here};
pub use page::{help, page, table, usage};
pub use prompts::{PROMPTS, Prompt};
pub use render::Format;
pub use schema::{input, output};
pub use stop_words::says_stop;
pub use tools::{PREVIEW, PREVIEW_NAMES, TOOLS};

/// The list as clients of this node see it: the tools, then the aliases of the six if those are listed.
#[must_use]
pub fn list(here: &Here) -> Vec<Listed> {
    let tools = here.tools().map(|tool| listed(tool, here));
    let aliases = here
        .tools()
        .flat_map(|tool| tool.aliases.iter().map(move |name| alias(tool, name)));
    tools
        .chain(aliases.filter(|_| here.aliases_listed))
        .collect()
}

fn listed(tool: &Tool, here: &Here) -> Listed {
    Listed {
        name: tool.name.clone(),
        title: tool.title.clone(),
        description: description(tool, here),
        input_schema: input(tool, here),
        output_schema: Some(output(tool)),
        hints: tool.hints(),
        alias_of: None,
    }
}

/// An alias is read as fully as its tool and told in one line.
fn alias(tool: &Tool, name: &str) -> Listed {
    Listed {
        name: name.to_owned(),
        title: tool.title.clone(),
        description: format!("Same as {}. Minimal call: {{}}", tool.name),
        input_schema: schema::bare(),
        output_schema: None,
        hints: tool.hints(),
        alias_of: Some(tool.name.clone()),
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
        ..Here::default()
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

    use super::{Effect, TOOLS, list, tests_here};

    #[test]
    fn no_two_tools_answer_to_one_name() {
        let all: Vec<&str> = TOOLS.iter().flat_map(super::Tool::names).collect();
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
            assert_eq!(here.find(name).unwrap().effect, Effect::Stops);
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
