//! Tool filter of the node file: withholds every tool that moves, or all but the listed tools. Never withholds a stop.

use super::dispatch::ToolRequest;
use super::reply::{Reply, refused};
use super::{AttachedArm, DeclaredTools, Node};
use args::name::normalise;
use catalogue::{TOOLS, ToolDefinition, ToolEffect};
use config::{ConfigProblem, NodeFile};

/// Reason why nothing may move once the node ends.
pub(super) const ENDING: &str = "the node is shutting down: nothing may move";

/// Returns the reason why a tool is not offered here; `None` if it is.
pub(super) fn withheld_reason(file: &NodeFile, tool: &ToolDefinition) -> Option<&'static str> {
    if tool.effect == ToolEffect::Stops {
        return None;
    }
    if file.read_only && tool.effect == ToolEffect::Moves {
        return Some("this node is read-only (`read_only` in its node file)");
    }
    let listed = |names: &Vec<String>| names.contains(&tool.name);
    let is_offered = file.only_tools.as_ref().is_none_or(listed);
    (!is_offered)
        .then_some("it is not among the tools of this node (`only_tools` in its node file)")
}

/// Returns the names of all tools that are not offered.
pub(super) fn withheld_names(file: &NodeFile, declared: &DeclaredTools) -> Vec<String> {
    let all = TOOLS.iter().chain(declared.tools());
    let withheld = all.filter(|tool| withheld_reason(file, tool).is_some());
    withheld.map(|tool| tool.name.clone()).collect()
}

/// Returns a problem for each name in `only_tools` that no tool has.
pub(super) fn unknown_names(file: &NodeFile, declared: &[ToolDefinition]) -> Vec<ConfigProblem> {
    let known: Vec<&str> = TOOLS
        .iter()
        .chain(declared)
        .map(|tool| tool.name.as_str())
        .collect();
    let named = file.only_tools.iter().flatten().enumerate();
    let wrong = named.filter(|(_, name)| !known.contains(&name.as_str()));
    wrong
        .map(|(index, name)| {
            let nearest = args::nearest(name, known.iter().copied()).join(", ");
            let problem = format!("there is no tool `{name}`. Valid (nearest first): {nearest}");
            ConfigProblem::at(format!("only_tools[{index}]"), problem)
        })
        .collect()
}

/// Returns a problem for each key in `ignore_keys` that means something: a parameter of a tool, or the name of one that stops.
pub(super) fn meaningful_keys(file: &NodeFile, declared: &[ToolDefinition]) -> Vec<ConfigProblem> {
    let mut known: Vec<(String, String)> = Vec::new();
    for tool in TOOLS.iter().chain(declared) {
        let own = tool.parameters.iter().chain(&tool.canvas_parameters);
        for parameter in own.chain(&tool.unlisted) {
            let names = std::iter::once(&parameter.name).chain(&parameter.aliases);
            let meaning = format!("the parameter `{}` of {}", parameter.name, tool.name);
            known.extend(names.map(|name| (normalise(name), meaning.clone())));
        }
        let stops = tool.names().filter(|_| tool.effect == ToolEffect::Stops);
        known.extend(stops.map(|name| (normalise(name), "a stop".to_owned())));
    }
    let keys = file.ignore_keys.iter().enumerate();
    keys.filter_map(|(index, key)| {
        let (_, meaning) = known.iter().find(|(name, _)| *name == normalise(key))?;
        let problem = format!(
            "`ignore_keys` lists `{key}`, which is {meaning}. Next: remove it from the list"
        );
        Some(ConfigProblem::at(format!("ignore_keys[{index}]"), problem))
    })
    .collect()
}

impl Node {
    /// Returns the reason why nothing may move here for any caller, if so; enabling would then have no effect.
    #[must_use]
    pub fn motion_withheld(&self) -> Option<&'static str> {
        if self.file.read_only {
            return Some("this node is read-only (`read_only` in its node file): nothing may move");
        }
        if self.is_ending() {
            return Some(ENDING);
        }
        let moves = |tool: &ToolDefinition| {
            tool.effect == ToolEffect::Moves && withheld_reason(&self.file, tool).is_none()
        };
        let moves_any = TOOLS.iter().chain(self.declared.tools()).any(moves);
        (!moves_any).then_some(
            "no tool of this node moves its arm (`only_tools` in its node file): nothing may move",
        )
    }

    /// Returns whether an arm may move now.
    #[must_use]
    pub fn may_move(&self, arm: &AttachedArm) -> bool {
        self.motion_withheld().is_none() && arm.permits().any_enabled(arm.motion.clock().now())
    }

    /// Describes the enabled motion of an arm.
    #[must_use]
    pub fn enabled_text(&self, arm: &AttachedArm) -> String {
        match self.motion_withheld() {
            Some(reason) => format!("nothing: {reason}"),
            None => arm.permits().enabled_text(arm.motion.clock().now()),
        }
    }

    /// Refuses a tool that is not offered, to every caller including operators. A step of an offered declared tool may
    /// be an unlisted tool, but never moves the arm of a read-only node.
    pub(super) fn check_offered(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
    ) -> Result<(), Box<Reply>> {
        let Some(reason) = withheld_reason(&self.file, tool) else {
            return Ok(());
        };
        if request.is_step && !self.file.read_only {
            return Ok(());
        }
        let available = self.names_for(tool);
        let names: Vec<&str> = available.tools().map(|tool| tool.name.as_str()).collect();
        Err(refused(
            "not_offered",
            format!(
                "{} is not offered: {reason}. This node has {}",
                tool.name,
                names.join(", ")
            ),
        ))
    }
}
