//! Routes a call to this node, to another node, or to every node.
//!
//! A call takes one hop, unchanged: the other node reads the arguments as the caller sent them, and plans, checks and
//! enables by itself. It does not rely on any check of this node.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::dispatch::{ToolRequest, refused_arguments};
use super::preempt::stopped_before_passing_on;
use super::reply::{NOTHING_MOVED, Reply, refused};
use super::tool_filter::ENDING;
use super::tool_shape::open_shape;
use super::{Node, RemoteCallWatch};
use args::{
    self, ArgumentComplaint, ArgumentReading, ArgumentRepair, ReaderPolicy, ReceivedArguments,
    RepairClass,
};
use base::wording::{next_apart, with_next, with_statement};
use catalogue::{EVERYWHERE, NameSource, ParameterKind, ToolDefinition, ToolEffect};
use fleet::stop_fan_out::{FleetStop, StopAcknowledgement};
use fleet::{CallHop, Fleet, FleetPeer, OutgoingCall, RemoteCallError};
use permit::ActorRank;

/// Destination of a call.
pub(super) enum CallRoute {
    /// This node.
    Here,
    /// Another node.
    There(FleetPeer),
    /// This node and all others; with the reason, if the call did not ask for that.
    Everywhere(Option<String>),
    /// No node; this is the answer.
    Nowhere(Box<Reply>),
}

impl Node {
    /// Returns the destination of a call.
    pub(super) fn route(&self, tool: &ToolDefinition, request: &ToolRequest) -> CallRoute {
        let is_alone = || {
            self.fleet
                .as_ref()
                .is_none_or(|fleet| fleet.peers().is_empty())
        };
        let takes_node = tool.parameters.iter().any(|parameter| {
            let kind = &parameter.kind;
            matches!(
                kind,
                ParameterKind::Name(NameSource::Nodes | NameSource::Everywhere)
            )
        });
        // A call that another node passed on stays here.
        if request.hop.is_some() || !takes_node || is_alone() {
            return CallRoute::Here;
        }
        if tool.effect == ToolEffect::Stops && says_all(&request.arguments) {
            return CallRoute::Everywhere(None);
        }
        let shape = open_shape(tool, &self.node_names());
        let policy = ReaderPolicy::new(tool.effect, self.profile());
        match args::read(&shape, &policy, request.arguments.clone()) {
            Ok(reading) => self.route_by_reading(tool, &reading),
            Err(refusal) if refusal.complaints.iter().any(is_about_node) => {
                let names = self.names_for(tool);
                CallRoute::Nowhere(refused_arguments(tool, &names, &refusal).boxed())
            }
            Err(refusal) => self.route_to_named(refusal.good.get("node").and_then(Value::as_str)),
        }
    }

    fn route_by_reading(&self, tool: &ToolDefinition, reading: &ArgumentReading) -> CallRoute {
        let named = reading.understood.get("node").and_then(Value::as_str);
        match lost_by_a_stop(reading).filter(|_| tool.effect == ToolEffect::Stops) {
            // If a stop may have named another node, every reachable arm is stopped.
            Some(lost) if lost.field == "node" && named.is_none() => {
                CallRoute::Everywhere(Some(format!("there is no node called {}", lost.got)))
            }
            Some(lost) => {
                let reason = format!("`{}` was not understood ({})", lost.field, lost.why);
                CallRoute::Everywhere(Some(reason))
            }
            None => self.route_to_named(named),
        }
    }

    fn route_to_named(&self, named: Option<&str>) -> CallRoute {
        let there = named.and_then(|name| self.fleet.as_ref()?.peer(name));
        match (named, there) {
            (_, Some(peer)) => CallRoute::There(peer),
            (Some(EVERYWHERE), None) => CallRoute::Everywhere(None),
            _ => CallRoute::Here,
        }
    }

    /// Returns whether a stop clearly names another node: its arguments are a well-formed object, its `node` is exactly the
    /// name of a known other node, and nothing beside that says "all". In case of doubt this node stops first.
    pub(super) fn names_other_node(&self, arguments: &ReceivedArguments) -> bool {
        let ReceivedArguments::Value(Value::Object(fields)) = arguments else {
            return false;
        };
        let named = fields.get("node").and_then(Value::as_str);
        let fleet = self.fleet.as_ref();
        named.is_some_and(|name| fleet.is_some_and(|fleet| fleet.peer(name).is_some()))
            && !says_all(arguments)
    }

    /// Passes a call on to another node.
    pub(super) async fn pass_on(
        &self,
        peer: &FleetPeer,
        tool: &ToolDefinition,
        request: &ToolRequest,
        watch: &RemoteCallWatch,
    ) -> Reply {
        let Some(fleet) = &self.fleet else {
            return Reply::failed("this node knows no other node");
        };
        let is_dry_run = says_dry_run(tool, &request.arguments);
        if let Err(reply) = self.check_certificate(tool, request, is_dry_run) {
            return *reply;
        }
        let moves = tool.effect == ToolEffect::Moves;
        // Before the stops are looked at: one that comes later gives the call up.
        let given_up = self.passed_on_motion.token();
        if self.is_overtaken(tool, request) {
            return stopped_before_passing_on();
        }
        if moves && self.is_ending() {
            return *refused("ending", ENDING);
        }
        let outgoing_call = self.outgoing_call(peer, tool, request);
        let answer = tokio::select! {
            answer = fleet.forward(peer, outgoing_call, tool.effect, watch) => answer,
            () = given_up.cancelled(), if moves => return given_up_here(peer),
        };
        match answer {
            // Every answer of a node says whether it was a success.
            Ok(answer)
                if answer
                    .structured
                    .get("success")
                    .is_some_and(Value::is_boolean) =>
            {
                reply_from_peer(peer, answer)
            }
            Ok(_) => {
                let reason = "the program that answers there is not such a node".to_owned();
                no_answer(peer, tool, &RemoteCallError::Lost(reason))
            }
            Err(failure) => no_answer(peer, tool, &failure),
        }
    }

    fn outgoing_call(
        &self,
        peer: &FleetPeer,
        tool: &ToolDefinition,
        request: &ToolRequest,
    ) -> OutgoingCall {
        let role = match (&request.principal, request.who) {
            (Some(principal), _) => principal.role,
            (None, ActorRank::Operator) => caller::CallerRole::Operator,
            (None, _) => caller::CallerRole::Planner,
        };
        OutgoingCall {
            tool: tool.name.clone(),
            arguments: request.arguments.clone(),
            hop: CallHop {
                from: self.file.name.clone(),
                called: peer.name.clone(),
                role: Some(role.to_string()),
                caller: request.caller.clone(),
                queue: None,
                order: Some(self.stop_order(request, tool.effect)),
            },
        }
    }

    /// Tells every other node to stop, all at once and by every available path, and returns what each answered.
    pub(super) async fn stop_others(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
    ) -> Vec<Value> {
        let peers = self.fleet.as_deref().map(Fleet::peers).unwrap_or_default();
        let nobody = RemoteCallWatch::unobserved();
        let requests = peers.iter().map(|peer| async {
            let reply = self.pass_on(peer, tool, request, &nobody).await;
            (peer.name.clone(), stop_result(&peer.name, &reply))
        });
        let stop = FleetStop {
            is_emergency: false,
            is_operators: request.who == ActorRank::Operator,
        };
        let mut duplicates = self.duplicate_names();
        let by_http = futures::future::join_all(requests);
        let (by_http, by_engine) = futures::join!(by_http, self.stop_by_engine(stop));
        duplicates.extend(self.duplicate_names());
        let mut lines: BTreeMap<String, Value> = by_http.into_iter().collect();
        for (name, answer) in by_engine {
            // One path that delivered the stop is enough, so the other's failure is not reported then. HTTP reaches only one of
            // several nodes with the same name.
            let is_one_of_several = duplicates.contains(&name);
            if is_one_of_several || !lines.get(&name).is_some_and(is_stopped) {
                let line = engine_stop_result(&name, answer);
                if is_one_of_several || is_stopped(&line) || !lines.contains_key(&name) {
                    lines.insert(name, line);
                }
            }
        }
        lines.into_values().collect()
    }

    /// Returns the names by which several nodes announce themselves.
    fn duplicate_names(&self) -> BTreeSet<String> {
        let fleet = self.fleet.iter();
        let announced = fleet.flat_map(|fleet| fleet.presence().announced());
        let duplicates = announced.filter(|(_, count)| *count > 1);
        duplicates.map(|(name, _)| name).collect()
    }

    /// Stops every other node by the fleet's engine; does nothing if there is none.
    pub async fn stop_by_engine(
        &self,
        stop: FleetStop,
    ) -> BTreeMap<String, Result<StopAcknowledgement, String>> {
        match &self.fleet {
            Some(fleet) => fleet.stop_by_engine(stop).await.unwrap_or_default(),
            None => BTreeMap::new(),
        }
    }

    /// Builds the answer to a stop of every node from this node's own answer and those of the others.
    pub(super) fn stopped_everywhere(
        &self,
        own: Reply,
        others: Vec<Value>,
        reason: Option<&str>,
    ) -> Reply {
        let name = &self.file.name;
        let mut nodes = vec![stop_result(name, &own)];
        nodes.extend(others);
        let failed = !nodes.iter().all(is_stopped);
        let mut reply = own.reworded(summary_lines("node", &nodes));
        reply.is_error = failed;
        reply.set("success", !failed);
        reply.set("nodes", nodes);
        match reason {
            Some(reason) => {
                reply.hint(&format!("{reason}, so all nodes in reach were sent a stop"))
            }
            None => reply,
        }
    }
}

/// Returns whether a complaint leaves it unclear which node is meant.
fn is_about_node(complaint: &ArgumentComplaint) -> bool {
    complaint.path == "node"
}

/// Keys whose texts explain a stop, and name no node.
const EXPLANATIONS: [&str; 8] = [
    "_meta",
    "comment",
    "explanation",
    "message",
    "note",
    "notes",
    "reason",
    "why",
];

/// Returns an argument of a stop that was lost and may have named a node; not an unknown key such as `reason`.
fn lost_by_a_stop(reading: &ArgumentReading) -> Option<&ArgumentRepair> {
    let is_lost = |repair: &&ArgumentRepair| {
        repair.class == RepairClass::L2 && !EXPLANATIONS.contains(&repair.field.as_str())
    };
    let lost = reading.repairs.iter().filter(is_lost);
    // `node` itself, if it was lost; otherwise the first.
    lost.min_by_key(|repair| repair.field != "node")
}

/// Returns whether arguments hold a word for all: `{"everywhere": true}`, `{"target": "all arms"}`, `stop all`.
fn says_all(arguments: &ReceivedArguments) -> bool {
    const WORDS: [&str; 8] = [
        "all",
        "every",
        "each",
        "everywhere",
        "everything",
        "everyone",
        "global",
        "fleet",
    ];
    let is_in = |text: &str| {
        let mut words = text.split(|c: char| !c.is_alphabetic());
        words.any(|word| WORDS.iter().any(|all| word.eq_ignore_ascii_case(all)))
    };
    match arguments {
        ReceivedArguments::Absent => false,
        ReceivedArguments::Text(text) => is_in(text),
        ReceivedArguments::Value(Value::Object(sent)) => {
            let may_say = |key: &str| key != "node" && !EXPLANATIONS.contains(&key);
            let mut beside = sent.iter().filter(|(key, _)| may_say(key));
            let is_all = sent.get("node").and_then(Value::as_str) == Some(EVERYWHERE);
            is_all || beside.any(|(key, value)| is_in(key) || is_in(&value.to_string()))
        }
        ReceivedArguments::Value(value) => is_in(&value.to_string()),
    }
}

/// Returns whether arguments for another node say clearly that nothing is to move: `dry_run` is `true`, and every key is exactly the name
/// of a parameter, so that no other can be read as it.
fn says_dry_run(tool: &ToolDefinition, arguments: &ReceivedArguments) -> bool {
    let ReceivedArguments::Value(Value::Object(sent)) = arguments else {
        return false;
    };
    let is_parameter = |key: &String| tool.parameters.iter().any(|one| one.name == *key);
    sent.get("dry_run") == Some(&json!(true)) && sent.keys().all(is_parameter)
}

/// Returns the answer of another node. One that says that it was no success is an error, even if it is not marked as one.
fn reply_from_peer(peer: &FleetPeer, mut reply: Reply) -> Reply {
    let is_preview = reply.code() == Some("preview_only");
    reply.is_error |= !is_preview && reply.structured.get("success") == Some(&json!(false));
    reply.text = format!("{}: {}", peer.name, reply.text);
    reply.set("node", &peer.name);
    reply
}

/// Returns the answer to a call that was given up at this node, by dropping its connection.
fn given_up_here(peer: &FleetPeer) -> Reply {
    let name = &peer.name;
    Reply::failed(format!(
        "this node was stopped or is shutting down, so it dropped the call that it had passed to node {name}. If that node still runs, it stops what the call began. Next: `sense` with `node` {name} shows its arm"
    ))
    .with("code", "stopped")
    .with("node", name)
}

fn no_answer(peer: &FleetPeer, tool: &ToolDefinition, failure: &RemoteCallError) -> Reply {
    let name = &peer.name;
    let failed = format!("node {name} at {}: {failure}", peer.address);
    let message = match (tool.effect, failure) {
        (ToolEffect::Stops, _) => may_still_move(&failed),
        (ToolEffect::Reads, _) => with_next(failed, "try again, or look with `list_nodes`"),
        (
            ToolEffect::Moves,
            RemoteCallError::Unreached(_)
            | RemoteCallError::Refused(_)
            | RemoteCallError::Ambiguous(_),
        ) => with_statement(failed, NOTHING_MOVED),
        // The connection is closed by now, so a node that still runs stops what the call moved.
        (ToolEffect::Moves, _) => format!(
            "{}; something may have moved. If that node still runs, it stops what this call began. Next: `sense` with `node` {name} shows its arm",
            next_apart(&failed).0
        ),
    };
    Reply::failed(message)
        .with("code", code(failure))
        .with("node", name)
}

fn code(failure: &RemoteCallError) -> &'static str {
    match failure {
        RemoteCallError::Unreached(_) => "unreachable",
        RemoteCallError::Lost(_) => "lost",
        RemoteCallError::Refused(_) => "refused_there",
        RemoteCallError::Silent(_) => "silent",
        RemoteCallError::Cancelled => "cancelled",
        RemoteCallError::Ambiguous(_) => "ambiguous_node",
    }
}

/// Says what to do about a stop that failed, whatever else would help.
fn may_still_move(failed: &str) -> String {
    let failed = next_apart(failed).0;
    format!("{failed}; that node's arm may still move. Next: go to that arm, or cut its power")
}

/// Returns one node's result of a stop of all nodes that came by the fleet's engine.
fn engine_stop_result(name: &str, answer: Result<StopAcknowledgement, String>) -> Value {
    let (success, message) = match answer {
        Ok(answer) => (answer.success, answer.message),
        Err(error) => (false, may_still_move(&error)),
    };
    json!({ "node": name, "success": success, "message": message, "by": "engine" })
}

/// Returns one node's result of a stop of all nodes.
fn stop_result(name: &str, reply: &Reply) -> Value {
    let stands = |arm: &Value| arm.pointer("/report/verified") == Some(&json!(true));
    let arms = reply.structured.get("arms").and_then(Value::as_array);
    let is_stopped = !reply.is_error
        && reply.structured.get("success") != Some(&json!(false))
        && arms.is_none_or(|arms| arms.iter().all(stands));
    let head = [("node", json!(name)), ("success", json!(is_stopped))];
    let keys = ["message", "code", "state", "stopped_after_ms", "arms"];
    with_fields(head, reply, &keys)
}

fn is_stopped(line: &Value) -> bool {
    line.get("success") == Some(&json!(true))
}

/// Returns these fields of an answer, after one that names its owner.
pub(super) fn summary(owner_key: &str, name: &str, reply: &Reply, keys: &[&str]) -> Value {
    with_fields([(owner_key, json!(name))], reply, keys)
}

/// Returns these fields of an answer, after the fields of `head`.
fn with_fields<const N: usize>(head: [(&str, Value); N], reply: &Reply, keys: &[&str]) -> Value {
    let fields = keys
        .iter()
        .filter_map(|key| Some((*key, reply.structured.get(*key)?.clone())));
    let all = head.into_iter().chain(fields);
    Value::Object(all.map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Joins the messages of such summaries, each after its owner.
pub(super) fn summary_lines(owner_key: &str, summaries: &[Value]) -> String {
    let lines = summaries.iter().filter_map(|one| {
        let text = |key: &str| one.get(key)?.as_str();
        Some(format!("{}: {}", text(owner_key)?, text("message")?))
    });
    lines.collect::<Vec<String>>().join("; ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use args::ForgivenessProfile;
    use catalogue::{KnownNames, TOOLS};

    /// Returns whether a stop with these arguments goes to every node, on one that knows another, `left`.
    fn goes_everywhere(arguments: Value) -> bool {
        let nodes = vec!["hub".to_owned(), "left".to_owned()];
        let everywhere = [nodes.clone(), vec![EVERYWHERE.to_owned()]].concat();
        let known = KnownNames {
            nodes,
            everywhere,
            ..KnownNames::default()
        };
        let stop = TOOLS.iter().find(|tool| tool.name == "stop").unwrap();
        let policy = ReaderPolicy::new(ToolEffect::Stops, ForgivenessProfile::Guarded);
        let arguments = ReceivedArguments::Value(arguments);
        let reading = args::read(&open_shape(stop, &known), &policy, arguments.clone()).unwrap();
        says_all(&arguments) || lost_by_a_stop(&reading).is_some()
    }

    #[test]
    fn a_stop_goes_everywhere_where_it_says_all_or_may_have_named_a_node() {
        for arguments in [
            json!({"node": "all"}),
            json!({"node": "left", "all": true}),
            json!({"node": "left", "everywhere": true}),
            json!({"target": "all_arms"}),
            json!("all"),
            json!({"nodes": ["left"]}),
            json!(["left"]),
            json!({"peer": "left"}),
            json!({"arm": "left"}),
            json!("left"),
            json!(r#"{"node":"left""#),
            json!({"node": "right"}),
            json!({"node": ["left", "right"]}),
            json!({"node": "left", "peer": "right", "arm": 2}),
            json!("[object Object]"),
        ] {
            assert!(goes_everywhere(arguments.clone()), "{arguments}");
        }
        for arguments in [
            json!({}),
            json!(null),
            json!({"node": "left"}),
            json!({"node": "Left"}),
            json!({"node": "left", "reason": "ink was spilled"}),
            json!({"reason": "ink was spilled"}),
            json!({"node": "left", "reason": "not safe"}),
            json!({"reason": "all done, do not go on"}),
            json!({"arguments": {"node": "left"}}),
            json!("{node: left}"),
        ] {
            assert!(!goes_everywhere(arguments.clone()), "{arguments}");
        }
    }

    #[test]
    fn an_answer_whose_data_say_that_it_failed_is_an_error() {
        let peer = FleetPeer {
            name: "left".to_owned(),
            address: String::new(),
            tags: Vec::new(),
        };
        for (success, is_error) in [(true, false), (false, true)] {
            let mut answer = Reply::done("standing".to_owned());
            answer.set("success", success);
            assert_eq!(reply_from_peer(&peer, answer).is_error, is_error);
        }
    }

    #[test]
    fn a_node_has_stopped_where_neither_its_answer_nor_data_deny_it() {
        let arms = |report: Value| json!({ "success": true, "arms": [{ "report": report }] });
        for (is_error, data, has_stopped) in [
            (false, json!({}), true),
            (false, json!({ "success": false }), false),
            (true, json!({ "success": true }), false),
            (false, arms(json!({ "verified": true })), true),
            (false, arms(json!({ "verified": false })), false),
            (false, arms(json!(null)), false),
        ] {
            let mut reply = Reply::done("standing".to_owned());
            reply.is_error = is_error;
            reply.structured = data.as_object().cloned().unwrap_or_default();
            assert_eq!(is_stopped(&stop_result("left", &reply)), has_stopped);
        }
    }
}
