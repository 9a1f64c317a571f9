//! The answer to a call of a tool that does not exist: the tools, the one that its words mean first, and a call that works.

use serde_json::{Map, Value};

use super::Node;
use super::dispatch::{ToolRequest, corrected_call_text, with_corrected_call};
use super::preempt::stop_tool;
use super::reply::{Reply, refused};
use args::RepairClass;
use catalogue::{PREVIEW, TOOLS, ToolDefinition, ToolEffect, says_stop, words_of};

/// Words that callers have for what a tool does. For offering, never for choosing.
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
        let meant = match says_stop(name) {
            true => stop_tool(),
            false => meant_by(name),
        };
        let names = TOOLS.iter().chain(self.declared.tools());
        let mut nearest = args::nearest(name, names.map(|tool| tool.name.as_str()));
        // The sort keeps the order of the others.
        nearest.sort_by_key(|near| meant.is_none_or(|tool| tool.name != *near));
        let nearest = nearest.join(", ");
        let name: String = name.chars().take(80).collect();
        let told = format!("there is no tool {name:?}; the tools, nearest first: {nearest}");
        let offered = meant.and_then(|tool| Some((tool, self.same_call(tool, request)?)));
        match offered {
            None => *refused("unknown_tool", told),
            Some((tool, call)) => {
                let words = corrected_call_text(tool, &call);
                let reply = *refused("unknown_tool", format!("{told}; {words}"));
                with_corrected_call(reply, &tool.name, &call)
            }
        }
    }

    /// Returns the arguments as another tool takes them, if it takes them without loss and nothing moves with them: where it
    /// moves, as a dry run.
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

/// Returns the only tool that a word of a name means.
fn meant_by(name: &str) -> Option<&'static ToolDefinition> {
    let words = words_of(name);
    let is_said = |meanings: &[&str]| words.iter().any(|word| meanings.contains(&word.as_str()));
    let mut meant = MEANINGS.iter().filter(|(_, meanings)| is_said(meanings));
    let (tool, _) = meant.next()?;
    let known = TOOLS.iter().find(|known| known.name == *tool);
    known.filter(|_| meant.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_a_tool_by_one_of_its_words() {
        for (name, tool) in [
            ("draw", "stroke"),
            ("drawScene", "stroke"),
            ("dry_run.stroke", "stroke"),
            ("get_robot_status", "sense"),
            ("go home", "reset"),
            ("calibrate_arm", "align"),
            ("list_all_robots", "list_nodes"),
        ] {
            let meant = meant_by(name).map(|tool| tool.name.as_str());
            assert_eq!(meant, Some(tool), "{name}");
        }
        for name in ["", "jump", "reset_and_draw"] {
            assert_eq!(meant_by(name), None, "{name}");
        }
    }
}
