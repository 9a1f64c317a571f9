//! Previews that leave out what was just refused: they say so, and offer no call that draws.

use serde_json::{Map, Value};

use super::dispatch::ToolContext;
use args::LeftOutArgument;
use base::lock::MutexExt;
use plan::Plan;
use scene::Scene;

/// Parameters that say what is drawn.
const DRAWN_KEYS: [&str; 3] = ["scene", "text", "svg"];

impl ToolContext<'_> {
    /// Checks that a call with these arguments would leave out nothing that was refused a moment ago. Callers send unchanged
    /// what a preview offers, and would draw something else than they asked for.
    ///
    /// An argument that has no default cannot be written out: beside the caller's own choice of what is drawn, the hash of the
    /// shown plan says from now on that it is not wanted.
    ///
    /// # Errors
    /// Says what is left out, and how to draw the plan all the same.
    pub(super) fn check_nothing_left_out(
        &self,
        given: &Map<String, Value>,
        scene: &Scene,
        plan: &Plan,
    ) -> Result<(), String> {
        let callers = self.request.callers();
        let tool = &self.tool.name;
        let hash = &plan.hash;
        let mut memory = self.node.refusal_memory.locked();
        let understood = &self.reading.understood;
        let left_out = memory.left_out(&callers, tool, given, understood);
        if left_out.is_empty() {
            return Ok(());
        }
        let is_chosen = DRAWN_KEYS.iter().any(|key| given.contains_key(*key));
        let has_default = |name: &str| understood.contains_key(name);
        let has_defaults = left_out.iter().all(|one| has_default(&one.name));
        // A scene that is written out settles the others too.
        let needs_scene = !is_chosen || left_out.iter().any(|one| one.name == "scene");
        let how = match left_out.first() {
            // A text is drawn on a canvas, and not in the default scene.
            _ if needs_scene && has_default("scene") => {
                format!("to draw it, write `\"scene\":\"{}\"` out", scene.name)
            }
            Some(LeftOutArgument { name, .. }) if !needs_scene && has_defaults => {
                format!("to draw it, write `{name}` out, even if it is the default")
            }
            _ => {
                memory.accept(&callers, tool, given, understood, ("plan", hash));
                "to draw it all the same, name this plan_hash as `plan`".to_owned()
            }
        };
        let refused: Vec<String> = left_out.iter().map(refused_words).collect();
        Err(format!(
            "plan_hash {hash}; not in this plan: {}; so no call is offered that draws it: {how}",
            refused.join(", ")
        ))
    }
}

fn refused_words(left_out: &LeftOutArgument) -> String {
    let name = &left_out.name;
    match left_out.received.as_str() {
        "" => format!("`{name}`, which was refused a moment ago"),
        received => format!("`{name}`, which was refused a moment ago (received {received})"),
    }
}
