//! The answer to a call of a tool that does not exist: the tools, the nearest first, and before them `stop` while an arm moves.

use super::Node;
use super::declared_tools::unlisted_toolset;
use super::dispatch::ToolRequest;
use super::preempt::stop_tool;
use super::reply::{Reply, refused};
use catalogue::TOOLS;

impl Node {
    /// Answers a call of a tool that this node does not have.
    pub(super) fn no_such_tool(&self, request: &ToolRequest) -> Reply {
        let name = &request.tool;
        if let Some(set) = unlisted_toolset(&self.file, name) {
            return *refused(
                "not_offered",
                format!(
                    "`{name}` is a tool of the toolset `{set}`, which this node does not offer. Next: an operator writes `toolsets = [\"{set}\"]` into its node file"
                ),
            );
        }
        let names = TOOLS.iter().chain(self.declared.tools());
        let mut nearest = args::nearest(name, names.map(|tool| tool.name.as_str()));
        if self.arms.iter().any(|arm| arm.is_moving()) {
            // The sort keeps the order of the others.
            nearest.sort_by_key(|near| stop_tool().is_none_or(|stop| stop.name != *near));
        }
        let nearest = nearest.join(", ");
        let name: String = name.chars().take(80).collect();
        let message = match name.trim().is_empty() {
            true => format!(
                "the call names no tool: its `name` is missing or empty. The tools: {nearest}"
            ),
            false => format!("there is no tool {name:?}. Valid (nearest first): {nearest}"),
        };
        *refused("unknown_tool", message)
    }
}
