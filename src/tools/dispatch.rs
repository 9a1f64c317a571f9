//! Dispatches calls: finds the tool, reads the arguments, runs it and reports what was understood.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tracing::Instrument as _;

use super::declared_tools::DeclaredTools;
use super::doubt::{self, DoubtfulCall, MotionOrder};
use super::job_board::JobKey;
use super::motion_job::{MotionJobRequest, accepted_job};
use super::node::check_is_for;
use super::reply::{self, Reply, refused};
use super::route::CallRoute;
use super::team::TeamSeat;
use super::tool_shape::shape;
use super::{
    AttachedArm, Node, RemoteCallWatch, access, align, audit, journal_entries, list_nodes,
    refusal_codes, repair_log, reset, result_pictures, scene_part, sense, sequence, stop, stroke,
    tool_filter,
};
use args::name::NameResolution;
use args::{
    self, ArgumentReading, ArgumentRefusal, Leftover, ReaderPolicy, ReceivedArguments, Understood,
    Verdict,
};
use base::wording::with_next;
use call::ArrivalStamp;
use caller::Principal;
use catalogue::{EVERYWHERE, KnownNames, ListedNames, TOOLS, ToolDefinition, ToolEffect};
use config::{NamesEntry, NodeFile};
use fleet::{CallHop, QueueTag};
use job::AcceptedJob;
use permit::ActorRank;
use scene::{Scene, SceneLibrary};

/// Hint with every result of a node that reads arguments leniently although its arm is real.
const LENIENT: &str = "this node ignores what it does not understand, although its arm is real (`forgiveness = \"lenient\"`)";

/// A call as received.
#[derive(Clone, Debug)]
pub struct ToolRequest {
    /// The tool's name, perhaps decorated.
    pub tool: String,
    /// The arguments.
    pub arguments: ReceivedArguments,
    /// Key of the caller: the same text for the same caller.
    pub caller: String,
    /// Source of the call, such as an operator at the node.
    pub who: ActorRank,
    /// Permissions of the caller's token, where callers need one.
    pub principal: Option<Principal>,
    /// Set where another node passes the call on.
    pub hop: Option<CallHop>,
    /// True if a declared tool makes the call on its caller's behalf.
    pub is_step: bool,
    /// The stops heard before it: a later one ends what it asks for.
    pub arrived: ArrivalStamp,
}

impl ToolRequest {
    /// Returns the key under which the caller is remembered: a token, else a session, else standard input. All others are one.
    pub(super) fn memory_key(&self) -> &str {
        call::remembered_key(&self.caller)
    }
}

/// Context of one tool call.
pub(super) struct ToolContext<'a> {
    pub(super) node: &'a Arc<Node>,
    pub(super) tool: &'a ToolDefinition,
    pub(super) reading: &'a ArgumentReading,
    pub(super) watch: &'a RemoteCallWatch,
    /// The call as received.
    pub(super) request: &'a ToolRequest,
    /// What was understood of it; `None` for the preview of a doubtful call, which moves nothing.
    pub(super) order: Option<&'a Arc<Understood>>,
}

/// A call that was read, with what it may do.
enum ReadCall {
    /// It is carried out.
    Understood(Arc<Understood>),
    /// It is shown, because something of it was not understood; set if the same call was shown before.
    Doubtful(ArgumentReading, bool),
}

/// The answer to a call, and whose it is.
enum CallAnswer {
    Own(Reply),
    OfOtherNode(Reply),
}

impl ReadCall {
    fn reading(&self) -> &ArgumentReading {
        match self {
            Self::Understood(understood) => understood.reading(),
            Self::Doubtful(reading, _) => reading,
        }
    }
}

impl Node {
    /// Returns the names that this node knows now.
    #[must_use]
    pub fn all_names(&self) -> KnownNames {
        Arc::unwrap_or_clone(self.known_names())
    }

    /// Returns the names of nodes only.
    pub(super) fn node_names(&self) -> KnownNames {
        let nodes = names_of_nodes(&self.file);
        KnownNames {
            everywhere: everywhere(&nodes),
            nodes,
            ..KnownNames::default()
        }
    }

    /// Returns whether a call takes less time than handing it to another thread: it only reads what is in memory, and
    /// names nothing. It opens no file, asks no node and no camera, builds no scene and paints no picture.
    #[must_use]
    pub fn is_brief(&self, request: &ToolRequest) -> bool {
        let is_alone = self.fleet.is_none() && self.cameras.is_empty();
        let in_memory = is_alone && self.scenes.folder().is_none();
        let reads = |tool: &ToolDefinition| tool.effect == ToolEffect::Reads;
        in_memory
            && request.hop.is_none()
            && names_nothing(&request.arguments)
            && resolve(&request.tool, &[]).is_some_and(reads)
            && self.arms.iter().all(|arm| arm.placed_scene().is_none())
    }

    /// Returns whether a tool of this name writes into the node's own record.
    #[must_use]
    pub fn writes(&self, tool: &str) -> bool {
        resolve(tool, self.declared.tools()).is_some_and(|tool| tool.writes)
    }

    /// Carries out a call. The future must be run to its end: a caller that gives up says so with `watch`.
    pub fn call(
        self: Arc<Self>,
        request: ToolRequest,
        watch: RemoteCallWatch,
    ) -> BoxFuture<'static, Reply> {
        // Boxed because a declared tool calls other tools through this function.
        Box::pin(async move {
            let span = tracing::info_span!(
                "call",
                node = self.file.name,
                client = request.caller,
                tool = request.tool,
                job = tracing::field::Empty
            );
            self.call_audited(request, watch).instrument(span).await
        })
    }

    async fn call_audited(self: Arc<Self>, request: ToolRequest, watch: RemoteCallWatch) -> Reply {
        let call = audit::AuditedCall::from_request(&request);
        let tool = self.intended_tool(&request.tool, &request.arguments);
        let tool = tool.or_else(|| self.stop_by_unknown_name(&request));
        let only_reads = tool.is_some_and(|tool| tool.effect == ToolEffect::Reads && !tool.writes);
        let is_step = request.is_step;
        let (reply, is_own) = match self.route_call(tool, request, watch).await {
            CallAnswer::Own(reply) => (reply, true),
            CallAnswer::OfOtherNode(reply) => (reply, false),
        };
        let reply = refusal_codes::with_step(self.narrow_claim(reply));
        let reply = self.refusals.judge(&call, reply);
        let reply = result_pictures::limit_pictures(reply, self.file.images);
        let reply = reply::without_picture(reply);
        if only_reads {
            self.audit.note_deferred("call", call.entry_text(&reply));
        } else {
            self.audit.note("call", call.entry_text(&reply));
        }
        if reply.is_error {
            tracing::info!(code = reply.code(), "not done");
        } else if only_reads {
            tracing::debug!("done");
        } else {
            tracing::info!("done");
        }
        // A step's answer is its sequence's, and another node has said its own state.
        match is_own && !is_step {
            true => self.with_state(reply),
            false => reply,
        }
    }

    async fn route_call(
        self: &Arc<Self>,
        tool: Option<&ToolDefinition>,
        request: ToolRequest,
        watch: RemoteCallWatch,
    ) -> CallAnswer {
        let Some(tool) = tool else {
            return CallAnswer::Own(self.no_such_tool(&request));
        };
        // A stop waits for nothing: not for its arguments to be read, nor for the folder of scenes.
        if request.hop.is_some() || !self.names_other_node(&request.arguments) {
            self.stop_if_requested(tool, &request);
        }
        let admitted = self
            .check_access(tool, &request)
            .and_then(|()| self.check_offered(tool, &request))
            .and_then(|()| self.check_order(tool, &request));
        if let Err(reply) = admitted {
            return CallAnswer::Own(*reply);
        }
        let reply = match self.route(tool, &request) {
            CallRoute::Here => self.call_locally(tool, &request, &watch).await,
            CallRoute::There(peer) => {
                let reply = self.pass_on(&peer, tool, &request, &watch).await;
                return CallAnswer::OfOtherNode(self.note_other_name(tool, &request, reply));
            }
            CallRoute::Nowhere(reply) => *reply,
            CallRoute::Everywhere(reason) => {
                let own = self.call_locally(tool, &request, &watch);
                let (own, others) = futures::join!(own, self.stop_others(tool, &request));
                self.stopped_everywhere(own, others, reason.as_deref())
            }
        };
        CallAnswer::Own(self.note_other_name(tool, &request, reply))
    }

    async fn call_locally(
        self: &Arc<Self>,
        tool: &ToolDefinition,
        request: &ToolRequest,
        watch: &RemoteCallWatch,
    ) -> Reply {
        let call = match self.read(tool, request) {
            Ok(call) => call,
            Err(reply) => return *reply,
        };
        let reading = call.reading();
        repair_log::repaired(tool, &request.arguments, reading);
        if let Err(reply) = self.check_one_hop(tool, request, reading) {
            return *reply;
        }
        let ctx = ToolContext {
            node: self,
            tool,
            reading,
            watch,
            request,
            order: match &call {
                ReadCall::Understood(understood) => Some(understood),
                ReadCall::Doubtful(..) => None,
            },
        };
        let reply = self.answer(&ctx).await;
        let reply = match &call {
            ReadCall::Doubtful(_, is_repeated) => {
                let doubtful = DoubtfulCall {
                    tool,
                    names: &self.names_for(tool),
                    reading,
                    is_repeated: *is_repeated,
                };
                doubtful.answer(self, ctx.arm().ok().map(|arm| &**arm), reply)
            }
            ReadCall::Understood(_) => {
                doubt::warn_of_default(tool, &self.names_for(tool), reading, reply)
            }
        };
        let reply = match ctx.named_arm() {
            Some(arm) => self.with_arm_name(arm, reply),
            None => reply,
        };
        let reply = reply::with_understood(reply, reading);
        if self.is_lenient_on_hardware() {
            reply.hint(LENIENT)
        } else {
            reply
        }
    }

    /// Carries out a call that was understood.
    async fn answer(&self, ctx: &ToolContext<'_>) -> Reply {
        let tool = ctx.tool;
        if let Err(reply) = self.check_certificate(tool, ctx.request, ctx.is("dry_run")) {
            return *reply;
        }
        // A declared tool takes no lease itself; its steps do.
        let moves = tool.effect == ToolEffect::Moves && !self.is_declared(tool);
        let leased = match ctx.lease(moves) {
            Ok(leased) => leased,
            Err(reply) => return *reply,
        };
        let reply = match tool.name.as_str() {
            "align" => align::call(ctx).await,
            "reset" => reset::call(ctx).await,
            "sense" => sense::call(ctx).await,
            "stroke" => stroke::call(ctx).await,
            "stop" => Ok(stop::call(ctx).await),
            "list_nodes" => Ok(list_nodes::call(ctx).await),
            _ => Ok(sequence::call(ctx, tool).await),
        };
        let reply = reply.unwrap_or_else(|refused| *refused);
        access::release_if_unmoved(leased, &reply);
        reply
    }

    /// Returns whether a tool is declared by the node file rather than built in.
    pub(super) fn is_declared(&self, tool: &ToolDefinition) -> bool {
        self.declared.action(&tool.name).is_some()
    }

    /// Adds the arm that a call is about and does not name, where the node has several.
    fn note_arm(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
        reading: &mut ArgumentReading,
    ) -> Result<(), Box<Reply>> {
        let understood = &mut reading.understood;
        let is_of_one = self.has_several_arms() && self.is_of_one_arm(tool, understood);
        if !is_of_one || understood.contains_key("arm") {
            return Ok(());
        }
        let arm = match tool.name.as_str() {
            "reset" => self.arm_to_reset(request.who)?,
            _ => self.arm(None),
        };
        if let Some(arm) = arm {
            understood.insert("arm".to_owned(), arm.name.as_str().into());
        }
        Ok(())
    }

    /// Reads a call and decides what it may do.
    ///
    /// # Errors
    /// The answer, if it is refused.
    fn read(&self, tool: &ToolDefinition, request: &ToolRequest) -> Result<ReadCall, Box<Reply>> {
        let policy = self.policy(tool, request);
        let outcome = self.read_arguments(tool, request, &policy);
        let outcome = outcome.and_then(scene_part::apart);
        let outcome = outcome.and_then(|reading| self.with_remembered_plan(tool, reading));
        let outcome = match outcome {
            Ok(mut reading) => {
                self.leave_namespace(tool, request, &mut reading);
                let noted = self.note_arm(tool, request, &mut reading);
                noted.map_err(|reply| reply::with_understood(*reply, &reading).boxed())?;
                Ok(reading)
            }
            refused => refused,
        };
        let shape = self.shape(tool);
        let judged = args::judge(&shape, &policy, outcome);
        let (moves, now) = (
            tool.effect == ToolEffect::Moves && !request.is_step,
            self.clock.now(),
        );
        match judged {
            Verdict::Understood(understood) if moves && doubt::is_unclear_dry_run(&understood) => {
                let is_repeated = self.doubts.set(request, now);
                let mut reading = understood.into_reading();
                doubt::leave_unclear_dry_run(&mut reading);
                Ok(ReadCall::Doubtful(reading, is_repeated))
            }
            Verdict::Understood(understood) => {
                if moves {
                    self.doubts.settle(request, understood.reading());
                }
                Ok(ReadCall::Understood(Arc::new(understood)))
            }
            Verdict::Preview(reading) => {
                let is_repeated = self.doubts.set(request, now);
                let has_preview = shape.params.iter().any(|param| param.cautious.is_some());
                if has_preview {
                    return Ok(ReadCall::Doubtful(doubt::as_dry_run(reading), is_repeated));
                }
                Err(doubt::without_preview(tool, &self.names_for(tool), &reading).boxed())
            }
            Verdict::Refused(refusal) => {
                if moves {
                    self.doubts.set(request, now);
                }
                repair_log::refused(tool, &request.arguments, &refusal);
                Err(refused_arguments(tool, &self.names_for(tool), &refusal).boxed())
            }
        }
    }

    /// Leaves over the namespace before the name by which a tool was called, unless every tool has it.
    fn leave_namespace(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
        reading: &mut ArgumentReading,
    ) {
        let names: Vec<&str> = tool.names().collect();
        let namespace = args::name::foreign_namespace(&request.tool, &names);
        let is_own = |space: &str| {
            self.names_of_places()
                .any(|name| name.eq_ignore_ascii_case(space))
        };
        if let Some(namespace) = namespace.filter(|space| !is_own(space)) {
            reading.leftover.push(Leftover::text(namespace));
        }
    }

    /// Returns the names of this node and its arms.
    fn names_of_places(&self) -> impl Iterator<Item = &str> {
        let arms = self.arms.iter().map(|arm| arm.name.as_str());
        std::iter::once(self.file.name.as_str()).chain(arms)
    }

    /// Completes a call that names the plan of a preview: what the preview was of is drawn.
    fn with_remembered_plan(
        &self,
        tool: &ToolDefinition,
        mut reading: ArgumentReading,
    ) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
        let Some(written) = reading.given.get("plan").and_then(Value::as_str) else {
            return Ok(reading);
        };
        if tool.name != "stroke" {
            return Ok(reading);
        }
        let (written, hash) = (written.to_owned(), stroke::normalized_hash(written));
        let found = self.previews.find(&hash, self.clock.now());
        let sent = reading.given.clone();
        let refusal =
            |code, reason: String| doubt::plan_complaint(code, &written, reason, sent.clone());
        let preview = match found {
            Ok(Some(preview)) => preview,
            // A plan of another process is compared with that of the scene that the call names.
            Ok(None)
                if ["scene", "text", "svg", "image", "resume"]
                    .iter()
                    .any(|key| reading.given.contains_key(*key)) =>
            {
                return Ok(reading);
            }
            Ok(None) => {
                return Err(refusal(
                    "unknown_plan",
                    "no preview in the last hour had this plan".to_owned(),
                ));
            }
            Err(reason) => return Err(refusal("unknown_plan", reason)),
        };
        let agrees = |(name, value): (&String, &Value)| {
            reading.given.get(name).is_none_or(|given| given == value)
        };
        if !preview.arguments.iter().all(agrees) {
            // The plan of the call as it stands differs, and is refused as such.
            return Ok(reading);
        }
        for arguments in [&mut reading.given, &mut reading.understood] {
            arguments.extend(preview.arguments.clone());
        }
        for arguments in [&mut reading.given, &mut reading.understood] {
            arguments.insert("plan".to_owned(), preview.hash.as_str().into());
        }
        Ok(reading)
    }

    fn read_arguments(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
        policy: &ReaderPolicy,
    ) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
        if self.declared.is_unread(&tool.name) {
            return args::pass_on(&request.arguments);
        }
        let Some(hop) = &request.hop else {
            return args::read(&self.shape(tool), policy, request.arguments.clone());
        };
        let mut names = Arc::unwrap_or_clone(self.names_for(tool));
        // Other nodes call this one by the name in their own files.
        names.nodes.push(hop.called.clone());
        names.everywhere.push(hop.called.clone());
        args::read(&shape(tool, &names), policy, request.arguments.clone())
    }

    /// Refuses a call that another node passed on and that names a third node: calls go one hop.
    fn check_one_hop(
        &self,
        tool: &ToolDefinition,
        request: &ToolRequest,
        reading: &ArgumentReading,
    ) -> Result<(), Box<Reply>> {
        let named = reading.understood.get("node").and_then(Value::as_str);
        let (Some(hop), Some(named)) = (&request.hop, named) else {
            return Ok(());
        };
        let own = &self.file.name;
        if tool.effect == ToolEffect::Stops || named == own || named == hop.called {
            return Ok(());
        }
        Err(refused(
            "one_hop",
            format!(
                "node `{}` passed this call on to node `{own}`; a call can be passed on only once. Next: call node `{named}` from a node that knows it",
                hop.from
            ),
        ))
    }

    fn policy(&self, tool: &ToolDefinition, request: &ToolRequest) -> ReaderPolicy {
        let names = self.recent_names();
        let default = names.default_scene();
        let only_default = |arm: &Arc<AttachedArm>| {
            let now = arm.motion.clock().now();
            default.is_some_and(|default| arm.permits().is_only_enabled(default, now))
        };
        // The scene of a declared tool, if it has one, follows from the tool's name.
        ReaderPolicy {
            default_is_all_enabled: !self.is_declared(tool) && self.arms.iter().all(only_default),
            after_doubt: !request.is_step && self.doubts.is_set(request, self.clock.now()),
            ..ReaderPolicy::new(tool.effect, self.profile())
        }
    }
}

impl ToolContext<'_> {
    /// Returns a text argument as understood.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.reading.understood.get(name).and_then(Value::as_str)
    }

    /// Returns a Boolean argument as understood.
    pub(super) fn is(&self, name: &str) -> bool {
        self.reading.understood.get(name) == Some(&Value::Bool(true))
    }

    /// Returns the queue of drawings that makes the call, if one does.
    pub(super) fn queue(&self) -> Option<&QueueTag> {
        self.request.hop.as_ref()?.queue.as_ref()
    }

    /// Returns the arm that the call is about, if the node has several and the call is about one.
    fn named_arm(&self) -> Option<&Arc<AttachedArm>> {
        let is_of_one = self.node.has_several_arms()
            && self.node.is_of_one_arm(self.tool, &self.reading.understood);
        is_of_one.then(|| self.node.arm(self.text("arm")))?
    }

    /// Returns the arm that the call names.
    pub(super) fn arm(&self) -> Result<&Arc<AttachedArm>, Box<Reply>> {
        let name = self.text("arm");
        self.node.arm(name).ok_or_else(|| {
            Reply::failed(format!(
                "this node has no arm `{}`; nothing moved",
                name.unwrap_or("default")
            ))
            .boxed()
        })
    }

    /// Returns the scene that the call names, with its overlay.
    pub(super) fn scene(&self, arm: &AttachedArm) -> Result<Arc<Scene>, Box<Reply>> {
        let (name, overlay) = (self.scene_name()?, self.text("meta"));
        let scene = self.node.scene_or_part(arm, name, overlay);
        let scene = scene.map_err(|error| refused("scene", self.node.listing_own_scenes(error)))?;
        self.check_draws(arm, &scene)?;
        Ok(scene)
    }

    /// Returns the name of the scene that the call means. The reader fills in the default where there is one.
    fn scene_name(&self) -> Result<&str, Box<Reply>> {
        self.text("scene").ok_or_else(no_default_scene)
    }

    /// Refuses a scene that this arm does not draw, with the arms that do.
    pub(super) fn check_draws(&self, arm: &AttachedArm, scene: &Scene) -> Result<(), Box<Reply>> {
        let Err(error) = check_is_for(arm, scene) else {
            return Ok(());
        };
        let arms = self.node.arms_of(scene);
        let [other] = arms.as_slice() else {
            return Err(match arms.as_slice() {
                [] => refused("scene", error),
                _ => refused("scene", with_next(error, &naming_one_of(&arms))),
            });
        };
        Err(refused("scene", with_next(error, &naming_one_of(&[other]))))
    }

    /// Describes the call as a motion job. Two calls are the same job if their tool, their scene's revision and the arguments that
    /// name neither arm nor scene are equal.
    ///
    /// # Errors
    /// The call was not understood to the last word: nothing moves for it.
    pub(super) fn job(
        &self,
        tool: &str,
        arm: &AttachedArm,
        scene: &Scene,
        again: bool,
    ) -> Result<MotionJobRequest, Box<Reply>> {
        let order = self
            .order
            .ok_or_else(|| refused("preview_only", "part of this call was not understood"))?;
        let mut understood = self.reading.understood.clone();
        understood.retain(|name, _| !NAMING_ARGUMENTS.contains(&name.as_str()));
        let work = format!("{tool} {} {}", Value::Object(understood), scene.revision);
        let accepted = AcceptedJob {
            received: journal_entries::arguments_text(&self.request.arguments),
            understood: Value::Object(self.reading.understood.clone()).to_string(),
            repairs: serde_json::to_string(&self.reading.repairs).unwrap_or_default(),
            ..accepted_job(tool, arm, scene, &self.request.caller)
        };
        Ok(MotionJobRequest {
            scene: scene.title(),
            accepted,
            order: MotionOrder::Call(Arc::clone(order)),
            who: self.request.who,
            key: JobKey {
                work,
                plan: self.plan_hash(),
            },
            again,
            seen_stops: self.node.stops_before(&self.request.arrived, arm).stops,
            arrived: self.request.arrived.clone(),
            team: TeamSeat::alone(),
        })
    }
}

/// Arguments that do not say what is done: they name the arm, the scene and the plan, which a job knows already, or say how to answer.
const NAMING_ARGUMENTS: [&str; 7] = ["arm", "node", "scene", "meta", "plan", "again", "debug"];

/// Refuses a call without a scene on a node where no scene is the default.
pub(super) fn no_default_scene() -> Box<Reply> {
    refused(
        "scene",
        "this node has no default scene: each scene is for an arm that this node lacks, or needs a `text` or an `svg`. Next: name a scene",
    )
}

/// Says that a call must name one of these arms.
fn naming_one_of(arms: &[&Arc<AttachedArm>]) -> String {
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    format!("name one of its arms with `arm`: {}", names.join(", "))
}

impl Node {
    /// Returns whether a call of a tool is about one arm, which it may name: not a drawing in a scene that several arms share.
    fn is_of_one_arm(&self, tool: &ToolDefinition, understood: &Map<String, Value>) -> bool {
        let scene = understood.get("scene").and_then(Value::as_str);
        match tool.name.as_str() {
            "align" | "reset" | "sense" => true,
            "stroke" => {
                understood.contains_key("arm")
                    || !scene.is_some_and(|scene| self.scenes.is_shared(scene))
            }
            _ => false,
        }
    }
}

/// Returns whether arguments are at most a few numbers and Booleans.
fn names_nothing(arguments: &ReceivedArguments) -> bool {
    const FIELDS_MAX: usize = 4;
    let is_plain = |value: &Value| value.is_null() || value.is_boolean() || value.is_number();
    match arguments {
        ReceivedArguments::Absent => true,
        ReceivedArguments::Value(Value::Object(fields)) => {
            fields.len() <= FIELDS_MAX && fields.values().all(is_plain)
        }
        ReceivedArguments::Value(_) | ReceivedArguments::Text(_) => false,
    }
}

/// Returns the names that a node of this file knows, with or without attached arms.
#[must_use]
pub fn known_names(file: &NodeFile, library: &SceneLibrary, tools: &DeclaredTools) -> KnownNames {
    let models: Vec<&str> = file.arms.iter().map(|arm| arm.model.as_str()).collect();
    let arms: Vec<[&str; 2]> = (file.arms.iter())
        .map(|arm| [arm.name.as_str(), arm.model.as_str()])
        .collect();
    let mut scenes = library.scenes_for(&models);
    let shared = library.shared_scenes_for(&arms);
    let parts = shared.iter().flat_map(|name| library.part_names(name));
    let parts = parts.collect();
    scenes.extend(shared);
    // The default scene first, as lists show it; that of the first arm, which a call without an arm means.
    let of_first = models
        .get(..1)
        .and_then(|first| library.default_scene(first));
    let default = of_first.or_else(|| library.default_scene(&models));
    scenes.sort_by_key(|name| Some(name) != default.as_ref());
    let canvases = library.canvases_for(&models);
    let first_canvas = canvases.first();
    KnownNames {
        scenes,
        parts,
        canvas_mm: first_canvas.and_then(|canvas| library.canvas_mm(canvas)),
        canvases,
        overlays: library.overlays(),
        ..names_without_scenes(file, tools)
    }
}

/// Returns the names that a node's file alone defines.
pub(super) fn names_without_scenes(file: &NodeFile, tools: &DeclaredTools) -> KnownNames {
    let nodes = names_of_nodes(file);
    KnownNames {
        arms: file.arms.iter().map(|arm| arm.name.clone()).collect(),
        everywhere: everywhere(&nodes),
        nodes,
        listed_names: match file.names {
            NamesEntry::Both => ListedNames::Both,
            NamesEntry::Plain => ListedNames::Plain,
            NamesEntry::Robot => ListedNames::Robot,
        },
        reworded: tools.reworded(),
        ignore_keys: file.ignore_keys.clone(),
        withheld: tool_filter::withheld_names(file, tools),
        declared: tools.shared(),
        ..KnownNames::default()
    }
}

/// Returns the names of this node and then of the others.
fn names_of_nodes(file: &NodeFile) -> Vec<String> {
    let others = file.peers.iter().map(|peer| peer.name.clone());
    std::iter::once(file.name.clone()).chain(others).collect()
}

fn everywhere(nodes: &[String]) -> Vec<String> {
    let all = std::iter::once(EVERYWHERE.to_owned());
    nodes.iter().cloned().chain(all).collect()
}

/// Returns the tool that a name means, ignoring its form.
pub(super) fn resolve<'a>(
    name: &str,
    declared: &'a [ToolDefinition],
) -> Option<&'a ToolDefinition> {
    let all = || TOOLS.iter().chain(declared);
    let exactly = |tool: &&ToolDefinition| tool.names().any(|own| own == name);
    if let Some(tool) = all().find(exactly) {
        return Some(tool);
    }
    // `e_stop` and `estop` differ in form only, and are one tool.
    match tools_of(name, all()).as_slice() {
        [tool] => Some(tool),
        _ => None,
    }
}

/// Returns every tool that has a name, ignoring its form.
pub(super) fn tools_of<'a>(
    name: &str,
    all: impl Iterator<Item = &'a ToolDefinition> + Clone,
) -> Vec<&'a ToolDefinition> {
    let tools_with_names = all.clone();
    let (names, tools): (Vec<&str>, Vec<&ToolDefinition>) = tools_with_names
        .flat_map(|tool| tool.names().map(move |name| (name, tool)))
        .unzip();
    match args::name::resolve(name, &names) {
        NameResolution::Resolved { index, .. } => tools.get(index).copied().into_iter().collect(),
        NameResolution::Ambiguous { among } => {
            let is_one = |name: &str| among.iter().any(|one| one == name);
            all.filter(|tool| tool.names().any(is_one)).collect()
        }
        NameResolution::Unknown { .. } => Vec::new(),
    }
}

/// Returns the answer to refused arguments. It ends with the minimal call of a tool that moves nothing.
pub(super) fn refused_arguments(
    tool: &ToolDefinition,
    names: &KnownNames,
    refusal: &ArgumentRefusal,
) -> Reply {
    let mut message = refusal.to_string();
    let is_key =
        |one: &args::ArgumentComplaint| one.code == "not_understood" && !one.path.is_empty();
    let is_own_picture = refusal.complaints.iter().any(is_key);
    if let Some(own) = doubt::own_picture_advice(tool, names).filter(|_| is_own_picture) {
        message = format!("{message}; {own}");
    }
    if tool.effect != ToolEffect::Moves && tool.required().next().is_none() {
        message = with_next(message, &format!("send {}", tool.minimal(names)));
    }
    refused("arguments_refused", message)
        .with("complaints", &refusal.complaints)
        .with("repairs", &refusal.repairs)
        .with("understood", &refusal.good)
        .with("moved", false)
}

/// Adds a corrected call to an answer.
pub(super) fn with_corrected_call(reply: Reply, tool: &str, call: &Value) -> Reply {
    let call = json!({"tool": tool, "arguments": call});
    reply.with_value("corrected_call", call)
}
