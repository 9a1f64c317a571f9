//! The answer to a call of a tool that does not exist: the tools, beginning with the one that the name suggests, and a call that works.

use serde_json::{Map, Value};

use super::Node;
use super::declared_tools::unlisted_toolset;
use super::dispatch::{ToolRequest, corrected_call_text, with_corrected_call};
use super::preempt::stop_tool;
use super::reply::{Reply, refused};
use args::RepairClass;
use catalogue::{PREVIEW, TOOLS, ToolDefinition, ToolEffect, says_stop, words_of};

/// Words that callers use for what a tool does. They serve only to offer a tool, never to choose one.
const MEANINGS: [(&str, &[&str]); 5] = [
    (
        "stroke",
        &[
            "stroke", "draw", "drawing", "paint", "plot", "write", "sketch", "tattoo", "trace",
        ],
    ),
    ("align", &["align", "calibrate", "calibration", "register"]),
    ("reset", &["reset", "home", "park", "retract"]),
    (
        "sense",
        &["sense", "status", "state", "position", "look", "read"],
    ),
    ("list_nodes", &["list", "nodes", "robots", "discover"]),
];

impl Node {
    /// Answers a call of a tool that this node does not have.
    pub(super) fn no_such_tool(&self, request: &ToolRequest) -> Reply {
        let name = &request.tool;
        if let Some(set) = unlisted_toolset(&self.file, name) {
            return *refused(
                "not_offered",
                format!(
                    "`{name}` is a tool of the toolset `{set}`, which this node does not list. Next: an operator writes toolsets = [\"{set}\"] into its node file"
                ),
            );
        }
        let intended = match says_stop(name) {
            true => stop_tool(),
            false => tool_by_words(name),
        };
        let names = TOOLS.iter().chain(self.declared.tools());
        let mut nearest = args::nearest(name, names.map(|tool| tool.name.as_str()));
        // The sort keeps the order of the others.
        nearest.sort_by_key(|near| intended.is_none_or(|tool| tool.name != *near));
        let nearest = nearest.join(", ");
        let name: String = name.chars().take(80).collect();
        let message = match name.trim().is_empty() {
            true => format!(
                "the call names no tool: its `name` is missing or empty; the tools: {nearest}"
            ),
            false => format!("there is no tool {name:?}; the tools, nearest first: {nearest}"),
        };
        let offered = intended.and_then(|tool| Some((tool, self.same_call(tool, request)?)));
        match offered {
            None => *refused("unknown_tool", message),
            Some((tool, call)) => {
                let call_text = corrected_call_text(tool, &call);
                let reply = *refused("unknown_tool", format!("{message}; {call_text}"));
                with_corrected_call(reply, &tool.name, &call)
            }
        }
    }

    /// Returns the arguments as another tool takes them, if it takes them without loss. For a tool that moves they ask for a
    /// dry run.
    fn same_call(&self, tool: &ToolDefinition, request: &ToolRequest) -> Option<Value> {
        let mut given = self.understood_by(tool, request)?;
        if tool.effect == ToolEffect::Moves {
            let mut parameters = tool.parameters.iter();
            parameters.find(|parameter| parameter.name == PREVIEW)?;
            given.insert(PREVIEW.to_owned(), true.into());
        }
        Some(Value::Object(given))
    }

    fn understood_by(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
    ) -> Option<Map<String, Value>> {
        let policy = args::ReaderPolicy::new(tool.effect, args::ForgivenessProfile::Guarded);
        let reading = args::read(&self.shape(tool), &policy, request.arguments.clone()).ok()?;
        (reading.loss < RepairClass::L2).then_some(reading.given)
    }
}

/// Returns the tool that the words of a name suggest, if there is exactly one.
fn tool_by_words(name: &str) -> Option<&'static ToolDefinition> {
    let words = words_of(name);
    let has_word = |meanings: &[&str]| words.iter().any(|word| meanings.contains(&word.as_str()));
    let mut matching = MEANINGS.iter().filter(|(_, meanings)| has_word(meanings));
    let (name, _) = matching.next()?;
    let tool = TOOLS.iter().find(|tool| tool.name == *name);
    tool.filter(|_| matching.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_a_tool_by_one_of_its_words() {
        for (name, expected) in [
            ("draw", "stroke"),
            ("drawScene", "stroke"),
            ("dry_run.stroke", "stroke"),
            ("get_robot_status", "sense"),
            ("go home", "reset"),
            ("calibrate_arm", "align"),
            ("list_all_robots", "list_nodes"),
        ] {
            let found = tool_by_words(name).map(|expected| expected.name.as_str());
            assert_eq!(found, Some(expected), "{name}");
        }
        for name in ["", "jump", "reset_and_draw"] {
            assert_eq!(tool_by_words(name), None, "{name}");
        }
    }
}
