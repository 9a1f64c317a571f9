//! The protocol library's handler over a service: every `tools/call`, well formed or not, reaches the service as received.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use call::{ArrivalStamp, EntryPoint, ReceivedArguments, ToolAnswer, ToolCall, ToolCaller};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, ClientCapabilities,
    ClientJsonRpcMessage, ClientRequest, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, CompletionInfo, ConstString, CustomRequest, CustomResult, DiscoverResult,
    ErrorCode, GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestMethod,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestId,
    RequestMetaObject, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::message_intake::TakenCall;
use super::progress::{self, ProgressSender};
use super::service_trait::{AppView, CallWatch, CompletionRequest, ListChange, McpService};
use super::{app_view, convert, forward};

/// Longest wait for the last progress notice of a call whose client does not read.
const LAST_NOTICE_WAIT: Duration = Duration::from_millis(500);

/// Most values in one completion, by the protocol.
const COMPLETIONS_MAX: usize = 100;

/// Requests for which the library has a type: if one arrives untyped, its parameters did not fit.
/// `initialize` is not listed: the newest revision has no such method, and under the older ones it always fits.
const TYPED: [&str; 8] = [
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "tools/list",
];

/// One request on its connection. The HTTP side puts it into the request's extensions, because a session outlives the
/// connection and the library then lets the handler run on.
#[derive(Debug, Clone)]
pub(super) struct OpenRequest {
    /// Set when the answer has no reader any more: the connection or the session is gone.
    pub(super) hung_up: CancellationToken,
    /// Tells the session how long the request is being worked on.
    pub(super) work: TaskTrackerToken,
}

/// Parts of a call that the library's type does not hold; they pass through the library in the extensions of the request or of
/// its HTTP request.
#[derive(Debug, Clone)]
pub(super) struct ArrivedCall {
    /// Its arguments as received; the library's type holds objects alone.
    pub(super) arguments: ReceivedArguments,
    /// The stops heard before it.
    pub(super) stamp: ArrivalStamp,
}

/// A call's answer, or an error if its code panicked; the panic hook has logged the reason.
type FinishedCall = Result<ToolAnswer, Box<dyn Any + Send>>;

/// One connection's handler; all of them share the service.
#[derive(Clone)]
pub(super) struct McpHandler {
    service: Arc<dyn McpService>,
    via: EntryPoint,
    /// Set when this connection has ended for good.
    gone: CancellationToken,
    forwarding: ChangeForwarding,
}

/// Forwarding of changed lists to the client of one connection, or of one session over HTTP. A clone is for another one.
#[derive(Default)]
struct ChangeForwarding {
    has_begun: AtomicBool,
    /// Set when this is dropped, with the connection's handler.
    ended: CancellationToken,
}

impl Clone for ChangeForwarding {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Drop for ChangeForwarding {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl McpHandler {
    pub(super) fn new(service: Arc<dyn McpService>, via: EntryPoint) -> Self {
        Self {
            service,
            via,
            gone: CancellationToken::new(),
            forwarding: ChangeForwarding::default(),
        }
    }

    /// Returns the same handler for a connection whose end sets `gone`.
    pub(super) fn ending_with(self, gone: CancellationToken) -> Self {
        Self { gone, ..self }
    }

    async fn run(
        &self,
        tool: String,
        arrived: ArrivedCall,
        context: &RequestContext<RoleServer>,
    ) -> ToolAnswer {
        let cancelled = CancellationToken::new();
        // If this future is dropped half way, the guard cancels the call, which then comes to rest by itself.
        let cancel_guard = cancelled.clone().drop_guard();
        let (sender, notices) = match context.meta.get_progress_token() {
            None => (None, None),
            Some(token) => {
                let (sender, updates) = ProgressSender::pair();
                let finish = CancellationToken::new();
                let (peer, ends) = (context.peer.clone(), (finish.clone(), cancelled.clone()));
                let pump = progress::pump(updates, peer, token, ends);
                let pump = AbortOnDropHandle::new(tokio::spawn(pump.boxed()));
                (Some(sender), Some((pump, finish)))
            }
        };
        let call = ToolCall {
            tool,
            arguments: arrived.arguments,
            caller: self.caller(context),
            arrived: arrived.stamp,
        };
        let watch = CallWatch {
            cancelled: cancelled.clone(),
            progress: sender,
        };
        let running = AssertUnwindSafe(self.service.call(call, watch));
        let mut running = running.catch_unwind().boxed();
        // A call that waits for nothing is finished now, without a task of its own.
        let answer = match futures::poll!(&mut running) {
            Poll::Ready(answer) => answer,
            Poll::Pending => self.finish(running, &cancelled, context).await,
        };
        cancel_guard.disarm();
        if let Some((pump, finish)) = notices {
            finish.cancel();
            // A notice that is still not sent then is given up: none may follow the answer.
            let _ = tokio::time::timeout(LAST_NOTICE_WAIT, pump).await;
        }
        answer.unwrap_or_else(|_| panic_answer())
    }

    /// Runs a call to its end on a task of its own, and cancels it when its client gives up.
    async fn finish(
        &self,
        running: BoxFuture<'static, FinishedCall>,
        cancelled: &CancellationToken,
        context: &RequestContext<RoleServer>,
    ) -> FinishedCall {
        let open = open_request(context);
        let hung_up = open.map(|open| open.hung_up.clone()).unwrap_or_default();
        let work = open.map(|open| open.work.clone());
        let mut running = tokio::spawn(running.inspect(move |_| drop(work)).boxed());
        let signals = [context.ct.clone(), hung_up, self.gone.clone()];
        // Once it is answered, these signals no longer count: the library then cancels the request's token, and a job that goes
        // on belongs to the node.
        let answer = tokio::select! {
            biased;
            answer = &mut running => answer,
            () = until_given_up(signals) => {
                cancelled.cancel();
                running.await
            }
        };
        answer.unwrap_or_else(|error| Err(Box::new(error)))
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> ToolCaller {
        // For a client that did not introduce itself, the library returns its own name.
        let client = context
            .client_info()
            .filter(|client| *client != Implementation::from_build_env());
        let parts = context.extensions.get::<http::request::Parts>();
        let header = |name: &str| parts?.headers.get(name)?.to_str().ok().map(str::to_owned);
        ToolCaller {
            via: self.via,
            session: header("mcp-session-id"),
            client_name: client.as_ref().map(|client| client.name.clone()),
            client_version: client.map(|client| client.version),
            protocol: context
                .protocol_version()
                .map(|version| version.as_str().to_owned()),
            identity: parts.and_then(|parts| parts.extensions.get().cloned()),
            hop: parts.and_then(|parts| forward::hop_from_headers(&parts.headers)),
        }
    }

    /// Returns the view for a client with these capabilities, if it shows views.
    fn app_view(&self, capabilities: Option<&ClientCapabilities>) -> Option<AppView> {
        let is_shown = app_view::is_announced(capabilities);
        is_shown.then(|| self.service.app_view()).flatten()
    }

    fn app_view_for(&self, context: &RequestContext<RoleServer>) -> Option<AppView> {
        self.app_view(context.client_capabilities().as_ref())
    }
}

/// Forwards changes until the client cannot be reached any more.
async fn forward_changes(mut changes: broadcast::Receiver<ListChange>, peer: Peer<RoleServer>) {
    loop {
        let sent = match changes.recv().await {
            Ok(ListChange::Tools) => peer.notify_tool_list_changed().await,
            Ok(ListChange::Resources) => peer.notify_resource_list_changed().await,
            Ok(ListChange::Prompts) => peer.notify_prompt_list_changed().await,
            Err(RecvError::Lagged(_)) => Ok(()),
            Err(RecvError::Closed) => return,
        };
        if sent.is_err() || peer.is_transport_closed() {
            return;
        }
    }
}

/// Returns the error for a request that fitted none of the library's types: its parameters do not fit, or its method is unknown.
#[must_use]
pub fn unsupported_request(request: &CustomRequest) -> ErrorData {
    let method = &request.method;
    if TYPED.contains(&method.as_str()) {
        let reason = format!("the parameters of {method} do not fit");
        return ErrorData::invalid_params(reason, None);
    }
    unknown_method(method)
}

/// Returns the error for a method that a node does not have.
fn unknown_method(method: &str) -> ErrorData {
    let advice = match method.starts_with("tasks/") {
        true => "a long call answers with its job, and `sense` shows its progress",
        false => "to call a tool, use `tools/call`",
    };
    let reason = format!("unknown method `{method}`: {advice}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, reason, None)
}

/// Returns a call as the library's message, built from the rest of its own message.
///
/// # Errors
/// The library cannot hold its id.
pub(super) fn call_request(
    call: TakenCall,
    stamp: ArrivalStamp,
    mut message: Value,
) -> Result<ClientJsonRpcMessage, serde_json::Error> {
    let mut take = |key: &str| message.get_mut(key).map(Value::take).unwrap_or_default();
    let id = RequestId::deserialize(take("id"))?;
    let mut params = match take("params") {
        Value::Object(params) => params,
        _ => Map::new(),
    };
    let mut request = CallToolRequestParams::new(call.tool);
    if let Some(Value::Object(responses)) = params.remove("inputResponses") {
        request = request.with_input_responses(responses.into_iter().collect());
    }
    if let Some(Value::String(state)) = params.remove("requestState") {
        request = request.with_request_state(state);
    }
    let mut request = CallToolRequest::new(request);
    if let Some(Value::Object(meta)) = params.remove("_meta") {
        request.extensions.insert(RequestMetaObject::from(meta));
    }
    request.extensions.insert(ArrivedCall {
        arguments: call.arguments,
        stamp,
    });
    let request = ClientRequest::CallToolRequest(request);
    Ok(ClientJsonRpcMessage::request(request, id))
}

/// Waits until any of these signals tells that the client has given up.
async fn until_given_up([cancel, hung_up, gone]: [CancellationToken; 3]) {
    tokio::select! {
        () = cancel.cancelled() => {}
        () = hung_up.cancelled() => {}
        () = gone.cancelled() => {}
    }
}

fn arrived_call(context: &mut RequestContext<RoleServer>) -> Option<ArrivedCall> {
    let extensions = &mut context.extensions;
    extensions.remove::<ArrivedCall>().or_else(|| {
        let parts = extensions.get_mut::<http::request::Parts>()?;
        parts.extensions.remove::<ArrivedCall>()
    })
}

fn open_request(context: &RequestContext<RoleServer>) -> Option<&OpenRequest> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    parts.extensions.get::<OpenRequest>()
}

/// Refuses a method for a feature that the service does not offer.
fn require_offer<M: ConstString>(is_offered: bool) -> Result<(), ErrorData> {
    if is_offered {
        Ok(())
    } else {
        Err(unknown_method(M::VALUE))
    }
}

fn panic_answer() -> ToolAnswer {
    tracing::error!("a tool failed");
    ToolAnswer::failed("the node failed while it answered; its log has the reason")
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        convert::introduction(self.service.as_ref())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut introduction = self.negotiate_initialize(&request)?;
        if self.app_view(Some(&request.capabilities)).is_some() {
            app_view::declare(&mut introduction.capabilities);
        }
        Ok(introduction)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let mut introduction = self.get_info();
        if self.app_view_for(&context).is_some() {
            app_view::declare(&mut introduction.capabilities);
        }
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, introduction))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.service.list().await.into_iter().map(convert::tool);
        let tools = match self.app_view_for(&context) {
            None => tools.collect(),
            Some(view) => tools.map(|tool| app_view::tool(tool, &view)).collect(),
        };
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // A call that came by none of this room's readers arrives here.
        let arrived = arrived_call(&mut context).unwrap_or_else(|| ArrivedCall {
            arguments: request.arguments.map(Value::Object).into(),
            stamp: self.service.stamp_arrival(),
        });
        let answer = self.run(request.name.into_owned(), arrived, &context).await;
        Ok(convert::result(answer).into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unsupported_request(&request))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        require_offer::<ListResourcesRequestMethod>(self.service.offers().resources)?;
        let cards = self.service.resources().await.into_iter();
        let mut all: Vec<_> = cards.map(convert::resource).collect();
        all.extend(self.app_view_for(&context).as_ref().map(app_view::resource));
        Ok(ListResourcesResult::with_all_items(all))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        require_offer::<ListResourceTemplatesRequestMethod>(self.service.offers().resources)?;
        let all = self.service.templates().into_iter().map(convert::template);
        Ok(ListResourceTemplatesResult::with_all_items(all.collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        require_offer::<ReadResourceRequestMethod>(self.service.offers().resources)?;
        let uri = request.uri;
        if let Some(view) = self.app_view_for(&context).filter(|view| view.uri == uri) {
            return Ok(ReadResourceResult::new(vec![app_view::contents(view)]).into());
        }
        let read = self.service.read(uri.clone()).await;
        let read = read.map_err(|unknown| convert::no_resource(unknown, &uri))?;
        let contents = convert::contents(uri, read);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        require_offer::<ListPromptsRequestMethod>(self.service.offers().prompts)?;
        let all = self.service.prompts().into_iter().map(convert::prompt);
        Ok(ListPromptsResult::with_all_items(all.collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        require_offer::<GetPromptRequestMethod>(self.service.offers().prompts)?;
        let arguments = texts(request.arguments);
        let filled = self.service.prompt(&request.name, &arguments);
        let filled = filled.map_err(convert::no_prompt)?;
        Ok(convert::prompt_text(filled).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        require_offer::<CompleteRequestMethod>(self.service.offers().completion)?;
        let completion = CompletionRequest {
            of: convert::completed(&request.r#ref),
            argument: request.argument.name,
            typed: request.argument.value,
        };
        let mut values = self.service.complete(completion).await;
        values.truncate(COMPLETIONS_MAX);
        CompletionInfo::with_all_values(values)
            .map(CompleteResult::new)
            .map_err(|reason| ErrorData::internal_error(reason, None))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if !self.service.offers().changes {
            return;
        }
        let Some(changes) = self.service.changes() else {
            return;
        };
        // A client may say more than once that it is ready.
        if self.forwarding.has_begun.swap(true, Ordering::AcqRel) {
            return;
        }
        let ended = self.forwarding.ended.clone();
        let forwarding = forward_changes(changes, context.peer);
        let forwarding = async move { ended.run_until_cancelled(forwarding).await };
        tokio::spawn(forwarding.boxed());
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        accepted.resource_subscriptions = None;
        self.service.offers().changes.then_some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(mut changes) = self.service.changes() else {
            subscription.cancelled().await;
            return Ok(());
        };
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let sink = subscription.sink();
            // The sink refuses a category that this listener did not request; that is not an error.
            let _ = match change {
                Ok(ListChange::Tools) => sink.notify_tool_list_changed().await,
                Ok(ListChange::Resources) => sink.notify_resource_list_changed().await,
                Ok(ListChange::Prompts) => sink.notify_prompt_list_changed().await,
                Err(RecvError::Lagged(_)) => Ok(()),
                Err(RecvError::Closed) => return Ok(()),
            };
        }
    }
}

/// Returns a prompt's arguments as text, regardless of their JSON types.
fn texts(arguments: Option<Map<String, Value>>) -> BTreeMap<String, String> {
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let arguments = arguments.unwrap_or_default().into_iter();
    arguments.map(|(key, value)| (key, text(value))).collect()
}
