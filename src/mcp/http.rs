//! Server over streamable HTTP at `/mcp`: both eras of the protocol, with sessions and without, on one address.
//!
//! Every POST is read here first. A request that the protocol library would answer with a 404, a 406 or a 415 (a broken body,
//! a narrow `Accept`, a sloppy `Content-Type`) is repaired, or gets a JSON-RPC error that says what is wrong.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post as posted};
use call::{ArrivalStamp, EntryPoint, Refusal, ToolCaller, VerifiedIdentity};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::accept::{HttpConnections, SharedConnectionSetup};
pub use super::auth_queue::AuthQueue;
use super::auth_queue::bearer;
use super::call_response::CallResponse;
use super::cancellation::{self, CANCELLED};
use super::forward;
use super::guarded_body::GuardedBody;
use super::kept_body::KeptBody;
use super::long_messages::{LongMessages, MemoryShare, MessageJudge, SHORT_BODY_BYTES_MAX};
use super::message_intake::{self, AcceptedMessage, MessageIntake, MessageRepair};
use super::origin_guard::{OriginGuard, RefusedOrigin, SESSION};
use super::own_hosts::own_hosts;
use super::request_sender::RequestSender;
use super::server::{ArrivedCall, McpHandler};
use super::service_trait::McpService;
use super::sessions::{McpSessions, SESSIONS_MAX, SessionOwner};
use super::stranded_clients::UnknownSession;
use super::stray_stop;
use super::tls::SharedTlsAcceptor;
use super::wide_ids;

/// Longest body that is read.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Kinds of answers that the protocol library wants a client to accept.
const ACCEPT_BOTH: &str = "application/json, text/event-stream";

/// The header that repeats the name of the tool that is called.
const NAME: &str = "mcp-name";

/// Longest silence of a stream. Proxies and clients take one of 60 s for broken.
const KEEP_ALIVE_PERIOD: Duration = Duration::from_secs(15);

/// Time within which a request's body must arrive after its head.
pub const BODY_MAX: Duration = Duration::from_secs(15);

/// Time within which the rest of a refused body may still arrive.
const DISCARD_MAX: Duration = Duration::from_secs(1);

/// Time within which calls may still be answered once the server has to stop.
pub const DRAIN_MAX: Duration = Duration::from_millis(1_500);

/// Names, access and handlers of the HTTP server.
#[derive(Clone, Default)]
pub struct HttpConfig {
    /// Hosts, or `host:port`, by which clients may call this node besides `localhost` and the address it listens on.
    /// Any other name is refused: a web page could have made it resolve to this machine.
    pub hosts: Vec<String>,
    /// Authenticator of every request. Without one, every client that reaches the address is let in.
    pub auth: Option<AuthQueue>,
    /// Called with the id of each session that has ended: by its client, by being idle, or to make room for another.
    pub on_session_end: Option<SessionEndCallback>,
    /// Renders `/metrics`, for clients that the authenticator lets in: numbers only.
    pub metrics: Option<PageRenderer>,
    /// Handles `/operator`, for callers that the authenticator lets in; without an authenticator there is no such path.
    pub operate: Option<OperatorEndpoint>,
    /// TLS; if set, nothing is sent unencrypted.
    pub tls: Option<SharedTlsAcceptor>,
    /// Answers `/readyz`: whether calls can be served now, with the reason in either case.
    pub ready: Option<ReadinessProbe>,
    /// Answers `/identity/CHALLENGE`, for every client, with a proof of which node this is.
    pub identity: Option<IdentityProof>,
    /// Further routes, behind the same guard of hosts and origins but with their own access control.
    pub pages: Option<Router>,
}

impl HttpConfig {
    /// Returns the URL scheme of this server.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// Callback for the end of a session.
pub type SessionEndCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// Renderer of a page of text, called for each request.
pub type PageRenderer = Arc<dyn Fn() -> String + Send + Sync>;

/// Endpoint for operators' verbs.
#[derive(Clone)]
pub struct OperatorEndpoint {
    /// Longest body that is read from a caller.
    pub bytes_max: fn(&VerifiedIdentity) -> usize,
    /// Records the stops heard before a request.
    pub stamp_arrival: Arc<dyn Fn() -> ArrivalStamp + Send + Sync>,
    /// Carries out the stop in a caller's body that did not become whole.
    pub hear_stop: OperatorStopListener,
    /// Handler of the body.
    pub run: OperatorHandler,
}

/// Carries out the stop that a caller's text names, if it names one.
pub type OperatorStopListener = Arc<dyn Fn(&VerifiedIdentity, &[u8]) + Send + Sync>;

/// Handler of operators' verbs: takes a caller, the request's body and its stamp, returns the answer's body. Fails with the
/// reason if the caller is not allowed to.
pub type OperatorHandler = Arc<
    dyn Fn(VerifiedIdentity, Vec<u8>, ArrivalStamp) -> BoxFuture<'static, Result<Value, Refusal>>
        + Send
        + Sync,
>;

/// Signs a challenge; `None` for a text that is not a challenge.
pub type IdentityProof = Arc<dyn Fn(&str) -> Option<serde_json::Value> + Send + Sync>;

/// Probe of the node's readiness to serve calls, with the reason in either case.
pub type ReadinessProbe = Arc<dyn Fn() -> Result<String, Refusal> + Send + Sync>;

/// Reason why the server does not listen, or no longer does.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Another program listens there.
    #[error(
        "another program uses {address}. Next: choose another port, or port 0 for any free one"
    )]
    InUse {
        /// Address that was asked for.
        address: SocketAddr,
    },
    /// The address does not belong to this machine, or its port is reserved.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// Address that was asked for.
        address: SocketAddr,
        /// Error from the system.
        source: io::Error,
    },
    /// The system took the socket away.
    #[error("the listening socket failed: {0}")]
    Accept(#[from] io::Error),
}

/// A socket that listens but does not answer yet.
#[derive(Debug)]
pub struct BoundListener {
    listener: TcpListener,
    address: SocketAddr,
}

/// Opens the socket.
///
/// # Errors
/// The address is in use, does not belong to this machine, or is reserved.
pub async fn listen(address: SocketAddr) -> Result<BoundListener, HttpError> {
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => HttpError::InUse { address },
        _ => HttpError::Bind { address, source },
    };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let address = listener.local_addr()?;
    Ok(BoundListener { listener, address })
}

/// Adopts a socket that another process has opened.
///
/// # Errors
/// The socket does not listen.
pub fn adopt(listener: std::net::TcpListener) -> Result<BoundListener, HttpError> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    Ok(BoundListener { listener, address })
}

impl BoundListener {
    /// Returns the address it listens on. If port 0 was asked for, this holds the assigned port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is set; then takes no new connection, lets running calls be answered for [`DRAIN_MAX`],
    /// and returns.
    ///
    /// # Errors
    /// The socket failed.
    pub fn serve(
        self,
        service: Arc<dyn McpService>,
        config: HttpConfig,
        repair: MessageRepair,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), HttpError>> {
        let handler = McpHandler::new(Arc::clone(&service), EntryPoint::Http);
        let serving = self.serve_all(handler, Some(service), config, repair, stop);
        serving.boxed()
    }

    /// As [`Self::serve`], for any handler of the protocol library, of which each connection gets a clone.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn serve_with<H: ServerHandler + Clone>(
        self,
        handler: H,
        config: HttpConfig,
        repair: MessageRepair,
        stop: CancellationToken,
    ) -> Result<(), HttpError> {
        self.serve_all(handler, None, config, repair, stop).await
    }

    async fn serve_all<H: ServerHandler + Clone>(
        self,
        handler: H,
        service: Option<Arc<dyn McpService>>,
        config: HttpConfig,
        repair: MessageRepair,
        stop: CancellationToken,
    ) -> Result<(), HttpError> {
        let quit = CancellationToken::new();
        let routes = HttpRoutes {
            service,
            auth: config.auth.clone(),
            ..HttpRoutes::new(&handler, &config, self.address, repair, &quit)
        };
        let calls = routes.calls.clone();
        let own_hosts = hosts(&config, self.address);
        let guard = OriginGuard::new(config.scheme(), &own_hosts);
        let pages = config.pages.clone().unwrap_or_default();
        let site = SharedConnectionSetup {
            guard: Arc::new(guard),
            tls: config.tls.clone(),
            router: build_router(config, routes.auth.clone())
                .with_state(Arc::new(routes))
                .merge(pages),
        };
        let connections = HttpConnections::default();
        connections.serve(self.listener, site, &stop).await;
        drain(calls.subscribe()).await;
        quit.cancel();
        connections.close().await;
        Ok(())
    }
}

/// The paths to which messages are sent.
const MESSAGES: [&str; 2] = ["/mcp", "/mcp/"];

/// Returns whether a URI is one to which messages are sent.
pub(super) fn holds_messages(uri: &http::Uri) -> bool {
    MESSAGES.contains(&uri.path())
}

/// Builds the routes. Liveness and readiness are open to every client; everything else requires the authenticator, if
/// there is one.
fn build_router<H: ServerHandler + Clone>(
    config: HttpConfig,
    auth: Option<AuthQueue>,
) -> Router<Arc<HttpRoutes<H>>> {
    let mut router = Router::new()
        .route(MESSAGES[0], any(handle_request::<H>))
        .route(MESSAGES[1], any(handle_request::<H>))
        .route("/healthz", get(async || "ok\n"));
    if let Some((operate, auth)) = config.operate.zip(auth.clone()) {
        let long = Arc::new(LongMessages::default());
        let run =
            move |request| run_operator_verb(auth.clone(), operate.clone(), long.clone(), request);
        router = router.route("/operator", posted(run));
    }
    if let Some(prove) = config.identity {
        let identity = move |Path(challenge): Path<String>| {
            std::future::ready(identity_response(&prove, &challenge))
        };
        router = router.route("/identity/{challenge}", get(identity));
    }
    if let Some(page) = config.metrics {
        let metrics = move |request| serve_page(auth.clone(), page.clone(), request);
        router = router.route("/metrics", get(metrics));
    }
    if let Some(ready) = config.ready {
        let readiness = move || std::future::ready(readiness_response(&ready));
        router = router.route("/readyz", get(readiness));
    }
    router
}

/// Serves a page to clients that the authenticator lets in.
async fn serve_page(auth: Option<AuthQueue>, page: PageRenderer, request: Request) -> Response {
    if let Some(auth) = auth
        && let Err(reason) = auth.admit(request.headers()).await
    {
        return unauthorized(&reason.to_string());
    }
    page().into_response()
}

fn identity_response(prove: &IdentityProof, challenge: &str) -> Response {
    match prove(challenge) {
        Some(proof) => json(StatusCode::OK, &proof),
        None => {
            let reason = "a challenge is 64 hexadecimal digits in lower case\n";
            (StatusCode::BAD_REQUEST, reason).into_response()
        }
    }
}

fn readiness_response(ready: &ReadinessProbe) -> (StatusCode, String) {
    match ready() {
        Ok(state) => (StatusCode::OK, format!("ready: {state}\n")),
        Err(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {reason}\n"),
        ),
    }
}

async fn drain(mut calls: watch::Receiver<usize>) {
    let none = calls.wait_for(|calls| *calls == 0);
    let _ = tokio::time::timeout(DRAIN_MAX, none).await;
}

type SessionHttpService<H> = StreamableHttpService<H, McpSessions>;
type StatelessHttpService<H> = StreamableHttpService<H, NeverSessionManager>;

/// The MCP endpoint and its three response modes.
struct HttpRoutes<H> {
    /// Serves clients that sent `initialize` and accept streams.
    in_session: SessionHttpService<H>,
    /// Open sessions.
    sessions: Arc<McpSessions>,
    /// Serves requests without a session by a stream, so that progress can come before the answer.
    streams: StatelessHttpService<H>,
    /// Serves requests without a session from clients that accept no stream: as JSON, unless progress was requested.
    json: StatelessHttpService<H>,
    repair: MessageRepair,
    /// The service that carries out calls, if this server has one.
    service: Option<Arc<dyn McpService>>,
    auth: Option<AuthQueue>,
    long: LongMessages,
    /// Number of requests being answered.
    calls: watch::Sender<usize>,
}

impl<H: ServerHandler + Clone> HttpRoutes<H> {
    fn new(
        handler: &H,
        config: &HttpConfig,
        address: SocketAddr,
        repair: MessageRepair,
        quit: &CancellationToken,
    ) -> Self {
        let base = server_config(config, address, quit);
        let handler = handler.clone();
        let factory = move || Ok(handler.clone());
        let sessions = Arc::new(McpSessions::new(config.on_session_end.clone()));
        let never = Arc::new(NeverSessionManager::default());
        let stateless = base.clone().with_legacy_session_mode(false);
        let json = stateless.clone().with_json_response(true);
        Self {
            in_session: SessionHttpService::new(factory.clone(), Arc::clone(&sessions), base),
            sessions,
            streams: StatelessHttpService::new(factory.clone(), never.clone(), stateless),
            json: StatelessHttpService::new(factory, never, json),
            repair,
            service: None,
            auth: None,
            long: LongMessages::default(),
            calls: watch::Sender::new(0),
        }
    }

    /// Refuses a request that names a session opened by another token. To its sender the session does not exist, so the answer is
    /// the same as for one that has ended, and the sender opens its own.
    fn refuse_foreign_session(&self, headers: &HeaderMap) -> Option<Response> {
        let id = headers.get(SESSION)?.to_str().ok()?;
        let reason = "this caller has no such session; open one with `initialize`";
        (!self.sessions.may_use(id, owner(headers))).then(|| refusal(StatusCode::NOT_FOUND, reason))
    }

    /// Removes the session from a request whose client keeps naming one of an earlier process, and from one that opens another:
    /// nothing of the old session is inherited.
    fn detach_unknown_session(&self, headers: &mut HeaderMap, accepted: &AcceptedMessage) {
        let id = headers.get(SESSION).and_then(|id| id.to_str().ok());
        let unknown = id.and_then(|id| self.sessions.unknown(id, owner(headers)));
        let opens = accepted.method.as_deref() == Some("initialize");
        if unknown == Some(UnknownSession::Stateless) || (unknown.is_some() && opens) {
            headers.remove(SESSION);
        }
    }

    /// Answers within a session. Binds a session that this opens to the token that opened it, before the answer is sent:
    /// until then no other client can name it.
    async fn answer_in_session(&self, request: Request) -> Response {
        let owner = owner(request.headers());
        let response = self.in_session.handle(request).await.map(Body::new);
        let opened = response.headers().get(SESSION);
        if let Some(id) = opened.and_then(|id| id.to_str().ok()) {
            self.sessions.bind(id, owner);
        }
        response
    }

    /// Returns the place for the body of this sender.
    fn kept_body(&self, sender: Option<&VerifiedIdentity>) -> KeptBody {
        let (service, sender) = (self.service.clone(), sender.cloned());
        KeptBody::new(Box::new(move |text| {
            if let Some(service) = &service {
                stray_stop::stop_in_unreadable(text, service.as_ref(), sender.as_ref());
            }
        }))
    }

    /// Records a stop that was carried out and whose call is refused: no call follows that would be recorded.
    fn record_refused_stop(&self, sender: Option<&VerifiedIdentity>) {
        if let Some(service) = &self.service {
            service.record_refused_stop(sender);
        }
    }

    /// Carries out the stop in the body of a request that is no POST; returns the request without its body, and whether there
    /// was a stop.
    async fn hear_body(&self, request: Request) -> Result<(Request, bool), Response> {
        let (parts, body) = request.into_parts();
        let sender = parts.extensions.get::<VerifiedIdentity>();
        let mut kept = self.kept_body(sender);
        let (body, _) =
            read_body(&parts.headers, body, BODY_BYTES_MAX, &self.long, &mut kept).await?;
        let is_stopped = self
            .service
            .as_ref()
            .is_some_and(|service| stray_stop::stop_in_unreadable(&body, service.as_ref(), sender));
        Ok((Request::from_parts(parts, Body::empty()), is_stopped))
    }

    async fn answer(&self, mode: ResponseMode, request: Request) -> Response {
        match mode {
            ResponseMode::Session => self.answer_in_session(request).await,
            ResponseMode::Stream => self.streams.handle(request).await.map(Body::new),
            ResponseMode::Json => self.json.handle(request).await.map(Body::new),
        }
    }
}

/// Returns the owner of a session that this request opens: the hash of its token, if it has one.
fn owner(headers: &HeaderMap) -> SessionOwner {
    bearer(headers).map(|token| blake3::hash(token.as_bytes()))
}

fn server_config(
    config: &HttpConfig,
    address: SocketAddr,
    quit: &CancellationToken,
) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts(config, address))
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        // An empty first event would invite clients to hang up and reconnect for the answer, but here hanging up stops the arm.
        // Simple clients also take an empty event for broken JSON.
        .with_sse_retry(None)
        .with_sse_keep_alive(Some(KEEP_ALIVE_PERIOD))
        .with_cancellation_token(quit.clone())
}

/// Returns every host name by which this server may be called.
fn hosts(config: &HttpConfig, address: SocketAddr) -> Vec<String> {
    let own = own_hosts(address).into_iter();
    own.chain(config.hosts.iter().cloned()).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseMode {
    Session,
    Stream,
    Json,
}

impl ResponseMode {
    fn of(headers: &HeaderMap, accepted: &AcceptedMessage) -> Self {
        let opens = accepted.method.as_deref() == Some("initialize");
        match (headers.contains_key(SESSION), accepts_streams(headers)) {
            (true, _) => Self::Session,
            (false, false) => Self::Json,
            (false, true) if opens => Self::Session,
            (false, true) => Self::Stream,
        }
    }
}

/// Refusal of a call that moves and is sent in a form that any web page can send.
const NOT_JSON: &str = "a call that moves the arm needs the header `Content-Type: application/json`. Nothing moved. Next: send it again with that header";

/// Returns whether a body is sent as JSON. A web page of another server can send every other form without being asked first.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn accepts_streams(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(ACCEPT).iter();
    let mut accept = accept.filter_map(|value| value.to_str().ok());
    accept.any(|value| value.to_ascii_lowercase().contains("text/event-stream"))
}

async fn handle_request<H: ServerHandler + Clone>(
    State(routes): State<Arc<HttpRoutes<H>>>,
    mut request: Request,
) -> Response {
    // A request that has arrived is heard, even if its sender hangs up.
    let _until_answered = RequestSender::of(request.extensions()).keep_request();
    if let Some(service) = &routes.service {
        request.extensions_mut().insert(service.stamp_arrival());
    }
    let refused = request.extensions().get::<RefusedOrigin>();
    let refused = refused.map(|refused| refusal(refused.status, refused.reason));
    if let Some(auth) = &routes.auth {
        match auth.admit(request.headers()).await {
            Ok(Some(identity)) => {
                request.extensions_mut().insert(identity);
            }
            Ok(None) => {}
            Err(reason) => return refused.unwrap_or_else(|| unauthorized(&reason.to_string())),
        }
    }
    if let Some(refused) = refused {
        return hear_only_stop(&routes, request, refused).await;
    }
    let foreign = routes.refuse_foreign_session(request.headers());
    if request.method() != Method::POST {
        return answer_other_method(&routes, request, foreign).await;
    }
    let (mut parts, body) = request.into_parts();
    let mut kept = routes.kept_body(parts.extensions.get());
    let (headers, long) = (&parts.headers, &routes.long);
    let read = read_body(headers, body, BODY_BYTES_MAX, long, &mut kept).await;
    let (body, received) = match read {
        Ok(read) => read,
        Err(refused) => {
            return match stop_by_header(routes.service.as_deref(), &parts) {
                true => tell_of_stop(refused, None).await,
                false => refused,
            };
        }
    };
    let judge = MessageJudge {
        repair: routes.repair,
        service: routes.service.clone(),
        sender: parts.extensions.get::<VerifiedIdentity>().cloned(),
    };
    let (intake, memory) = routes.long.admit(body, received, judge).await;
    match (intake, foreign) {
        (MessageIntake::Pass(accepted), Some(refused)) => {
            let Some(service) = &routes.service else {
                return refused;
            };
            if accepted.tool().is_some_and(|tool| service.is_stop(tool)) {
                // A stop needs no session, even if it names another caller's.
                parts.headers.remove(SESSION);
                return post(&routes, parts, accepted, memory).await;
            }
            let sender = parts.extensions.get::<VerifiedIdentity>();
            if !stray_stop::preempt(&accepted.message, service.as_ref(), sender) {
                return refused;
            }
            service.record_refused_stop(sender);
            tell_of_stop(refused, accepted.id.as_ref()).await
        }
        (intake, _) => answer_admitted(&routes, parts, intake, memory).await,
    }
}

/// Refuses a request for another host or by another server's page, and carries out a stop in it all the same.
async fn hear_only_stop<H: ServerHandler + Clone>(
    routes: &HttpRoutes<H>,
    request: Request,
    refused: Response,
) -> Response {
    let sender = request.extensions().get::<VerifiedIdentity>().cloned();
    match routes.hear_body(request).await {
        Ok((_, true)) => {
            routes.record_refused_stop(sender.as_ref());
            tell_of_stop(refused, None).await
        }
        _ => refused,
    }
}

/// Answers a request that is no POST; a stop in its body is carried out all the same.
async fn answer_other_method<H: ServerHandler + Clone>(
    routes: &HttpRoutes<H>,
    request: Request,
    foreign: Option<Response>,
) -> Response {
    let (request, is_stopped) = match routes.hear_body(request).await {
        Ok(heard) => heard,
        Err(refused) => return refused,
    };
    let response = match foreign {
        Some(refused) => refused,
        // Opens a standing stream, or ends a session.
        None => {
            let ends = request.method() == Method::DELETE;
            let mut response = routes.answer(ResponseMode::Session, request).await;
            if ends && response.status() == StatusCode::ACCEPTED {
                // Clients take an end that is only accepted for a failed one.
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
            response
        }
    };
    match is_stopped && !response.status().is_success() {
        true => tell_of_stop(response, None).await,
        false => response,
    }
}

/// Carries out the stop that a header names if the body of the call could not be read; returns whether there was one.
fn stop_by_header(service: Option<&dyn McpService>, parts: &http::request::Parts) -> bool {
    let name = parts.headers.get(NAME).and_then(|name| name.to_str().ok());
    let sender = parts.extensions.get::<VerifiedIdentity>();
    service
        .zip(name)
        .is_some_and(|(service, name)| service.stray_stop(name, sender))
}

/// Adds to the refusal of a request that its stop was carried out; a refusal in plain text becomes JSON.
async fn tell_of_stop(refused: Response, id: Option<&Value>) -> Response {
    let (mut parts, body) = refused.into_parts();
    let body = body.collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let reply = serde_json::from_slice(&body).unwrap_or_else(|_| {
        let reason = String::from_utf8_lossy(&body);
        message_intake::refusal(message_intake::INVALID_REQUEST, id.cloned(), reason.trim())
    });
    let told = json(parts.status, &stray_stop::with_stop_notice(reply, true));
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.extend(told.headers().clone());
    Response::from_parts(parts, told.into_body())
}

async fn answer_admitted<H: ServerHandler + Clone>(
    routes: &HttpRoutes<H>,
    parts: http::request::Parts,
    intake: MessageIntake,
    memory: MemoryShare,
) -> Response {
    match intake {
        MessageIntake::Pass(accepted) => post(routes, parts, accepted, memory).await,
        MessageIntake::Reply(reply) => json(StatusCode::BAD_REQUEST, &reply),
        MessageIntake::Nothing => {
            let reason = "the body is empty";
            let reply = message_intake::refusal(message_intake::PARSE_ERROR, None, reason);
            json(StatusCode::BAD_REQUEST, &reply)
        }
    }
}

fn unauthorized(reason: &str) -> Response {
    let mut response = refusal(StatusCode::UNAUTHORIZED, reason);
    let bearer = HeaderValue::from_static("Bearer realm=\"steadyhand\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    response
}

/// Runs an operator's verb. Web pages are never operators, not even our own.
async fn run_operator_verb(
    auth: AuthQueue,
    operate: OperatorEndpoint,
    long: Arc<LongMessages>,
    request: Request,
) -> Response {
    let until_begun = RequestSender::of(request.extensions()).keep_request();
    let arrived = (operate.stamp_arrival)();
    let identity = match auth.admit(request.headers()).await {
        Ok(Some(identity)) => identity,
        Ok(None) => {
            return unauthorized("operators' commands need an operator's token. Next: send one");
        }
        Err(reason) => return unauthorized(&reason.to_string()),
    };
    if request.headers().contains_key(ORIGIN) {
        return refusal(StatusCode::FORBIDDEN, "a web page cannot send commands");
    }
    let bytes_max = (operate.bytes_max)(&identity);
    let (parts, body) = request.into_parts();
    let (hear, sender) = (Arc::clone(&operate.hear_stop), identity.clone());
    let mut kept = KeptBody::new(Box::new(move |text| hear(&sender, text)));
    let (body, _) = match read_body(&parts.headers, body, bytes_max, &long, &mut kept).await {
        Ok(read) => read,
        Err(refused) => return refused,
    };
    let running = (operate.run)(identity, body.to_vec(), arrived);
    // The verb begins before its sender counts as gone; a sender who goes then gives it up.
    drop(until_begun);
    match running.await {
        Ok(reply) => json(StatusCode::OK, &reply),
        Err(reason) => refusal(StatusCode::FORBIDDEN, &reason.to_string()),
    }
}

/// Returns the response that refuses a request, with the reason.
pub(super) fn refusal(status: StatusCode, reason: &str) -> Response {
    let refusal = message_intake::refusal(message_intake::INVALID_REQUEST, None, reason);
    json(status, &refusal)
}

/// Returns the response to a sender that has gone.
pub(super) fn refuse_gone() -> Response {
    refusal(StatusCode::REQUEST_TIMEOUT, "the sender disconnected")
}

fn refuse_slow_body() -> Response {
    let reason = format!("the body was not here after {} s", BODY_MAX.as_secs());
    refusal(StatusCode::REQUEST_TIMEOUT, &reason)
}

/// Returns the refusal if no session can be opened now: the caller has opened too many lately, or all are in use.
fn refuse_session<H>(
    routes: &HttpRoutes<H>,
    parts: &http::request::Parts,
    mode: ResponseMode,
) -> Option<Response> {
    let identity = parts.extensions.get::<VerifiedIdentity>();
    if let (Some(auth), Some(identity)) = (&routes.auth, identity)
        && let Err(wait_s) = auth.count_session(identity)
    {
        let reason = format!(
            "the token `{}` allows {} calls a minute, and opening a session counts as one. Next: open it in {wait_s:.1} s",
            identity.name, identity.calls_per_minute
        );
        let mut response = refusal(StatusCode::TOO_MANY_REQUESTS, &reason);
        if let Ok(wait) = HeaderValue::try_from(format!("{:.0}", wait_s.ceil())) {
            response.headers_mut().insert(RETRY_AFTER, wait);
        }
        return Some(response);
    }
    let reason = format!(
        "all {SESSIONS_MAX} sessions are in use. Next: call without a session, or open one later"
    );
    let is_full = mode == ResponseMode::Session && !routes.sessions.has_room();
    is_full.then(|| refusal(StatusCode::SERVICE_UNAVAILABLE, &reason))
}

/// Gives up what a message cancels, if it is a cancellation. A cancelled request that is unknown may be the one that moves.
fn apply_cancellation<H>(
    routes: &HttpRoutes<H>,
    parts: &http::request::Parts,
    accepted: &mut AcceptedMessage,
) {
    if accepted.method.as_deref() == Some(CANCELLED)
        && !routes
            .sessions
            .cancel(&parts.headers, &mut accepted.message)
        && let Some(service) = &routes.service
    {
        service.abort_motion(parts.extensions.get::<VerifiedIdentity>());
    }
}

/// Takes the call out of a message, if it is one, and carries out a stop in it; returns whether there was one. This comes before its
/// session, its revision or other calls are considered. Refuses a call whose sender has gone, and one that moves and is not sent as JSON.
fn take_call<H>(
    routes: &HttpRoutes<H>,
    parts: &mut http::request::Parts,
    accepted: &mut AcceptedMessage,
) -> Result<bool, Box<Response>> {
    let Some(service) = &routes.service else {
        return Ok(false);
    };
    let Some(call) = accepted.take_call() else {
        return Ok(false);
    };
    let sender = parts.extensions.get::<VerifiedIdentity>();
    let hop = forward::hop_from_headers(&parts.headers);
    let caller = ToolCaller::sender(EntryPoint::Http, sender, hop);
    let is_stop = service.preempt_stop(&call.tool, &call.arguments, &caller);
    let is_gone = RequestSender::of(&parts.extensions).gone().is_cancelled();
    if is_gone && !is_stop && !service.is_stop(&call.tool) {
        return Err(Box::new(refuse_gone()));
    }
    let moves = !is_stop && service.moves(&call.tool, &call.arguments);
    if moves && !is_json(&parts.headers) {
        let id = accepted.id.clone();
        let refusal = message_intake::refusal(message_intake::INVALID_REQUEST, id, NOT_JSON);
        return Err(Box::new(json(StatusCode::UNSUPPORTED_MEDIA_TYPE, &refusal)));
    }
    let stamp = match is_stop {
        true => service.stamp_arrival().of_stop(),
        false => parts.extensions.remove().unwrap_or_default(),
    };
    // The library compares the header with the name, which `take_call` has put into the message as text.
    if !call.is_named
        && let Some(header) = parts.headers.get_mut(NAME)
        && let Ok(name) = HeaderValue::from_str(&call.tool)
    {
        *header = name;
    }
    parts.extensions.insert(ArrivedCall {
        arguments: call.arguments,
        stamp,
    });
    Ok(is_stop)
}

async fn post<H: ServerHandler + Clone>(
    routes: &HttpRoutes<H>,
    mut parts: http::request::Parts,
    mut accepted: AcceptedMessage,
    memory: MemoryShare,
) -> Response {
    let is_call = accepted.tool().is_some();
    let is_stop = match take_call(routes, &mut parts, &mut accepted) {
        Ok(is_stop) => is_stop,
        Err(refused) => return *refused,
    };
    routes.detach_unknown_session(&mut parts.headers, &accepted);
    let mode = ResponseMode::of(&parts.headers, &accepted);
    if accepted.method.as_deref() == Some("initialize")
        && let Some(refused) = refuse_session(routes, &parts, mode)
    {
        return refused;
    }
    apply_cancellation(routes, &parts, &mut accepted);
    let request = accepted.id.as_ref().filter(|_| accepted.method.is_some());
    let Some(open) = routes.sessions.open_call(&parts.headers, request) else {
        let refusal = cancellation::id_in_use(request.unwrap_or(&Value::Null));
        let refusal = stray_stop::with_stop_notice(refusal, is_stop);
        return json(StatusCode::BAD_REQUEST, &refusal);
    };
    let kept = (CountedRequest::new(&routes.calls), memory);
    let headers = &mut parts.headers;
    headers.insert(ACCEPT, HeaderValue::from_static(ACCEPT_BOTH));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let body = accepted.message.to_string();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    let hung_up = open.hung_up.clone();
    let sender = parts.extensions.get::<VerifiedIdentity>().cloned();
    parts.extensions.insert(open);
    let request = Request::from_parts(parts, Body::from(body));
    let mut response = answer_sender(routes, mode, request, hung_up, is_call, kept).await;
    if is_stop && !response.status().is_success() {
        routes.record_refused_stop(sender.as_ref());
        return tell_of_stop(response, accepted.id.as_ref()).await;
    }
    if accepted.id.as_ref().is_some_and(wide_ids::is_stand_in) {
        response.headers_mut().remove(CONTENT_LENGTH);
        response = response.map(wide_ids::restored_body);
    }
    response
}

/// Answers a request, and sets `hung_up` once its sender no longer reads: what it moves then comes to rest. A call goes on even so,
/// since it may be a stop for another node. `kept` is given up with the answer.
async fn answer_sender<H: ServerHandler + Clone>(
    routes: &HttpRoutes<H>,
    mode: ResponseMode,
    request: Request,
    hung_up: CancellationToken,
    is_call: bool,
    kept: (CountedRequest, MemoryShare),
) -> Response {
    let hung_up_guard = hung_up.clone().drop_guard();
    let sender = RequestSender::of(request.extensions());
    let mut answering = std::pin::pin!(routes.answer(mode, request));
    let response = tokio::select! {
        biased;
        response = &mut answering => response,
        () = sender.gone().cancelled() => {
            hung_up.cancel();
            if !is_call {
                return refuse_gone();
            }
            answering.await
        }
    };
    response.map(|body| match is_call {
        true => CallResponse::wrap(body, hung_up_guard, kept),
        false => GuardedBody::wrap(body, (hung_up_guard, kept)),
    })
}

/// Reads a body to its end; a long one waits until there is memory for it. One announced as too long is refused unread.
async fn read_body(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
    long: &LongMessages,
    kept: &mut KeptBody,
) -> Result<(Bytes, MemoryShare), Response> {
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if body.size_hint().lower() > limit {
        // A client that waits for permission to send gets none.
        if !headers.contains_key(EXPECT) {
            tokio::spawn(discard(body).boxed());
        }
        return Err(refuse_long_body(bytes_max));
    }
    match tokio::time::timeout(BODY_MAX, collect(body, bytes_max, long, kept)).await {
        Ok(read) => read,
        Err(_) => Err(refuse_slow_body()),
    }
}

async fn collect(
    mut body: Body,
    bytes_max: usize,
    long: &LongMessages,
    kept: &mut KeptBody,
) -> Result<(Bytes, MemoryShare), Response> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(bytes_max);
    let (all, mut memory) = (&mut kept.bytes, None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let reason = format!("the body could not be read: {error}");
            refusal(StatusCode::BAD_REQUEST, &reason)
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if all.len() + data.len() > bytes_max {
            return Err(refuse_long_body(bytes_max));
        }
        if memory.is_none() && all.len() + data.len() > SHORT_BODY_BYTES_MAX {
            memory = long.receive().await;
            all.reserve_exact(announced.min(bytes_max).saturating_sub(all.len()));
        }
        all.extend_from_slice(&data);
    }
    Ok((std::mem::take(all).into(), memory))
}

/// Discards the rest of a refused body, so that a sender that writes before it reads gets the answer, not a broken
/// connection.
async fn discard(mut body: Body) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    // A sender that takes longer is cut off.
    let _ = tokio::time::timeout(DISCARD_MAX, rest).await;
}

fn refuse_long_body(bytes_max: usize) -> Response {
    let reason = format!("the body is longer than {bytes_max} bytes, the most that is read here");
    refusal(StatusCode::PAYLOAD_TOO_LARGE, &reason)
}

fn json(status: StatusCode, value: &Value) -> Response {
    let body = wide_ids::restored(value.to_string().into_bytes());
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Counts one more request as being answered while this lives.
struct CountedRequest(watch::Sender<usize>);

impl CountedRequest {
    fn new(calls: &watch::Sender<usize>) -> Self {
        calls.send_modify(|calls| *calls = calls.saturating_add(1));
        Self(calls.clone())
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls = calls.saturating_sub(1));
    }
}
