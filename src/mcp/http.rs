//! The way in by streamable HTTP at `/mcp`: both eras of the protocol, with sessions and without, on one address.
//!
//! Every POST is read here first. What the protocol library would answer with a 404, a 406 or a 415 (a broken body, a
//! narrow `Accept`, a sloppy `Content-Type`) is mended or gets a JSON-RPC error that says what was wrong.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post as posted};
use call::{EntryPoint, Refusal, VerifiedIdentity};
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
use tokio_util::sync::{CancellationToken, DropGuard};

use super::accept::{HttpConnections, SharedConnectionSetup};
pub use super::auth_queue::AuthQueue;
use super::auth_queue::bearer;
use super::guarded_body::GuardedBody;
use super::long_messages::{LongMessages, MemoryShare, MessageJudge, SHORT_BODY_BYTES_MAX};
use super::message_intake::{self, AcceptedMessage, MessageIntake, MessageRepair};
use super::origin_guard::{OriginGuard, SESSION};
use super::server::{McpHandler, RawArguments};
use super::service_trait::McpService;
use super::sessions::{McpSessions, SESSIONS_MAX, SessionOwner};
use super::stranded_clients::UnknownSession;
use super::stray_stop;
use super::tls::SharedTlsAcceptor;
use super::wide_ids;

/// Longest body that is read.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The header that repeats the name of the tool that is called.
const NAME: &str = "mcp-name";

/// A request's body has to be here so soon after its head.
pub const BODY_MAX: Duration = Duration::from_secs(15);

/// Time within which the rest of a refused body may still arrive.
const DISCARD_MAX: Duration = Duration::from_secs(1);

/// Time within which calls may still be answered after the server was told to stop.
pub const DRAIN_MAX: Duration = Duration::from_millis(1_500);

/// Names, origins, access and handlers of the HTTP server.
#[derive(Clone, Default)]
pub struct HttpConfig {
    /// Hosts, or `host:port`, by which clients may call this node beside `localhost` and the address it listens on.
    /// A name that is not here is refused: a web page could have put it there.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call, `https://app.example:443`, beside the server's own. As shipped no other may.
    pub origins: Vec<String>,
    /// Authenticator asked for every request. Without one, every client that reaches the address is let in.
    pub doorkeeper: Option<AuthQueue>,
    /// Told the id of each session that has ended: by its client, by its idleness, or for another.
    pub left: Option<SessionEndCallback>,
    /// Answer at `/metrics`, for clients that the authenticator lets in: numbers only.
    pub metrics: Option<PageRenderer>,
    /// Does what is sent to `/operator`, for callers that the doorkeeper let in; without a doorkeeper there is no such address.
    pub operate: Option<OperatorEndpoint>,
    /// Encrypts, where it is given; nothing is then said in plain text.
    pub tls: Option<SharedTlsAcceptor>,
    /// Asked at `/readyz`: whether calls can be served now, in words either way.
    pub ready: Option<ReadinessProbe>,
    /// Asked at `/identity/CHALLENGE`, by every client: a proof of which node this is.
    pub identity: Option<IdentityProof>,
    /// Addresses of another room's, behind the same guard of hosts and origins, with an access control of their own.
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

/// The address of operators' verbs.
#[derive(Clone)]
pub struct OperatorEndpoint {
    /// Longest body that is read of a caller.
    pub bytes_max: fn(&VerifiedIdentity) -> usize,
    /// Handler of what was read.
    pub run: OperatorHandler,
}

/// Handler of operators' verbs: takes a caller and the request's body, returns the answer's. Fails with the reason if
/// the caller is not allowed to.
pub type OperatorHandler = Arc<
    dyn Fn(VerifiedIdentity, Vec<u8>) -> BoxFuture<'static, Result<Value, Refusal>> + Send + Sync,
>;

/// Signs a challenge; `None` for a text that is none.
pub type IdentityProof = Arc<dyn Fn(&str) -> Option<serde_json::Value> + Send + Sync>;

/// Probe of the node's readiness to serve calls, with the reason in either case.
pub type ReadinessProbe = Arc<dyn Fn() -> Result<String, Refusal> + Send + Sync>;

/// Reason why the server does not listen, or no longer does.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Another program listens there.
    #[error(
        "{address} is in use by another program; choose another port, or port 0 for a free one"
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

/// A socket that listens and does not answer yet.
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
        let served = self.serve_all(handler, Some(service), config, repair, stop);
        served.boxed()
    }

    /// The same for any handler of the protocol library, of which each connection gets a clone.
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
        let door = HttpRoutes {
            service,
            porter: config.doorkeeper.clone(),
            ..HttpRoutes::new(&handler, &config, self.address, repair, &quit)
        };
        let calls = door.calls.clone();
        let own_hosts = hosts(&config, self.address);
        let own_origins = origins(&config, self.address);
        let guard = OriginGuard::new(config.scheme(), &own_hosts, &own_origins);
        let pages = config.pages.clone().unwrap_or_default();
        let site = SharedConnectionSetup {
            guard: Arc::new(guard),
            tls: config.tls.clone(),
            router: routes(config, door.porter.clone())
                .with_state(Arc::new(door))
                .merge(pages),
        };
        let connections = HttpConnections::default();
        connections.serve(self.listener, site, &stop).await;
        drained(calls.subscribe()).await;
        quit.cancel();
        connections.close().await;
        Ok(())
    }
}

/// Builds the routes. Liveness and readiness are open to every client; everything else requires the authenticator, if
/// there is one.
fn routes<H: ServerHandler + Clone>(
    config: HttpConfig,
    porter: Option<AuthQueue>,
) -> Router<Arc<HttpRoutes<H>>> {
    let mut router = Router::new()
        .route("/mcp", any(enter::<H>))
        .route("/mcp/", any(enter::<H>))
        .route("/healthz", get(async || "ok\n"));
    if let Some((operate, porter)) = config.operate.zip(porter.clone()) {
        let long = Arc::new(LongMessages::default());
        let operated =
            move |request| operated(porter.clone(), operate.clone(), long.clone(), request);
        router = router.route("/operator", posted(operated));
    }
    if let Some(prove) = config.identity {
        let proven = move |Path(challenge): Path<String>| {
            std::future::ready(identity_response(&prove, &challenge))
        };
        router = router.route("/identity/{challenge}", get(proven));
    }
    if let Some(page) = config.metrics {
        let shown = move |request| serve_page(porter.clone(), page.clone(), request);
        router = router.route("/metrics", get(shown));
    }
    if let Some(ready) = config.ready {
        let told = move || std::future::ready(readiness_response(&ready));
        router = router.route("/readyz", get(told));
    }
    router
}

/// Serves a page to clients that the authenticator lets in.
async fn serve_page(porter: Option<AuthQueue>, page: PageRenderer, request: Request) -> Response {
    if let Some(porter) = porter
        && let Err(reason) = porter.admit(request.headers()).await
    {
        return turned_away(&reason.to_string());
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
        Ok(words) => (StatusCode::OK, format!("ready: {words}\n")),
        Err(words) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {words}\n"),
        ),
    }
}

async fn drained(mut calls: watch::Receiver<usize>) {
    let none = calls.wait_for(|calls| *calls == 0);
    let _ = tokio::time::timeout(DRAIN_MAX, none).await;
}

type SessionHttpService<H> = StreamableHttpService<H, McpSessions>;
type StatelessHttpService<H> = StreamableHttpService<H, NeverSessionManager>;

/// The one address and the three ways behind it.
struct HttpRoutes<H> {
    /// Clients that said `initialize` and take streams.
    in_session: SessionHttpService<H>,
    /// Open sessions.
    sessions: Arc<McpSessions>,
    /// Requests that stand alone; answered by a stream, so that progress can come before the answer.
    streams: StatelessHttpService<H>,
    /// Requests that stand alone, from clients that did not ask for a stream: plain JSON unless progress was asked for.
    plain: StatelessHttpService<H>,
    repair: MessageRepair,
    /// The side that does calls, where this server has one.
    service: Option<Arc<dyn McpService>>,
    porter: Option<AuthQueue>,
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
        let base = base(config, address, quit);
        let handler = handler.clone();
        let factory = move || Ok(handler.clone());
        let sessions = Arc::new(McpSessions::new(config.left.clone()));
        let never = Arc::new(NeverSessionManager::default());
        let alone = base.clone().with_legacy_session_mode(false);
        let plain = alone.clone().with_json_response(true);
        Self {
            in_session: SessionHttpService::new(factory.clone(), Arc::clone(&sessions), base),
            sessions,
            streams: StatelessHttpService::new(factory.clone(), never.clone(), alone),
            plain: StatelessHttpService::new(factory, never, plain),
            repair,
            service: None,
            porter: None,
            long: LongMessages::default(),
            calls: watch::Sender::new(0),
        }
    }

    /// The refusal of a request that names a session that another token opened. For its sender there is no such session,
    /// so it is told what it would be of one that has ended, and opens its own.
    fn of_another(&self, headers: &HeaderMap) -> Option<Response> {
        let id = headers.get(SESSION)?.to_str().ok()?;
        let reason = "this caller has no such session; open one with `initialize`";
        (!self.sessions.may_use(id, owner(headers))).then(|| refusal(StatusCode::NOT_FOUND, reason))
    }

    /// Takes the session off a request whose client goes on naming one of a process before this one, and off one that opens
    /// another: nothing of the old session is inherited.
    fn let_stranded_go_alone(&self, headers: &mut HeaderMap, passed: &AcceptedMessage) {
        let id = headers.get(SESSION).and_then(|id| id.to_str().ok());
        let unknown = id.and_then(|id| self.sessions.unknown(id, owner(headers)));
        let opens = passed.method.as_deref() == Some("initialize");
        if unknown == Some(UnknownSession::Alone) || (unknown.is_some() && opens) {
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

    async fn answer(&self, way: ResponseMode, request: Request) -> Response {
        match way {
            ResponseMode::Session => self.answer_in_session(request).await,
            ResponseMode::Stream => self.streams.handle(request).await.map(Body::new),
            ResponseMode::Plain => self.plain.handle(request).await.map(Body::new),
        }
    }
}

/// Returns what binds a session to whom opened it: the token's hash, or that there was none.
fn owner(headers: &HeaderMap) -> SessionOwner {
    bearer(headers).map(|token| blake3::hash(token.as_bytes()))
}

fn base(
    config: &HttpConfig,
    address: SocketAddr,
    quit: &CancellationToken,
) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts(config, address))
        .with_allowed_origins(origins(config, address))
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        // An empty first event would invite clients to hang up and come back for the answer. Here hanging up stops the arm;
        // and simple clients take an empty event for broken JSON.
        .with_sse_retry(None)
        .with_cancellation_token(quit.clone())
}

/// Every name by which this server may be called.
fn hosts(config: &HttpConfig, address: SocketAddr) -> Vec<String> {
    let own = own_hosts(address).into_iter();
    own.chain(config.hosts.iter().cloned()).collect()
}

/// Every page that may call: one that this very server could have sent, for pages from other ports of this machine are
/// strangers, and those that are named.
fn origins(config: &HttpConfig, address: SocketAddr) -> Vec<String> {
    let (port, scheme) = (address.port(), config.scheme());
    let page = |host: String| match host.contains(':') {
        true => format!("{scheme}://[{host}]:{port}"),
        false => format!("{scheme}://{host}:{port}"),
    };
    let own = own_hosts(address).into_iter().map(page);
    own.chain(config.origins.iter().cloned()).collect()
}

fn own_hosts(address: SocketAddr) -> Vec<String> {
    let mut hosts = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    let here = match address.ip() {
        ip if ip.is_unspecified() => machine_addresses(),
        ip => vec![ip],
    };
    let here = here.into_iter().map(|ip| ip.to_string());
    let others: Vec<String> = here.filter(|ip| !hosts.contains(ip)).collect();
    hosts.extend(others);
    hosts
}

/// Every address of this machine, for a server that listens at all of them; none where the system does not tell.
fn machine_addresses() -> Vec<IpAddr> {
    match if_addrs::get_if_addrs() {
        Ok(interfaces) => interfaces.iter().map(if_addrs::Interface::ip).collect(),
        Err(error) => {
            tracing::warn!(
                "this machine's addresses are not known: callers name a --host: {error}"
            );
            Vec::new()
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseMode {
    Session,
    Stream,
    Plain,
}

impl ResponseMode {
    fn of(headers: &HeaderMap, passed: &AcceptedMessage) -> Self {
        let opens = passed.method.as_deref() == Some("initialize");
        match (headers.contains_key(SESSION), accepts_streams(headers)) {
            (true, _) => Self::Session,
            (false, false) => Self::Plain,
            (false, true) if opens => Self::Session,
            (false, true) => Self::Stream,
        }
    }
}

fn accepts_streams(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(ACCEPT).iter();
    let mut accept = accept.filter_map(|value| value.to_str().ok());
    accept.any(|value| value.to_ascii_lowercase().contains("text/event-stream"))
}

async fn enter<H: ServerHandler + Clone>(
    State(door): State<Arc<HttpRoutes<H>>>,
    mut request: Request,
) -> Response {
    if let Some(porter) = &door.porter {
        match porter.admit(request.headers()).await {
            Ok(Some(identity)) => {
                request.extensions_mut().insert(identity);
            }
            Ok(None) => {}
            Err(reason) => return turned_away(&reason.to_string()),
        }
    }
    let foreign = door.of_another(request.headers());
    if request.method() != Method::POST {
        return match foreign {
            Some(refused) => refused,
            // A standing stream is opened, or a session ended.
            None => door.answer(ResponseMode::Session, request).await,
        };
    }
    let (mut parts, body) = request.into_parts();
    let read = read_body(&parts.headers, body, BODY_BYTES_MAX, &door.long).await;
    let (body, received) = match read {
        Ok(read) => read,
        Err(refused) => {
            stop_by_header(door.service.as_deref(), &parts);
            return refused;
        }
    };
    let judge = MessageJudge {
        repair: door.repair,
        service: door.service.clone(),
        sender: parts.extensions.get::<VerifiedIdentity>().cloned(),
    };
    let (admitted, share) = door.long.admit(body, received, judge).await;
    match (admitted, foreign) {
        (MessageIntake::Pass(passed), Some(refused)) => {
            let stops = |service: &Arc<dyn McpService>| {
                passed.tool().is_some_and(|tool| service.is_stop(tool))
            };
            if !door.service.as_ref().is_some_and(stops) {
                let sender = parts.extensions.get::<VerifiedIdentity>();
                let is_heard = |service: &Arc<dyn McpService>| {
                    stray_stop::preempt(&passed.message, service.as_ref(), sender)
                };
                if door.service.as_ref().is_some_and(is_heard) {
                    tracing::warn!(
                        "a stop in the arguments of a call without its session was done"
                    );
                }
                return refused;
            }
            // A stop needs no session, whosever it names.
            parts.headers.remove(SESSION);
            post(&door, parts, passed, share).await
        }
        (admitted, _) => answer_admitted(&door, parts, admitted, share).await,
    }
}

/// Does the stop that a header names, where the body of the call could not be read.
fn stop_by_header(service: Option<&dyn McpService>, parts: &http::request::Parts) {
    let name = parts.headers.get(NAME).and_then(|name| name.to_str().ok());
    if let (Some(service), Some(name)) = (service, name) {
        service.stray_stop(name, parts.extensions.get::<VerifiedIdentity>());
    }
}

async fn answer_admitted<H: ServerHandler + Clone>(
    door: &HttpRoutes<H>,
    parts: http::request::Parts,
    admitted: MessageIntake,
    share: MemoryShare,
) -> Response {
    match admitted {
        MessageIntake::Pass(passed) => post(door, parts, passed, share).await,
        MessageIntake::Reply(reply) => json(StatusCode::BAD_REQUEST, &reply),
        MessageIntake::Nothing => {
            let reason = "the body is empty";
            let reply = message_intake::refusal(message_intake::PARSE_ERROR, None, reason);
            json(StatusCode::BAD_REQUEST, &reply)
        }
    }
}

fn turned_away(reason: &str) -> Response {
    let mut response = refusal(StatusCode::UNAUTHORIZED, reason);
    let bearer = HeaderValue::from_static("Bearer realm=\"steadyhand\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    response
}

/// An operator's verb. No page of any site is an operator, not even one of ours.
async fn operated(
    porter: AuthQueue,
    operate: OperatorEndpoint,
    long: Arc<LongMessages>,
    request: Request,
) -> Response {
    let identity = match porter.admit(request.headers()).await {
        Ok(Some(identity)) => identity,
        Ok(None) => return turned_away("verbs are for operators' tokens: send one"),
        Err(reason) => return turned_away(&reason.to_string()),
    };
    if request.headers().contains_key(ORIGIN) {
        return refusal(StatusCode::FORBIDDEN, "a web page is no operator");
    }
    let bytes_max = (operate.bytes_max)(&identity);
    let (parts, body) = request.into_parts();
    let (body, _) = match read_body(&parts.headers, body, bytes_max, &long).await {
        Ok(read) => read,
        Err(refused) => return refused,
    };
    match (operate.run)(identity, body.to_vec()).await {
        Ok(told) => json(StatusCode::OK, &told),
        Err(reason) => refusal(StatusCode::FORBIDDEN, &reason.to_string()),
    }
}

/// A request that goes no further, and why.
pub(super) fn refusal(status: StatusCode, reason: &str) -> Response {
    let refusal = message_intake::refusal(message_intake::INVALID_REQUEST, None, reason);
    json(status, &refusal)
}

fn too_slow() -> Response {
    let reason = format!("the body was not here after {} s", BODY_MAX.as_secs());
    refusal(StatusCode::REQUEST_TIMEOUT, &reason)
}

/// Returns the refusal if no session can be opened now: the caller has opened enough lately, or all are at work.
fn refuse_session<H>(
    door: &HttpRoutes<H>,
    parts: &http::request::Parts,
    way: ResponseMode,
) -> Option<Response> {
    let identity = parts.extensions.get::<VerifiedIdentity>();
    if let (Some(porter), Some(identity)) = (&door.porter, identity)
        && let Err(wait_s) = porter.count_session(identity)
    {
        let reason = format!(
            "the token `{}` allows {} calls a minute, and a session is one; open it in {wait_s:.1} s",
            identity.name, identity.calls_per_minute
        );
        let mut response = refusal(StatusCode::TOO_MANY_REQUESTS, &reason);
        if let Ok(wait) = HeaderValue::try_from(format!("{:.0}", wait_s.ceil())) {
            response.headers_mut().insert(RETRY_AFTER, wait);
        }
        return Some(response);
    }
    let reason = format!(
        "all {SESSIONS_MAX} sessions are at work; call without one, or open it when one of them has ended"
    );
    let is_full = way == ResponseMode::Session && !door.sessions.has_room();
    is_full.then(|| refusal(StatusCode::SERVICE_UNAVAILABLE, &reason))
}

async fn post<H: ServerHandler + Clone>(
    door: &HttpRoutes<H>,
    mut parts: http::request::Parts,
    mut passed: AcceptedMessage,
    share: MemoryShare,
) -> Response {
    if let Some(service) = &door.service
        && let Some(call) = passed.take_call()
    {
        // Before its session, its revision or the other calls are looked at.
        let sender = parts.extensions.get::<VerifiedIdentity>();
        service.preempt_stop(&call.tool, &call.arguments, sender);
        // The library compares the header with the name, which is in the message now whatever it was.
        if !call.is_named
            && let Some(header) = parts.headers.get_mut(NAME)
            && let Ok(name) = HeaderValue::from_str(&call.tool)
        {
            *header = name;
        }
        parts.extensions.insert(RawArguments(call.arguments));
    }
    door.let_stranded_go_alone(&mut parts.headers, &passed);
    let way = ResponseMode::of(&parts.headers, &passed);
    if passed.method.as_deref() == Some("initialize")
        && let Some(refused) = refuse_session(door, &parts, way)
    {
        return refused;
    }
    let open = door.sessions.open_call(&parts.headers);
    let watched = WatchedPost {
        _hung_up: open.hung_up.clone().drop_guard(),
        _counted: CountedRequest::new(&door.calls),
        _share: share,
    };
    let headers = &mut parts.headers;
    let takes_both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(ACCEPT, takes_both);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let body = passed.message.to_string();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    parts.extensions.insert(open);
    let request = Request::from_parts(parts, Body::from(body));
    let mut response = door.answer(way, request).await;
    if passed.id.as_ref().is_some_and(wide_ids::is_stand_in) {
        response.headers_mut().remove(CONTENT_LENGTH);
        response = response.map(wide_ids::restored_body);
    }
    response.map(|body| GuardedBody::wrap(body, watched))
}

/// Reads a body to its end, a long one when there is room for it. One that is announced as too long is refused before any of it
/// is read.
async fn read_body(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
    long: &LongMessages,
) -> Result<(Bytes, MemoryShare), Response> {
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if body.size_hint().lower() > most {
        // Who waits for leave to send it gets none.
        if !headers.contains_key(EXPECT) {
            tokio::spawn(discard(body).boxed());
        }
        return Err(too_long(bytes_max));
    }
    match tokio::time::timeout(BODY_MAX, collect(body, bytes_max, long)).await {
        Ok(read) => read,
        Err(_) => Err(too_slow()),
    }
}

async fn collect(
    mut body: Body,
    bytes_max: usize,
    long: &LongMessages,
) -> Result<(Bytes, MemoryShare), Response> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(bytes_max);
    let (mut all, mut share) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let reason = format!("the body could not be read: {error}");
            refusal(StatusCode::BAD_REQUEST, &reason)
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if all.len() + data.len() > bytes_max {
            return Err(too_long(bytes_max));
        }
        if share.is_none() && all.len() + data.len() > SHORT_BODY_BYTES_MAX {
            share = long.receive().await;
            all.reserve_exact(announced.min(bytes_max).saturating_sub(all.len()));
        }
        all.extend_from_slice(&data);
    }
    Ok((all.into(), share))
}

/// Lets the rest of a refused body pass, so that its sender, who writes before it reads, finds the answer and no broken
/// connection.
async fn discard(mut body: Body) {
    let passed = async { while let Some(Ok(_)) = body.frame().await {} };
    // Whoever sends longer is cut off.
    let _ = tokio::time::timeout(DISCARD_MAX, passed).await;
}

fn too_long(bytes_max: usize) -> Response {
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

/// One more request that is being answered, while this lives.
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

/// One POST until its answer has been read or its reader has gone. A call that is not answered then has no reader
/// any more; one that is answered heeds no sign.
struct WatchedPost {
    _hung_up: DropGuard,
    _counted: CountedRequest,
    _share: MemoryShare,
}
