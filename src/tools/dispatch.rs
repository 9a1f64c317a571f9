//! From a call as it came to the tool that does it: find, read, do, say what was understood.

use std::sync::{Arc, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tracing::Instrument as _;

use super::answer::{Reply, Wording as _};
use super::carry::Call;
use super::declared::Declared;
use super::route::Way;
use super::shape::shape;
use super::{
    Node, Seat, Watch, admit, align, audit, list_nodes, record, relay, repair_log, reset, sense,
    stop, stroke, withhold,
};
use args::name::Resolution;
use args::{self, Advice, Policy, Reading, Received, Refusal};
use caller::Standing;
use catalogue::{EVERYWHERE, Effect, Here, ListedNames, TOOLS, Tool};
use config::{NamesEntry, NodeFile};
use fleet::Hop;
use job::Accepted;
use permit::Who;
use scene::{Library, Scene};

pub(super) use args::Memory;

/// A call as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tool's name, perhaps decorated.
    pub tool: String,
    /// The arguments.
    pub arguments: Received,
    /// The same text for the same caller.
    pub caller: String,
    /// Source of the call, such as an operator at the node.
    pub who: Who,
    /// Permissions of the caller's token, where callers need one.
    pub standing: Option<Standing>,
    /// Set where another node passes the call on.
    pub hop: Option<Hop>,
    /// True if a declared tool makes the call on its caller's behalf.
    pub is_step: bool,
}

/// Context of one tool call.
pub(super) struct Order<'a> {
    pub(super) node: &'a Arc<Node>,
    pub(super) reading: &'a Reading,
    pub(super) watch: &'a Watch,
    pub(super) who: Who,
    /// Permissions of the caller's token, where callers need one.
    pub(super) standing: Option<&'a Standing>,
    /// The same text for the same caller.
    pub(super) caller: &'a str,
    /// The arguments as they came.
    pub(super) received: String,
    /// True if a different node passes the call on.
    pub(super) is_passed_on: bool,
}

impl Node {
    /// Returns the names that this node knows now.
    #[must_use]
    pub fn here(&self) -> Here {
        Arc::unwrap_or_clone(self.known())
    }

    /// Returns the names that a planner is shown.
    #[must_use]
    pub fn shown(&self) -> Here {
        shown(&self.file, &self.scenes, &self.declared)
    }

    /// Returns the names of nodes only.
    pub(super) fn neighbours(&self) -> Here {
        let nodes = names_of_nodes(&self.file);
        Here {
            everywhere: everywhere(&nodes),
            nodes,
            ..Here::default()
        }
    }

    /// Returns whether a call is over before another thread could take it: it only looks, at what is in memory, and names
    /// nothing. It opens no file, asks no node and no camera, builds no scene and paints no picture.
    #[must_use]
    pub fn is_brief(&self, request: &Request) -> bool {
        let is_asked = self.fleet.is_none() && self.cameras.is_empty();
        let in_memory = is_asked && self.scenes.folder().is_none();
        let reads = |tool: &Tool| tool.effect == Effect::Reads;
        in_memory
            && names_nothing(&request.arguments)
            && resolve(&request.tool, &[]).is_some_and(reads)
            && self.seats.iter().all(|seat| seat.laid().is_none())
    }

    /// Returns whether a tool of this name writes into the node's own record.
    #[must_use]
    pub fn writes(&self, tool: &str) -> bool {
        resolve(tool, self.declared.tools()).is_some_and(|tool| tool.writes)
    }

    /// Does a call. The future must be run to its end: a caller that gives up says so with `watch`.
    pub fn call(self: Arc<Self>, request: Request, watch: Watch) -> BoxFuture<'static, Reply> {
        // On the heap: a declared tool calls others by the same way.
        Box::pin(async move {
            let span = tracing::info_span!(
                "call",
                node = self.file.name,
                client = request.caller,
                tool = request.tool,
                job = tracing::field::Empty
            );
            self.called(request, watch).instrument(span).await
        })
    }

    async fn called(self: Arc<Self>, request: Request, watch: Watch) -> Reply {
        let asked = audit::Asked::of(&request);
        let tool = self.tool_for(&request.tool);
        let looks = tool.is_some_and(|tool| tool.effect == Effect::Reads && !tool.writes);
        let reply = Arc::clone(&self).carry(request, watch).await;
        let reply = self.refusals.judge(&asked, self.truthful(reply));
        if looks {
            self.audit.note_behind("call", asked.told(&reply));
        } else {
            self.audit.note("call", asked.told(&reply));
        }
        if reply.is_error {
            tracing::info!(code = reply.code(), "not done");
        } else if looks {
            tracing::debug!("done");
        } else {
            tracing::info!("done");
        }
        reply
    }

    async fn carry(self: Arc<Self>, request: Request, watch: Watch) -> Reply {
        let Some(tool) = self.tool_for(&request.tool) else {
            return self.unknown_tool(&request, &watch).await;
        };
        // A stop waits for nothing: not for its arguments to be read, nor for the folder of scenes.
        if request.hop.is_some() || !self.spares_us(&request.arguments) {
            self.stop_if_meant(tool, request.who);
        }
        let admitted = self.admits(tool, &request);
        if let Err(reply) = admitted.and_then(|()| self.offers(tool, &request)) {
            return *reply;
        }
        let reply = match self.way(tool, &request) {
            Way::Here => self.here_alone(tool, &request, &watch).await,
            Way::There(peer) => self.pass_on(&peer, tool, &request, &watch).await,
            Way::Nowhere(reply) => *reply,
            Way::Everywhere(unknown) => {
                let own = self.here_alone(tool, &request, &watch);
                let (own, others) = futures::join!(own, self.stop_others(tool, &request));
                self.stopped_everywhere(own, others, unknown.as_deref())
            }
        };
        self.named_otherwise(tool, &request, reply)
    }

    async fn here_alone(self: &Arc<Self>, tool: &Tool, request: &Request, watch: &Watch) -> Reply {
        let reading = match self.read(tool, request) {
            Ok(reading) => reading,
            Err((refusal, advice)) => {
                repair_log::refused(tool, &request.arguments, &refusal);
                let here = self.known();
                return refused(tool, &here, &refusal, advice);
            }
        };
        repair_log::repaired(tool, &request.arguments, &reading);
        if let Err(reply) = self.is_meant(tool, request, &reading) {
            return *reply;
        }
        let order = Order {
            node: self,
            reading: &reading,
            watch,
            who: request.who,
            standing: request.standing.as_ref(),
            caller: &request.caller,
            received: record::words(&request.arguments),
            is_passed_on: request.hop.is_some(),
        };
        // A declared tool has been asked for all of its steps.
        if !request.is_step
            && let Err(reply) = order.is_qualified(tool)
        {
            return reply.understood(&reading);
        }
        // A declared tool takes no arm itself: its steps do.
        let is_declared = self.declared.deed(&tool.name).is_some();
        let taken = match order.lease(if is_declared {
            Effect::Reads
        } else {
            tool.effect
        }) {
            Ok(taken) => taken,
            Err(reply) => return reply.understood(&reading),
        };
        let reply = match tool.name.as_str() {
            "align" => align::call(&order).await,
            "reset" => reset::call(&order).await,
            "sense" => sense::call(&order).await,
            "stroke" => stroke::call(&order).await,
            "stop" => stop::call(&order).await,
            "list_nodes" => list_nodes::call(&order).await,
            _ => relay::call(&order, tool).await,
        };
        admit::give_back(taken, &reply);
        let reply = reply.understood(&reading);
        if self.is_daring() {
            reply.hint(
                "this node reads leniently though its arm is real (forgiveness = \"lenient\")",
            )
        } else {
            reply
        }
    }

    fn read(&self, tool: &Tool, request: &Request) -> Result<Reading, (Box<Refusal>, Advice)> {
        let policy = self.policy(tool);
        let outcome = self.read_whole(tool, request, &policy);
        self.judged(&request.caller, tool, &policy, outcome)
    }

    fn read_whole(
        &self,
        tool: &Tool,
        request: &Request,
        policy: &Policy,
    ) -> Result<Reading, Box<Refusal>> {
        if self.declared.is_unread(&tool.name) {
            return args::pass_on(&request.arguments);
        }
        let shape = match &request.hop {
            None => self.shape(tool),
            Some(hop) => {
                let mut here = self.here();
                // Other nodes call this one what their files say.
                here.nodes.push(hop.called.clone());
                here.everywhere.push(hop.called.clone());
                Arc::new(shape(tool, &here))
            }
        };
        args::read(&shape, policy, request.arguments.clone())
    }

    pub(super) fn judged(
        &self,
        caller: &str,
        tool: &Tool,
        policy: &Policy,
        outcome: Result<Reading, Box<Refusal>>,
    ) -> Result<Reading, (Box<Refusal>, Advice)> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.judge(caller, &tool.name, policy, outcome)
    }

    /// Refuses what another node has passed on and means a third one: calls go one hop.
    fn is_meant(
        &self,
        tool: &Tool,
        request: &Request,
        reading: &Reading,
    ) -> Result<(), Box<Reply>> {
        let named = reading.understood.get("node").and_then(Value::as_str);
        let (Some(hop), Some(named)) = (&request.hop, named) else {
            return Ok(());
        };
        let own = &self.file.name;
        if tool.effect == Effect::Stops || named == own || named == hop.called {
            return Ok(());
        }
        Err(Reply::failed(format!(
            "this is node `{own}`, to which node `{}` passed the call on; calls go one hop, so call node `{named}` from a node that knows it; nothing moved",
            hop.from
        ))
        .with("code", "one_hop")
        .boxed())
    }

    fn policy(&self, tool: &Tool) -> Policy {
        let only_default =
            |seat: &Arc<Seat>| seat.permits().is_only("default", seat.motion.clock().now());
        // Which scene a declared tool means, or whether it means one, its own name says.
        let is_built_in = self.declared.deed(&tool.name).is_none();
        Policy {
            default_is_all_enabled: is_built_in && self.seats.iter().all(only_default),
            ..Policy::new(tool.effect, self.profile())
        }
    }
}

impl Order<'_> {
    /// A text argument, as understood.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.reading.understood.get(name).and_then(Value::as_str)
    }

    /// A truth, as understood.
    pub(super) fn is(&self, name: &str) -> bool {
        self.reading
            .understood
            .get(name)
            .and_then(Value::as_bool)
            .unwrap_or(false)
    }

    /// The arm that is meant.
    pub(super) fn seat(&self) -> Result<&Arc<Seat>, Box<Reply>> {
        let name = self.text("arm");
        self.node.seat(name).ok_or_else(|| {
            Reply::failed(format!(
                "this node has no arm `{}`; nothing moved",
                name.unwrap_or("default")
            ))
            .boxed()
        })
    }

    /// The scene that is meant, with its overlay.
    pub(super) fn scene(&self, seat: &Seat) -> Result<Arc<Scene>, Box<Reply>> {
        let name = self.text("scene").unwrap_or("default");
        self.node
            .scene(seat, name, self.text("meta"))
            .map_err(|why| {
                Reply::failed(format!("{why}; nothing moved"))
                    .with("code", "scene")
                    .boxed()
            })
    }

    /// Describes the call as a motion job. Two calls are the same job if their tool, arguments and scene revision are
    /// equal.
    pub(super) fn job(&self, tool: &'static str, scene: &Scene, again: bool) -> Call {
        let mut understood = self.reading.understood.clone();
        understood.remove("again");
        understood.remove("debug");
        if let Some(plan) = self.plan_hash() {
            understood.insert("plan".to_owned(), plan.into());
        }
        let key = format!("{tool} {} {}", Value::Object(understood), scene.revision);
        let accepted = Accepted {
            tool: tool.to_owned(),
            arm: self
                .seat()
                .map(|seat| seat.name.clone())
                .unwrap_or_default(),
            scene: scene.name.clone(),
            overlay: scene.overlay.clone().unwrap_or_default(),
            revision: scene.revision.hex(),
            caller: self.caller.to_owned(),
            received: self.received.clone(),
            understood: Value::Object(self.reading.understood.clone()).to_string(),
            repairs: serde_json::to_string(&self.reading.repairs).unwrap_or_default(),
            ..Accepted::default()
        };
        Call {
            tool,
            scene: scene.title(),
            accepted,
            who: self.who,
            key,
            again,
        }
    }
}

/// Returns whether arguments are a few numbers and truths at most.
fn names_nothing(arguments: &Received) -> bool {
    const FEW: usize = 4;
    let is_plain = |value: &Value| value.is_null() || value.is_boolean() || value.is_number();
    match arguments {
        Received::Absent => true,
        Received::Value(Value::Object(said)) => said.len() <= FEW && said.values().all(is_plain),
        Received::Value(_) | Received::Text(_) => false,
    }
}

/// Returns the names that a node of this file knows, with or without attached arms.
#[must_use]
pub fn here(file: &NodeFile, library: &Library, declared: &Declared) -> Here {
    let models: Vec<&str> = file.arms.iter().map(|arm| arm.model.as_str()).collect();
    let mut scenes = library.scenes_for(&models);
    // The default one first, as lists show it.
    scenes.sort_by_key(|name| name != "default");
    let nodes = names_of_nodes(file);
    Here {
        scenes,
        overlays: library.overlays(),
        arms: file.arms.iter().map(|arm| arm.name.clone()).collect(),
        everywhere: everywhere(&nodes),
        nodes,
        listed_names: match file.names {
            NamesEntry::Both => ListedNames::Both,
            NamesEntry::Plain => ListedNames::Plain,
            NamesEntry::Robot => ListedNames::Robot,
        },
        reworded: declared.reworded(),
        withheld: withhold::names(file, declared),
        declared: declared.shared(),
    }
}

/// Returns the names that a planner is shown in an exam: without aliases, which would count as separate tools.
#[must_use]
pub fn shown(file: &NodeFile, library: &Library, declared: &Declared) -> Here {
    Here {
        listed_names: ListedNames::Plain,
        ..here(file, library, declared)
    }
}

/// This node, then the others.
fn names_of_nodes(file: &NodeFile) -> Vec<String> {
    let others = file.peers.iter().map(|peer| peer.name.clone());
    std::iter::once(file.name.clone()).chain(others).collect()
}

fn everywhere(nodes: &[String]) -> Vec<String> {
    let all = std::iter::once(EVERYWHERE.to_owned());
    nodes.iter().cloned().chain(all).collect()
}

/// The tool that a name means, form aside.
pub(super) fn resolve<'a>(name: &str, declared: &'a [Tool]) -> Option<&'a Tool> {
    let all = || TOOLS.iter().chain(declared);
    let exactly = |tool: &&Tool| tool.names().any(|own| own == name);
    if let Some(tool) = all().find(exactly) {
        return Some(tool);
    }
    let (names, tools): (Vec<&str>, Vec<&Tool>) = all()
        .flat_map(|tool| tool.names().map(move |name| (name, tool)))
        .unzip();
    match args::name::resolve(name, &names) {
        Resolution::Resolved { index, .. } => tools.get(index).copied(),
        // `e_stop` and `estop` differ in form only, and are one tool.
        Resolution::Ambiguous { among } => {
            let mut meant =
                all().filter(|tool| tool.names().any(|name| among.iter().any(|one| one == name)));
            let first = meant.next()?;
            meant.next().is_none().then_some(first)
        }
        Resolution::Unknown { .. } => None,
    }
}

/// Returns the answer to refused arguments. It ends with the shortest call that works: of a tool that moves nothing the minimal
/// one, otherwise the corrected one.
pub(super) fn refused(tool: &Tool, here: &Here, refusal: &Refusal, advice: Advice) -> Reply {
    let corrected = refusal.corrected.clone().map(Value::Object);
    let mut told = vec![refusal.to_string()];
    if advice == Advice::AskTheOperator {
        told.push("this failed the same way before: ask the operator".to_owned());
    }
    let call = corrected.as_ref();
    told.extend(call.map(|call| format!("corrected call: {} {call}", tool.name)));
    told.extend(Some(refusal.guidance.clone()).filter(|words| !words.is_empty()));
    let needless = refusal.repairs.iter();
    let needless = needless.filter(|repair| repair.why.contains("do not send "));
    told.extend(needless.map(|repair| format!("do not send {}", repair.field)));
    if tool.effect != Effect::Moves && tool.required().next().is_none() {
        told.push(format!("send {}", tool.minimal(here)));
    }
    let reply = Reply::failed(format!("{}; nothing moved", told.join("; ")))
        .with("code", "arguments_refused")
        .with("complaints", &refusal.complaints)
        .with("repairs", &refusal.repairs)
        .with("understood", &refusal.good)
        .with("moved", false);
    match corrected {
        Some(call) => reply.with(
            "corrected_call",
            json!({"tool": tool.name, "arguments": call}),
        ),
        None => reply,
    }
}
