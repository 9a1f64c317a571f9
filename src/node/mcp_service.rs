//! Offers a node as an MCP service.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::broadcast;

use super::resources::{self, NodeResources};
use super::{app_view, http_auth, list_changes, worker_pool};
use args::{self, envelope};
use base::wording::cut;
use call::{ArrivalStamp, CallHop, VerifiedIdentity};
use caller::CallerRole;
use catalogue::{self, CataloguePrompt, PROMPTS};
use mcp::{
    self, AppView, CallProgress, CallWatch, CompletionRequest, EntryPoint, ListChange, McpService,
    MessageRepair, PromptCard, PromptParameter, PromptText, ReceivedArguments, RepairedMessage,
    ResourceCard, ResourceText, ServiceCapabilities, TemplateCard, ToolAnswer, ToolCall,
    ToolCaller, ToolCard, UnknownNameError,
};
use permit::ActorRank;
use tools::{self, Node, ToolRequest};

/// The MCP service of a node.
pub struct NodeMcpService {
    node: Arc<Node>,
    resources: Arc<NodeResources>,
    /// Sender of list changes, if a client watches.
    changes: Option<broadcast::Sender<ListChange>>,
}

/// Returns the MCP service that `serve` sets up for a node, and its repair of messages that are not JSON, for callers
/// with streams of their own.
#[must_use]
pub fn node_service(node: &Arc<Node>) -> (Arc<dyn McpService>, MessageRepair) {
    (Arc::new(NodeMcpService::watched(node)), repair)
}

impl NodeMcpService {
    /// Creates a service for a single call, without notices of list changes.
    pub fn new(node: &Arc<Node>) -> Self {
        Self {
            node: Arc::clone(node),
            resources: Arc::new(NodeResources::new(Arc::clone(node))),
            changes: None,
        }
    }

    /// Creates a service that notifies its clients when lists change.
    pub fn watched(node: &Arc<Node>) -> Self {
        Self {
            changes: Some(list_changes::watch(node)),
            ..Self::new(node)
        }
    }
}

/// Repairs a message that is not JSON.
pub fn repair(raw: &[u8]) -> RepairedMessage {
    match envelope::read(raw) {
        Ok(envelope) => RepairedMessage::Message(envelope.message),
        Err(error) => RepairedMessage::Hopeless(error.to_string()),
    }
}

impl McpService for NodeMcpService {
    fn list(&self) -> BoxFuture<'static, Vec<ToolCard>> {
        let node = Arc::clone(&self.node);
        run_in_pool(async move {
            let tools = catalogue::list(&node.all_names()).into_iter();
            tools.map(card).collect()
        })
    }

    fn instructions(&self) -> String {
        catalogue::instructions(&self.node.recent_names())
    }

    fn stamp_arrival(&self) -> ArrivalStamp {
        self.node.stamp_arrival()
    }

    fn preempt_stop(&self, tool: &str, arguments: &ReceivedArguments, caller: &ToolCaller) -> bool {
        let who = rank(caller.identity.as_ref(), caller.hop.as_ref());
        self.node.preempt_stop(tool, arguments, who, caller)
    }

    fn is_stop(&self, tool: &str) -> bool {
        self.node.stops(tool)
    }

    fn moves(&self, tool: &str, arguments: &ReceivedArguments) -> bool {
        self.node.moves(tool, arguments)
    }

    fn stray_stop(&self, tool: &str, sender: Option<&VerifiedIdentity>) -> bool {
        let caller = caller_text(sender);
        self.node
            .stray_stop(tool, rank(sender, None), caller.as_deref())
    }

    fn record_refused_stop(&self, sender: Option<&VerifiedIdentity>) {
        let caller = caller_text(sender);
        // Whatever it was called.
        self.node
            .record_stray_stop("stop", rank(sender, None), caller.as_deref());
    }

    fn abort_motion(&self, sender: Option<&VerifiedIdentity>) {
        self.node.abandon_motion(caller_text(sender).as_deref());
    }

    fn call(&self, call: ToolCall, watch: CallWatch) -> BoxFuture<'static, ToolAnswer> {
        let node = Arc::clone(&self.node);
        let client = client_text(&call.caller);
        let request = request(&node, call);
        let progress = watch.progress.map(|sender| {
            Arc::new(move |done: f64, of: f64, message: &str| {
                let total = (of > 0.0).then_some(of);
                sender.tell(CallProgress {
                    done,
                    total,
                    message: message.to_owned(),
                });
            }) as tools::ProgressCallback
        });
        let watch = tools::RemoteCallWatch {
            cancelled: watch.cancelled,
            progress,
            client,
            cancel_runtime: tokio::runtime::Handle::try_current().ok(),
        };
        if node.stops(&request.tool) || node.is_brief(&request) {
            return node.call(request, watch);
        }
        run_in_pool(node.call(request, watch))
    }

    fn offers(&self) -> ServiceCapabilities {
        ServiceCapabilities {
            resources: true,
            prompts: true,
            completion: true,
            changes: self.changes.is_some(),
        }
    }

    fn changes(&self) -> Option<broadcast::Receiver<ListChange>> {
        self.changes.as_ref().map(broadcast::Sender::subscribe)
    }

    fn resources(&self) -> BoxFuture<'static, Vec<ResourceCard>> {
        let resources = Arc::clone(&self.resources);
        run_in_pool(async move { resources.cards() })
    }

    fn templates(&self) -> Vec<TemplateCard> {
        resources::templates()
    }

    fn read(&self, uri: String) -> BoxFuture<'static, Result<ResourceText, UnknownNameError>> {
        let resources = Arc::clone(&self.resources);
        run_in_pool(async move { resources.read(&uri).await })
    }

    fn app_view(&self) -> Option<AppView> {
        Some(app_view::drawing_view(&self.node.recent_names()))
    }

    fn prompts(&self) -> Vec<PromptCard> {
        PROMPTS.iter().map(prompt_card).collect()
    }

    fn prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<PromptText, UnknownNameError> {
        let names = PROMPTS.each_ref().map(|prompt| prompt.name).join(", ");
        let prompt = CataloguePrompt::find(name).ok_or_else(|| UnknownNameError {
            message: format!("there is no prompt {name:?}. Valid: {names}"),
        })?;
        Ok(PromptText {
            description: prompt.description.to_owned(),
            text: prompt.fill(arguments, &self.node.recent_names()),
        })
    }

    fn complete(&self, completion: CompletionRequest) -> BoxFuture<'static, Vec<String>> {
        let resources = Arc::clone(&self.resources);
        run_in_pool(async move { resources.complete(&completion) })
    }
}

/// Runs `work` in the worker pool. A panic there is resumed here.
fn run_in_pool<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> BoxFuture<'static, T> {
    let worker = worker_pool::spawn(work);
    Box::pin(async move {
        match worker.await {
            Ok(result) => result,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    })
}

/// Returns the name and version of the caller's program. The program states them itself, so they are cut to one short line.
fn client_text(caller: &ToolCaller) -> Option<String> {
    const CHARS_MAX: usize = 60;
    let name = caller.client_name.as_deref()?;
    let version = caller.client_version.as_deref().unwrap_or_default();
    let text = format!("{name} {version}");
    let one_line = text.replace(char::is_control, "");
    Some(cut(&one_line, CHARS_MAX).trim().to_owned())
}

/// Names the sender of a message that is no call.
fn caller_text(sender: Option<&VerifiedIdentity>) -> Option<String> {
    sender.map(|identity| format!("token {}", identity.name))
}

/// Returns the rank of a stop that is carried out before its call, or without one. Only an operator can reset an operator's stop.
fn rank(sender: Option<&VerifiedIdentity>, hop: Option<&CallHop>) -> ActorRank {
    let role = sender.map(|identity| http_auth::principal(identity, hop).role);
    rank_of(role == Some(CallerRole::Operator))
}

const fn rank_of(is_operator: bool) -> ActorRank {
    if is_operator {
        ActorRank::Operator
    } else {
        ActorRank::Planner
    }
}

fn request(node: &Node, call: ToolCall) -> ToolRequest {
    let principal = call.caller.identity.as_ref();
    let principal =
        principal.map(|identity| http_auth::principal(identity, call.caller.hop.as_ref()));
    // A person typed a call in this process to try what a planner may do, but what such a call writes is the person's own.
    let is_typed = call.caller.via == EntryPoint::InProcess && node.writes(&call.tool);
    let is_person = principal
        .as_ref()
        .map_or(is_typed, |principal| principal.role == CallerRole::Operator);
    ToolRequest {
        caller: call.caller.key(),
        tool: call.tool,
        arguments: call.arguments,
        who: rank_of(is_person),
        principal,
        hop: call.caller.hop,
        is_step: false,
        arrived: call.arrived,
    }
}

fn card(listed: catalogue::ListedTool) -> ToolCard {
    ToolCard {
        name: listed.name,
        title: Some(listed.title),
        description: listed.description,
        input_schema: listed.input_schema,
        output_schema: Some(listed.output_schema),
        hints: listed.hints,
    }
}

fn prompt_card(prompt: &CataloguePrompt) -> PromptCard {
    let parameters = prompt.takes.iter().map(|(name, text)| PromptParameter {
        name: (*name).to_owned(),
        description: (*text).to_owned(),
        required: false,
    });
    PromptCard {
        name: prompt.name.to_owned(),
        title: prompt.title.to_owned(),
        description: prompt.description.to_owned(),
        parameters: parameters.collect(),
    }
}
