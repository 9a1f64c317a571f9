//! Stops that take effect at once: before their call is carried out, without a call, or under a name that no tool has.

use serde_json::json;

use super::dispatch::{ToolRequest, resolve};
use super::reply::{NOTHING_FOR_THIS_CALL, Reply, instead_of_nothing_moved, refused};
use super::stop_cause::StopCause;
use super::{AttachedArm, Node};
use args::{self, ReceivedArguments, name::normalise};
use call::{ToolCaller, is_same_caller};
use catalogue::{TOOLS, ToolDefinition, ToolEffect};
use motion::MotionState;
use permit::{ActorRank, StopLatch};

impl Node {
    /// Stops at once if this call means a stop, and returns whether it does. The call itself follows, and reports the stop. A
    /// stop that clearly names another node leaves this one alone.
    pub fn preempt_stop(
        &self,
        tool: &str,
        arguments: &ReceivedArguments,
        who: ActorRank,
        caller: &ToolCaller,
    ) -> bool {
        let stops = match self.intended_tool(tool, arguments) {
            Some(intended) => intended.effect == ToolEffect::Stops,
            None => self.is_movers_unknown_name(tool, &caller.key()),
        };
        if !stops {
            return false;
        }
        // First, so that no call that was sent before the stop comes between.
        if let Some(order) = caller.hop.as_ref().and_then(|hop| hop.order) {
            self.passed_on_stops.remember(order);
        }
        if self.names_other_node(arguments) {
            self.count_stop();
            return false;
        }
        let token = caller.token();
        self.stop_all(who, false, &StopCause::by(short(tool), token.as_deref()));
        true
    }

    /// Returns whether this call may move something here or at another node.
    #[must_use]
    pub fn moves(&self, tool: &str, arguments: &ReceivedArguments) -> bool {
        let intended = self.intended_tool(tool, arguments);
        intended.is_some_and(|tool| tool.effect == ToolEffect::Moves)
    }

    /// Stops every arm at once if a tool of this name stops, and returns whether it does. No call follows, because the
    /// message that named the tool is not a call, or is refused. `caller` is recorded.
    pub fn stray_stop(&self, name: &str, who: ActorRank, caller: Option<&str>) -> bool {
        if !self.stops(name) {
            return false;
        }
        let cause = format!(
            "{} in a message that was refused or is not a call",
            short(name)
        );
        self.stop_all(who, false, &StopCause::by(cause, caller));
        self.record_stray_stop(name, who, caller);
        true
    }

    /// Records a stop that was carried out and that no call follows.
    pub fn record_stray_stop(&self, name: &str, who: ActorRank, caller: Option<&str>) {
        let name = short(name);
        let entry = json!({"by": who, "caller": caller, "tool": name, "message": "a stop in a message that was refused or is not a call"});
        self.audit.note("call", entry.to_string());
    }

    /// Returns whether a tool of this name stops.
    #[must_use]
    pub fn stops(&self, tool: &str) -> bool {
        self.tool_named(tool)
            .is_some_and(|tool| tool.effect == ToolEffect::Stops)
    }

    /// Returns the tool that a call means: the one of its name, or `stop` if an arm moves and the arguments call it:
    /// `call_tool {"name": "stop"}`, `stroke "stop()"`.
    pub(super) fn intended_tool(
        &self,
        name: &str,
        arguments: &ReceivedArguments,
    ) -> Option<&ToolDefinition> {
        let named = self.tool_named(name);
        // A declared tool's arguments are its own, whatever they say.
        let is_own =
            |tool: &ToolDefinition| tool.effect == ToolEffect::Stops || self.is_declared(tool);
        if named.is_some_and(is_own) {
            return named;
        }
        let calls_stop = || args::called_name(arguments, &|name| self.stops(name)).is_some();
        stop_tool()
            .filter(|_| self.may_any_move() && calls_stop())
            .or(named)
    }

    /// Returns `stop` for a name that no tool has, if the call stopped the arm when it arrived, or would now.
    pub(super) fn stop_by_unknown_name(&self, request: &ToolRequest) -> Option<&ToolDefinition> {
        let stops = request.arrived.is_stop()
            || self.is_movers_unknown_name(&request.tool, &request.caller);
        stop_tool().filter(|_| stops)
    }

    /// Returns whether a name that no tool has comes from the caller whose job moves: in whatever language, it does not mean
    /// that the arm is to go on.
    fn is_movers_unknown_name(&self, tool: &str, caller: &str) -> bool {
        let mut jobs = self.arms.iter().filter_map(|arm| arm.board.under_way());
        is_unknown_name(tool) && jobs.any(|job| is_same_caller(&job.card().caller, caller))
    }

    /// Returns the tool of this name, ignoring its form; `stop` if the last part of the name is one of its names.
    fn tool_named(&self, name: &str) -> Option<&ToolDefinition> {
        resolve(name, self.declared.tools()).or_else(|| last_part_stops(name))
    }

    fn may_any_move(&self) -> bool {
        self.arms.iter().any(|arm| arm.may_move_on())
    }

    /// Stops if the tool does, unless that was done when the call arrived: what came behind it is not to be stopped once more.
    pub(super) fn stop_if_requested(&self, tool: &ToolDefinition, request: &ToolRequest) {
        if tool.effect == ToolEffect::Stops && !request.arrived.is_stop() {
            let cause = StopCause::by(short(&request.tool), request.caller.as_str());
            self.stop_all(request.who, false, &cause);
        }
    }

    /// Returns whether a stop came after a call that may move something on another node.
    pub(super) fn is_overtaken(&self, tool: &ToolDefinition, request: &ToolRequest) -> bool {
        tool.effect == ToolEffect::Moves && self.has_heard_stop_since(&request.arrived)
    }

    /// Refuses a call that moves if the node that passed it on has sent a stop after it, which arrived first.
    pub(super) fn check_order(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
    ) -> Result<(), Box<Reply>> {
        let order = request.hop.as_ref().and_then(|hop| hop.order);
        if tool.effect == ToolEffect::Moves
            && order.is_some_and(|order| self.passed_on_stops.overtake(order))
        {
            return Err(refused(
                "stopped",
                "a stop was sent after this call, but arrived before it",
            ));
        }
        Ok(())
    }

    /// Adds a note to the answer to a stop that was called under another name.
    pub(super) fn note_other_name(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
        reply: Reply,
    ) -> Reply {
        let named = self.tool_named(&request.tool);
        if tool.effect != ToolEffect::Stops
            || named.is_some_and(|named| named.effect == ToolEffect::Stops)
        {
            return reply;
        }
        let name: String = request.tool.chars().take(80).collect();
        let reason = match named {
            None => format!("there is no tool {name:?}"),
            Some(_) => format!("this call to {name:?} contains the word stop"),
        };
        let stop = &tool.name;
        reply.hint(&format!(
            "{reason}. An arm was moving or stopped, so the call was read as `{stop}`. Next: `reset` ends the stop, then `stroke` with `resume` draws the rest"
        ))
    }

    /// Narrows the statement that nothing moved to this call, if another call moves one of the node's arms.
    pub(super) fn narrow_claim(&self, reply: Reply) -> Reply {
        if self.arms.iter().any(|arm| arm.is_moving()) {
            instead_of_nothing_moved(reply, NOTHING_FOR_THIS_CALL)
        } else {
            reply
        }
    }
}

impl AttachedArm {
    /// Returns whether this arm moves, or a job is under way that may move it.
    pub(super) fn is_moving(&self) -> bool {
        let moves = matches!(
            self.motion.snapshot().state,
            MotionState::Moving | MotionState::Held | MotionState::Stopping
        );
        moves || self.under_way().is_some()
    }

    /// Returns whether the arm moves or stands because it was stopped: a stop may take effect by its name before its call is
    /// carried out, and must then still be answered as a stop.
    fn may_move_on(&self) -> bool {
        let is_stopped = || {
            matches!(
                self.permits().latched(),
                Some(StopLatch::Stopped(_) | StopLatch::Emergency(_))
            )
        };
        let is_asked = || self.motion.stops_requested() > self.motion.snapshot().stops_done;
        self.is_moving() || is_asked() || is_stopped()
    }
}

/// Returns the answer to a call for another node that was overtaken by a stop.
pub(super) fn stopped_before_passing_on() -> Reply {
    *refused(
        "stopped",
        "a stop came before this call was passed on to the other node",
    )
}

/// Returns `stop` if the last part of a name is one of its names, whatever comes before: `left_arm.stop`.
fn last_part_stops(name: &str) -> Option<&'static ToolDefinition> {
    let last = name.rsplit(['.', '/', ':']).next();
    let last = last.and_then(|last| last.rsplit("__").next())?;
    let stops = |tool: &&ToolDefinition| tool.effect == ToolEffect::Stops;
    resolve(last, &[])
        .filter(stops)
        .filter(|_| !name.starts_with(['!', '¬']))
}

/// Returns whether a text is a name, of any script, that no tool has and that holds no tool's name as `stroke_status` does.
fn is_unknown_name(text: &str) -> bool {
    let is_inside = |c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.') || (!c.is_ascii() && !c.is_whitespace())
    };
    let folded = normalise(text);
    let is_word = !["null", "none", "true", "false", "undefined"].contains(&folded.as_str());
    let others = TOOLS.iter().filter(|tool| tool.effect != ToolEffect::Stops);
    let mut names = others.flat_map(ToolDefinition::names).map(normalise);
    is_word
        && text.len() <= NAME_BYTES_MAX
        && text.chars().any(|c| c.is_alphabetic() || !c.is_ascii())
        && text.chars().all(is_inside)
        && !names.any(|name| folded.contains(&name))
}

/// Longest text that is a name.
const NAME_BYTES_MAX: usize = 128;

/// Returns the beginning of a name that a caller made up.
fn short(name: &str) -> String {
    name.chars().take(80).collect()
}

pub(super) fn stop_tool() -> Option<&'static ToolDefinition> {
    TOOLS.iter().find(|tool| tool.effect == ToolEffect::Stops)
}
