//! Stops that take effect at once: before their call is carried out, without a call, or under a name that no tool has.

use serde_json::json;

use super::dispatch::{ToolRequest, resolve};
use super::reply::{NOTHING_FOR_THIS_CALL, Reply, instead_of_nothing_moved, refused};
use super::route::CallRoute;
use super::stop_cause::StopCause;
use super::{AttachedArm, Node, RemoteCallWatch};
use args::{self, ReceivedArguments};
use call::StopOrder;
use catalogue::{TOOLS, ToolDefinition, ToolEffect, asks_to_stop, says_stop};
use motion::MotionState;
use permit::{ActorRank, StopLatch};

impl Node {
    /// Stops at once if this call means a stop, and returns whether it does. The call itself follows, and reports the stop. A
    /// stop that clearly names another node leaves this one alone.
    pub fn preempt_stop(
        &self,
        tool: &str,
        arguments: &ReceivedArguments,
        (who, caller): (ActorRank, Option<&str>),
        order: Option<StopOrder>,
    ) -> bool {
        let intended = self.intended_tool(tool, arguments);
        if intended.is_none_or(|tool| tool.effect != ToolEffect::Stops) {
            return false;
        }
        // First, so that no call that was sent before the stop comes between.
        if let Some(order) = order {
            self.passed_on_stops.remember(order);
        }
        if self.names_other_node(arguments) {
            self.count_stop();
            return false;
        }
        self.stop_all(who, false, &StopCause::by(short(tool), caller));
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
        let cause = format!("{} in a message that is refused or no call", short(name));
        self.stop_all(who, false, &StopCause::by(cause, caller));
        self.record_stray_stop(name, who, caller);
        true
    }

    /// Records a stop that was carried out and that no call follows.
    pub fn record_stray_stop(&self, name: &str, who: ActorRank, caller: Option<&str>) {
        let name = short(name);
        let entry = json!({"by": who, "caller": caller, "tool": name, "message": "a stop in a message that is refused or not a call"});
        self.audit.note("call", entry.to_string());
    }

    /// Returns whether a tool of this name stops.
    #[must_use]
    pub fn stops(&self, tool: &str) -> bool {
        self.tool_for(tool)
            .is_some_and(|tool| tool.effect == ToolEffect::Stops)
    }

    /// Returns the tool that a call means: the one that its name means, or `stop` if an arm moves and the arguments say
    /// stop: `call_tool {"name": "stop"}`, `stroke "stop()"`.
    pub(super) fn intended_tool(
        &self,
        name: &str,
        arguments: &ReceivedArguments,
    ) -> Option<&ToolDefinition> {
        let named = self.tool_for(name);
        // A declared tool's arguments are its own, whatever they say.
        let is_own =
            |tool: &ToolDefinition| tool.effect == ToolEffect::Stops || self.is_declared(tool);
        if named.is_some_and(is_own) {
            return named;
        }
        let is_stop = self.may_any_move() && self.arguments_ask_to_stop(arguments);
        stop_tool().filter(|_| is_stop).or(named)
    }

    /// Returns the tool that a name means: the one of this name, ignoring its form, or `stop` if an arm moves and the name
    /// contains a word for stopping.
    fn tool_for(&self, name: &str) -> Option<&ToolDefinition> {
        let named = self.tool_named(name);
        let is_exact =
            named.is_some_and(|tool| self.is_declared(tool) || tool.names().any(|own| own == name));
        let is_stop = || self.may_any_move() && says_stop(name);
        match stop_tool() {
            Some(stop) if !is_exact && is_stop() => Some(stop),
            _ => named,
        }
    }

    /// Returns the tool of this name, ignoring its form; `stop` if the last part of the name is one of its names.
    fn tool_named(&self, name: &str) -> Option<&ToolDefinition> {
        resolve(name, self.declared.tools()).or_else(|| last_part_stops(name))
    }

    fn may_any_move(&self) -> bool {
        self.arms.iter().any(|arm| arm.may_move_on())
    }

    /// Returns whether arguments name a tool that stops, or say stop and nothing else.
    fn arguments_ask_to_stop(&self, arguments: &ReceivedArguments) -> bool {
        let stops = |tool: &ToolDefinition| tool.effect == ToolEffect::Stops;
        args::called_names(arguments).iter().any(|name| {
            asks_to_stop(name) || resolve(name, self.declared.tools()).is_some_and(stops)
        })
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
                "a stop was sent after this call, and arrived before it",
            ));
        }
        Ok(())
    }

    /// Answers a call of a tool that does not exist. If its name contains a word for stopping, the call is passed on to the
    /// node that it names, which decides by what moves there; here `stop` is offered first.
    pub(super) async fn unknown_tool(
        &self,
        request: &ToolRequest,
        watch: &RemoteCallWatch,
    ) -> Reply {
        let unknown = self.no_such_tool(request);
        let Some(stop) = stop_tool().filter(|_| says_stop(&request.tool)) else {
            return unknown;
        };
        // Calls of before are older than what is passed on now.
        self.count_stop();
        let as_named = ToolDefinition {
            name: request.tool.clone(),
            ..stop.clone()
        };
        match self.route(stop, request) {
            CallRoute::There(peer) => self.pass_on(&peer, &as_named, request, watch).await,
            CallRoute::Everywhere(reason) => {
                let others = self.stop_others(&as_named, request).await;
                self.stopped_everywhere(unknown, others, reason.as_deref())
            }
            CallRoute::Here | CallRoute::Nowhere(_) => unknown,
        }
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
            Some(_) => format!("this call of {name:?} says stop"),
        };
        let stop = &tool.name;
        reply.hint(&format!(
            "{reason}; because an arm moves, or was stopped, it was taken as `{stop}`"
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

/// Returns the beginning of a name that a caller made up.
fn short(name: &str) -> String {
    name.chars().take(80).collect()
}

pub(super) fn stop_tool() -> Option<&'static ToolDefinition> {
    TOOLS.iter().find(|tool| tool.effect == ToolEffect::Stops)
}
