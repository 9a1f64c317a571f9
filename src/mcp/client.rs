//! MCP client: of another node over HTTP, or of this node's own server in the same process.
//!
//! Arguments are sent exactly as they were given, objects or not, so that a person can send what a model would.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::model::{
    CallToolResult, ClientCapabilities, ClientConfig, ClientRequest, ContentBlock, CustomRequest,
    Implementation, ProgressNotificationParam, ProgressToken, ServerResult, Tool,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, PeerRequestOptions, RequestHandle, RunningService,
    ServiceError, ServiceExt,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use call::{EntryPoint, ReceivedArguments, ToolAnswer, ToolHints};

use super::http_client::{HttpClient, host_and_port};
use super::message_intake::never_repair;
use super::progress::ProgressSender;
use super::service_trait::{CallWatch, McpService, ToolCard};
use super::stdio::{BoxedInput, BoxedOutput};
use super::{lossy_json, stdio};

/// Longest wait for another node to open the protocol.
pub const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Interval at which a server that has not answered yet is probed.
const PROBE_PERIOD: Duration = Duration::from_secs(2);

/// Most bytes in transit between client and server in one process.
const PIPE_BYTES: usize = 64 * 1024;

/// Reason why a call to a server got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server cannot be reached, or does not speak the protocol.
    #[error("cannot talk to {at}: {reason}")]
    Unreachable {
        /// Its address.
        at: String,
        /// Cause of the failure.
        reason: String,
    },
    /// The server did not open the protocol in time.
    #[error("{at} did not answer within {limit_s} s. Next: look at its log, and call again")]
    Silent {
        /// Its address.
        at: String,
        /// Time it had, in seconds.
        limit_s: u64,
    },
    /// The server answered with a protocol error.
    #[error("the server refused the request: {message} ({code})")]
    Refused {
        /// JSON-RPC code.
        code: i32,
        /// Its message.
        message: String,
    },
    /// The connection ended before the answer.
    #[error("the connection ended before the answer: {0}. Next: look at that arm, and call again")]
    Broken(String),
    /// The caller gave up; the server was told.
    #[error("the call was cancelled")]
    Cancelled,
}

impl From<ServiceError> for ClientError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::Refused {
                code: error.code.0,
                message: error.message.into_owned(),
            },
            ServiceError::Cancelled { .. } => Self::Cancelled,
            other => Self::Broken(other.to_string()),
        }
    }
}

/// Returns typed text as arguments: as JSON if it is lossless JSON, otherwise as the text itself.
#[must_use]
pub fn arguments_from_text(text: &str) -> ReceivedArguments {
    match lossy_json::parse(text.as_bytes(), 1) {
        Ok(parsed) if !parsed.is_cut && (parsed.lossy.is_empty() || parsed.value.is_string()) => {
            Some(parsed.value).into()
        }
        _ => ReceivedArguments::Text(text.to_owned()),
    }
}

/// The protocol library's half of a connection.
type ClientService = RunningService<RoleClient, ProgressListener>;

/// An open connection to one server. Calls may run side by side.
#[derive(Debug)]
pub struct McpClient {
    service: ClientService,
    listener: ProgressListener,
    /// Ends a server in this process when set.
    end: CancellationToken,
    /// Address of a server that is reached by HTTP.
    server: Option<String>,
}

/// Opens the protocol with the server at `url`, such as `http://127.0.0.1:8700/mcp` or, with a certificate that this
/// machine trusts, `https://…`.
///
/// # Errors
/// Nothing listens there, it is not a server of this protocol, or it did not answer within [`CONNECT_MAX`].
pub async fn connect(url: &str) -> Result<McpClient, ClientError> {
    connect_as(url, None).await
}

/// As [`connect`], with a token.
///
/// # Errors
/// As [`connect`]; or the token is refused.
pub async fn connect_as(url: &str, token: Option<String>) -> Result<McpClient, ClientError> {
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let config = match token {
        Some(token) => config.auth_header(token),
        None => config,
    };
    let listener = ProgressListener::default();
    let opening = serve_http(&listener, config);
    let client = finish_opening(listener, opening, url, CONNECT_MAX).await?;
    Ok(McpClient {
        server: url.parse().ok().as_ref().and_then(host_and_port),
        ..client
    })
}

/// Opens the protocol over HTTP; boxed, so that it is compiled once, not wherever it is awaited.
fn serve_http(listener: &ProgressListener, config: StreamableHttpClientTransportConfig) -> Opening {
    let transport = StreamableHttpClientTransport::with_client(HttpClient, config);
    listener.clone().serve(transport).boxed()
}

/// Waits until the protocol is open; errors name the server as `at`.
async fn finish_opening(
    listener: ProgressListener,
    opening: Opening,
    at: &str,
    limit: Duration,
) -> Result<McpClient, ClientError> {
    let at = at.to_owned();
    match tokio::time::timeout(limit, opening).await {
        Err(_) => Err(ClientError::Silent {
            at,
            limit_s: limit.as_secs(),
        }),
        Ok(Err(error)) => Err(ClientError::Unreachable {
            at,
            reason: root_cause(&error),
        }),
        Ok(Ok(service)) => Ok(McpClient {
            service,
            listener,
            end: CancellationToken::new(),
            server: None,
        }),
    }
}

/// Waits until nothing listens at the server's address any more. The protocol library would wait forever for the answer of a
/// server that was killed.
async fn wait_until_unreachable(server: Option<&str>) {
    let Some(server) = server else {
        return std::future::pending().await;
    };
    loop {
        let wait = std::future::pending::<()>();
        let _ = tokio::time::timeout(PROBE_PERIOD, wait).await;
        if let Ok(Err(_)) = tokio::time::timeout(CONNECT_MAX, TcpStream::connect(server)).await {
            return;
        }
    }
}

/// Opens the protocol over a pair of streams, such as a server's standard output and input, for a program that may be slow to
/// start; errors name it as `at`.
///
/// # Errors
/// No answer, not a server of this protocol, or no answer within `limit`.
pub async fn connect_streams_within<R, W>(
    input: R,
    output: W,
    at: &str,
    limit: Duration,
) -> Result<McpClient, ClientError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let listener = ProgressListener::default();
    let opening = serve_streams(&listener, Box::new(input), Box::new(output));
    finish_opening(listener, opening, at, limit).await
}

type Opening = BoxFuture<'static, Result<ClientService, ClientInitializeError>>;

/// Opens the protocol over streams; boxed, so that it is compiled once, not wherever it is awaited.
fn serve_streams(listener: &ProgressListener, input: BoxedInput, output: BoxedOutput) -> Opening {
    listener.clone().serve((input, output)).boxed()
}

/// Connects client and server in this process, through the same protocol as any other caller.
///
/// # Errors
/// The protocol could not be opened.
pub async fn in_process(service: Arc<dyn McpService>) -> Result<McpClient, ClientError> {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let end = CancellationToken::new();
    let stop = end.clone();
    let serving = async move {
        let ends = tokio::io::split(theirs);
        let via = EntryPoint::InProcess;
        let serving = stdio::serve_on(service, via, never_repair, ends, || (), stop);
        if let Err(error) = serving.await {
            tracing::warn!(%error, "the server in this process ended");
        }
    };
    tokio::spawn(serving.boxed());
    let (input, output) = tokio::io::split(ours);
    let client = connect_streams_within(input, output, "this process", Duration::MAX).await?;
    Ok(McpClient { end, ..client })
}

/// Returns the last cause in the chain, on which a person can act.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    if cause.to_string().len() > error.to_string().len() {
        return without_library_names(&cause.to_string());
    }
    without_library_names(&error.to_string())
}

/// Returns an error's text without the names of the protocol library's own parts before and after it.
fn without_library_names(text: &str) -> String {
    let after = |text, name| match str::split_once(text, name) {
        Some((_, after)) => after,
        None => text,
    };
    let event = after(after(text, "Client error: "), "] error: ");
    let location = event.rsplit_once(", when send");
    let event = location.map_or(event, |(before, _)| before);
    let event = event.trim_end_matches([':', ' ']);
    match event.contains("404 Not Found") {
        true => format!("{event}: this path does not serve MCP. Next: use the path `/mcp`"),
        false => event.to_owned(),
    }
}

impl McpClient {
    /// Returns the server's name and version, as `name version`.
    #[must_use]
    pub fn server(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        let server = info.server_info.as_ref()?;
        Some(format!("{} {}", server.name, server.version))
    }

    /// Returns the tools as the server lists them.
    ///
    /// # Errors
    /// The connection ended, or the server refused.
    pub async fn list(&self) -> Result<Vec<ToolCard>, ClientError> {
        let tools = self.service.list_all_tools().await?;
        Ok(tools.into_iter().map(card).collect())
    }

    /// Calls one tool and waits for its answer, however long that takes. Setting `watch.cancelled` tells the server, which then
    /// sends no answer.
    ///
    /// # Errors
    /// The connection ended, the server refused, or the call was cancelled. A tool that failed is a [`ToolAnswer`].
    pub async fn call(
        &self,
        tool: &str,
        arguments: ReceivedArguments,
        watch: CallWatch,
    ) -> Result<ToolAnswer, ClientError> {
        let request = request(tool, arguments);
        let options = PeerRequestOptions::no_options();
        let sending = self.service.send_cancellable_request(request, options);
        let mut handle = sending.await?;
        let progress = watch.progress;
        let _subscription = progress.map(|sender| self.listener.subscribe(&handle, sender));
        let response = tokio::select! {
            response = &mut handle.rx => response,
            () = watch.cancelled.cancelled() => {
                handle.cancel(Some("the caller stopped waiting".to_owned())).await?;
                return Err(ClientError::Cancelled);
            }
            () = wait_until_unreachable(self.server.as_deref()) => {
                return Err(ClientError::Broken("the server ended".to_owned()));
            }
        };
        match response {
            Ok(result) => answer(result?),
            Err(_) => Err(ClientError::Broken("the connection closed".to_owned())),
        }
    }

    /// Returns whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// Closes the connection; a server in this process ends with it.
    pub async fn close(self) {
        let _ = self.service.cancel().await;
        self.end.cancel();
    }
}

fn request(tool: &str, arguments: ReceivedArguments) -> ClientRequest {
    let params = Some(Value::Object(call_params(tool, arguments)));
    ClientRequest::CustomRequest(CustomRequest::new("tools/call", params))
}

/// Returns the parameters of a `tools/call`.
pub(super) fn call_params(tool: &str, arguments: ReceivedArguments) -> Map<String, Value> {
    let mut params = Map::new();
    params.insert("name".to_owned(), json!(tool));
    let arguments: Option<Value> = arguments.into();
    params.extend(arguments.map(|arguments| ("arguments".to_owned(), arguments)));
    params
}

fn answer(result: ServerResult) -> Result<ToolAnswer, ClientError> {
    match result {
        ServerResult::CallToolResult(result) => Ok(answer_from_result(result)),
        _ => Err(ClientError::Broken(
            "the server's answer is not a tool result".to_owned(),
        )),
    }
}

pub(super) fn answer_from_result(result: CallToolResult) -> ToolAnswer {
    let mut answer = ToolAnswer {
        is_error: result.is_error.unwrap_or(false),
        ..ToolAnswer::default()
    };
    if let Some(Value::Object(structured)) = result.structured_content {
        answer.structured = structured;
    }
    for block in result.content {
        match block {
            ContentBlock::Text(text) if answer.text.is_empty() => answer.text = text.text,
            ContentBlock::Text(text) => answer.text = format!("{}\n{}", answer.text, text.text),
            ContentBlock::Image(image) => {
                let bytes = STANDARD.decode(image.data).unwrap_or_default();
                answer.images.push((image.mime_type, bytes));
            }
            _ => {}
        }
    }
    answer
}

fn card(tool: Tool) -> ToolCard {
    let hints = tool.annotations.unwrap_or_default();
    ToolCard {
        name: tool.name.into_owned(),
        title: tool.title,
        description: tool.description.unwrap_or_default().into_owned(),
        input_schema: tool.input_schema.as_ref().clone(),
        output_schema: tool.output_schema.map(|schema| schema.as_ref().clone()),
        hints: ToolHints {
            read_only: hints.read_only_hint.unwrap_or(false),
            destructive: hints.is_destructive(),
            idempotent: hints.is_idempotent(),
            open_world: hints.open_world_hint.unwrap_or(true),
        },
    }
}

/// Passes each call's progress on to its receiver.
#[derive(Debug, Clone, Default)]
struct ProgressListener {
    calls: Arc<Mutex<HashMap<ProgressToken, ProgressSender>>>,
}

impl ProgressListener {
    fn subscribe(
        &self,
        call: &RequestHandle<RoleClient>,
        sender: ProgressSender,
    ) -> ProgressSubscription {
        let token = call.progress_token.clone();
        let calls = self.calls.clone();
        with(&calls, |calls| calls.insert(token.clone(), sender));
        ProgressSubscription { calls, token }
    }
}

fn with<T, R>(shared: &Mutex<T>, change: impl FnOnce(&mut T) -> R) -> R {
    change(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Listens for one call's progress while it lives.
struct ProgressSubscription {
    calls: Arc<Mutex<HashMap<ProgressToken, ProgressSender>>>,
    token: ProgressToken,
}

impl Drop for ProgressSubscription {
    fn drop(&mut self) {
        with(&self.calls, |calls| calls.remove(&self.token));
    }
}

impl ClientHandler for ProgressListener {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("steadyhand", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), me)
    }

    async fn on_progress(
        &self,
        notice: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let sender = with(&self.calls, |calls| {
            calls.get(&notice.progress_token).cloned()
        });
        if let Some(sender) = sender {
            sender.tell(notice.into());
        }
    }
}
