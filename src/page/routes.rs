//! The addresses of the page. Reading changes nothing; every command needs a session, and a stop needs none.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use base::units::ClockInstant;
use base::wording::html_escaped;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use call::VerifiedIdentity;
use caller::is_login_code;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, COOKIE, HeaderName, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tools::Node;

use super::assets::{self, ASSETS};
use super::live_feed::{LiveFeed, state_json};
use super::page_refusal::PageRefusal;
use super::same_origin::{PAGE_HEADER, check_command, check_post, check_read, is_on_this_machine};
use super::services::{PageServices, StopAnswer};
use super::servo_history::ServoHistory;
use super::sessions::{PageSessions, SessionHolder, SessionUse};
use super::{job_audit, job_history};

/// Longest body of a request other than a verb.
const SHORT_BYTES_MAX: usize = 4 * 1024;

/// Time in which a command's body must arrive.
const BODY_WAIT_MAX: Duration = Duration::from_secs(15);

/// Longest number of a command.
const COMMAND_CHARS_MAX: usize = 64;

/// Header with the number of a command, so that it is not carried out twice.
const COMMAND_HEADER: HeaderName = HeaderName::from_static("steadyhand-command");

/// Role that may send commands.
const OPERATOR: &str = "operator";

/// Security headers of every response.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        concat!(
            "default-src 'none'; script-src 'self'; ",
            "style-src 'self'; ",
            "img-src 'self' blob: data:; ",
            "connect-src 'self'; form-action 'self'; ",
            "base-uri 'none'; frame-ancestors 'none'"
        ),
    ),
    ("x-content-type-options", "nosniff"),
    // With `no-referrer`, the Origin of a form's request would be `null`.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), microphone=(), geolocation=()",
    ),
];

/// State shared by the page's routes.
pub struct PageDoor {
    node: Arc<Node>,
    services: Arc<dyn PageServices>,
    sessions: PageSessions,
    feed: LiveFeed,
    history: Arc<ServoHistory>,
    scheme: &'static str,
    cookie: String,
}

impl PageDoor {
    /// Creates the door to a node that listens at this port with this URL scheme. `stop` ends all streams. Must be called on a
    /// runtime.
    #[must_use]
    pub fn new(
        node: &Arc<Node>,
        services: Arc<dyn PageServices>,
        scheme: &'static str,
        port: u16,
        stop: CancellationToken,
    ) -> Self {
        Self {
            node: Arc::clone(node),
            services,
            sessions: PageSessions::default(),
            history: ServoHistory::of(node, stop.clone()),
            feed: LiveFeed::of(node, stop),
            scheme,
            // Cookies are shared by all ports of a machine, and so by all its nodes.
            cookie: format!("steadyhand_{port}"),
        }
    }

    fn now(&self) -> ClockInstant {
        self.node.clock.now()
    }

    /// Returns the two halves of a session's key from a request.
    fn keys<'a>(&self, headers: &'a HeaderMap) -> Option<(&'a str, &'a str)> {
        let secret = headers.get(PAGE_HEADER)?.to_str().ok()?;
        let mut cookies = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='));
        let (_, cookie) = cookies.find(|(name, _)| *name == self.cookie)?;
        Some((cookie, secret))
    }

    /// Returns the identity that has logged in. A revoked token ends its sessions.
    async fn identity(
        &self,
        headers: &HeaderMap,
        by: SessionUse,
    ) -> Result<VerifiedIdentity, PageRefusal> {
        let keys = self.keys(headers).ok_or(PageRefusal::NoSession)?;
        let holder = self.sessions.holder(keys, by, self.now());
        match holder.ok_or(PageRefusal::NoSession)? {
            SessionHolder::Person(name) => Ok(operator(name)),
            SessionHolder::Token { token, .. } => {
                let holder = self.services.holder(token).await;
                holder.ok_or_else(|| {
                    self.sessions.close(keys.0, keys.1);
                    PageRefusal::NoSession
                })
            }
        }
    }

    /// Returns the identity of a reader that is logged in, on a page that this node has sent.
    async fn reader(
        &self,
        headers: &HeaderMap,
        by: SessionUse,
    ) -> Result<VerifiedIdentity, PageRefusal> {
        check_read(headers)?;
        self.identity(headers, by).await
    }

    /// Returns the name under which a session's commands and stops are recorded. Reads only memory.
    fn audit_name(&self, headers: &HeaderMap) -> String {
        let keys = self.keys(headers);
        let holder = keys.and_then(|keys| self.sessions.holder(keys, SessionUse::Page, self.now()));
        holder.map_or_else(
            || "not logged in (page)".to_owned(),
            |holder| holder.audit_name(),
        )
    }

    /// Returns the identity that has logged in, if it is an operator's.
    async fn operator(&self, headers: &HeaderMap) -> Result<VerifiedIdentity, PageRefusal> {
        let identity = self.identity(headers, SessionUse::Person).await?;
        match identity.role == OPERATOR {
            true => Ok(identity),
            false => Err(PageRefusal::Role {
                name: identity.name,
                role: identity.role,
            }),
        }
    }

    /// Checks that a command was not sent before.
    fn check_new(&self, headers: &HeaderMap) -> Result<(), PageRefusal> {
        let (cookie, secret) = self.keys(headers).ok_or(PageRefusal::NoSession)?;
        let number = headers.get(COMMAND_HEADER).and_then(|n| n.to_str().ok());
        let number = number.filter(|n| (1..=COMMAND_CHARS_MAX).contains(&n.len()));
        let advice = "a command needs a new number in the header `Steadyhand-Command`";
        let number = number.ok_or_else(|| PageRefusal::Body(advice.to_owned()))?;
        match self.sessions.is_new_command(cookie, secret, number) {
            true => Ok(()),
            false => Err(PageRefusal::Twice),
        }
    }

    fn cookie_header(&self, value: &str, suffix: &str) -> Result<HeaderValue, PageRefusal> {
        let secure = match self.scheme {
            "https" => "; Secure",
            _ => "",
        };
        let name = &self.cookie;
        let text = format!("{name}={value}; Path=/page; HttpOnly; SameSite=Strict{secure}{suffix}");
        HeaderValue::from_str(&text).map_err(|error| PageRefusal::Broken(error.to_string()))
    }
}

fn operator(name: String) -> VerifiedIdentity {
    VerifiedIdentity {
        name,
        role: OPERATOR.to_owned(),
        calls_per_minute: u32::MAX,
    }
}

type SharedDoor = State<Arc<PageDoor>>;

/// Returns the routes of the page: `/` and what is below `/page/`.
pub fn routes(door: PageDoor) -> Router {
    let files = ASSETS.iter().fold(Router::new(), |router, asset| {
        let path = match asset.name {
            "" => "/".to_owned(),
            name => format!("/page/{name}"),
        };
        let sent = Arc::new(asset.as_sent());
        let file = move |headers: HeaderMap| {
            let answer = assets::serve(&sent, &headers);
            async move { answer }
        };
        router.route(&path, get(file))
    });
    files
        .route("/page/state", get(state))
        .route("/page/events", get(events))
        .route("/page/history", get(history))
        .route("/page/session", get(session))
        .route("/page/jobs", get(jobs))
        .route("/page/pending", get(pending))
        .route("/page/jobs/{id}/audit", get(audit))
        .route("/page/jobs/{id}/recording", get(recording))
        .route("/page/jobs/{id}/report", get(report))
        .route("/page/jobs/{id}/{picture}", get(picture))
        .route("/page/scenes", get(scenes))
        .route("/page/login", post(log_in))
        .route("/page/logout", post(log_out))
        .route("/page/sense", post(sense))
        .route("/page/sheet-photo", post(sheet_photo))
        .route("/page/operate", post(operate))
        .route("/page/stop", post(stop))
        .route("/page/estop", post(emergency_stop))
        .layer(axum::middleware::map_response(with_headers))
        .with_state(Arc::new(door))
}

async fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Everything but files belongs to this moment and this session.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn json_response(value: &Value) -> Response {
    let kind = [(CONTENT_TYPE, "application/json")];
    (kind, value.to_string()).into_response()
}

/// Reads a command's body.
async fn body_of(request: Request, bytes_max: usize) -> Result<Bytes, PageRefusal> {
    let read = axum::body::to_bytes(request.into_body(), bytes_max);
    match tokio::time::timeout(BODY_WAIT_MAX, read).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(PageRefusal::Body(format!(
            "it ends early or is longer than {bytes_max} bytes"
        ))),
        Err(_) => Err(PageRefusal::Body(format!(
            "its body did not arrive within {} s",
            BODY_WAIT_MAX.as_secs()
        ))),
    }
}

/// Reads files of a node on a blocking thread, for a session that has logged in.
async fn read<T: Send + 'static>(
    door: &PageDoor,
    headers: &HeaderMap,
    by: SessionUse,
    work: impl FnOnce(&Node) -> T + Send + 'static,
) -> Result<T, PageRefusal> {
    door.reader(headers, by).await?;
    let node = Arc::clone(&door.node);
    let result = tokio::task::spawn_blocking(move || work(&node)).await;
    result
        .map_err(|_| PageRefusal::Broken("it could not be read; the log has the reason".to_owned()))
}

/// Reads a command's body as JSON.
async fn json_of<T: DeserializeOwned>(request: Request) -> Result<T, PageRefusal> {
    let body = body_of(request, SHORT_BYTES_MAX).await?;
    serde_json::from_slice(&body).map_err(|error| PageRefusal::Body(error.to_string()))
}

async fn state(State(door): SharedDoor, headers: HeaderMap) -> Result<Response, PageRefusal> {
    check_read(&headers)?;
    let kind = [(CONTENT_TYPE, "application/json")];
    Ok((kind, state_json(&door.node)).into_response())
}

async fn history(State(door): SharedDoor, headers: HeaderMap) -> Result<Response, PageRefusal> {
    check_read(&headers)?;
    let kind = [(CONTENT_TYPE, "application/json")];
    Ok((kind, door.history.json()).into_response())
}

async fn events(State(door): SharedDoor, headers: HeaderMap) -> Result<Response, PageRefusal> {
    check_read(&headers)?;
    let kind = [(CONTENT_TYPE, "text/event-stream")];
    Ok((kind, door.feed.follow()?).into_response())
}

async fn session(State(door): SharedDoor, headers: HeaderMap) -> Result<Response, PageRefusal> {
    let identity = door.reader(&headers, SessionUse::Page).await?;
    let keys = door.keys(&headers).ok_or(PageRefusal::NoSession)?;
    let ends_in = door.sessions.ends_in(keys, door.now());
    let mut session = session_json(&identity);
    if let (Some(ends_in), Some(fields)) = (ends_in, session.as_object_mut()) {
        fields.insert("ends_in_s".to_owned(), ends_in.as_secs().into());
    }
    Ok(json_response(&session))
}

fn session_json(identity: &VerifiedIdentity) -> Value {
    json!({"name": identity.name, "role": identity.role})
}

async fn jobs(State(door): SharedDoor, headers: HeaderMap) -> Result<Response, PageRefusal> {
    let jobs = read(&door, &headers, SessionUse::Person, job_history::jobs);
    Ok(json_response(&jobs.await?))
}

async fn pending(State(door): SharedDoor, headers: HeaderMap) -> Result<Response, PageRefusal> {
    let pending = read(&door, &headers, SessionUse::Page, job_history::pending);
    Ok(json_response(&pending.await?))
}

async fn picture(
    State(door): SharedDoor,
    Path((id, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, PageRefusal> {
    let png = move |node: &Node| job_history::picture(node, &id, &name);
    let png = read(&door, &headers, SessionUse::Person, png).await??;
    Ok(([(CONTENT_TYPE, "image/png")], png).into_response())
}

async fn recording(
    State(door): SharedDoor,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageRefusal> {
    let bytes = move |node: &Node| job_history::recording(node, &id);
    let bytes = read(&door, &headers, SessionUse::Person, bytes).await??;
    Ok(([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

async fn report(
    State(door): SharedDoor,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageRefusal> {
    let html = move |node: &Node| job_history::report(node, &id);
    let html = read(&door, &headers, SessionUse::Person, html).await??;
    // Fetched and saved: the page never shows it.
    Ok(([(CONTENT_TYPE, "application/octet-stream")], html).into_response())
}

async fn audit(
    State(door): SharedDoor,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageRefusal> {
    let records = move |node: &Node| job_audit::records(node, &id);
    let records = read(&door, &headers, SessionUse::Person, records).await??;
    Ok(json_response(&json!(records)))
}

async fn scenes(State(door): SharedDoor, headers: HeaderMap) -> Result<Response, PageRefusal> {
    let names =
        |node: &Node| json!({"scenes": node.scenes.scenes(), "overlays": node.scenes.overlays()});
    let names = read(&door, &headers, SessionUse::Person, names);
    Ok(json_response(&names.await?))
}

#[derive(Deserialize)]
struct LoginRequest {
    token: String,
}

/// Opens a session for a token, or for a code that `steadyhand page` has printed.
async fn log_in(State(door): SharedDoor, request: Request) -> Result<Response, PageRefusal> {
    check_command(request.headers(), door.scheme)?;
    if door.scheme != "https" && !is_on_this_machine(request.headers()) {
        return Err(PageRefusal::PlainText);
    }
    let login: LoginRequest = json_of(request).await?;
    let (holder, identity) = prove(&door, login.token.trim()).await?;
    let note = format!("{}: logged in as {}", holder.audit_name(), identity.role);
    let keys = door.sessions.open(holder, door.now());
    let keys = keys.map_err(|error| PageRefusal::Broken(error.to_string()))?;
    door.node.audit.note("operator", note);
    let mut body = session_json(&identity);
    if let Some(body) = body.as_object_mut() {
        body.insert("secret".to_owned(), keys.secret.into());
    }
    let mut response = json_response(&body);
    let cookie = door.cookie_header(&keys.cookie, "")?;
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

/// Verifies a token or a login code.
async fn prove(
    door: &PageDoor,
    text: &str,
) -> Result<(SessionHolder, VerifiedIdentity), PageRefusal> {
    if is_login_code(text) {
        let name = door.node.login_codes.spend(text, door.now());
        let message = "this code is not valid: a code works only once, and only within five minutes. Next: `steadyhand page` prints a new one";
        let name = name.ok_or_else(|| PageRefusal::Login(message.to_owned()))?;
        return Ok((SessionHolder::Person(name.clone()), operator(name)));
    }
    let identity = door.services.verify(text.to_owned()).await;
    let identity = identity.map_err(|error| PageRefusal::Login(error.into()))?;
    let holder = SessionHolder::Token {
        token: text.to_owned(),
        name: identity.name.clone(),
    };
    Ok((holder, identity))
}

async fn log_out(State(door): SharedDoor, headers: HeaderMap) -> Result<Response, PageRefusal> {
    check_command(&headers, door.scheme)?;
    door.identity(&headers, SessionUse::Person).await?;
    let note = format!("{}: logged out", door.audit_name(&headers));
    if let Some((cookie, secret)) = door.keys(&headers) {
        door.sessions.close(cookie, secret);
    }
    door.node.audit.note("operator", note);
    let mut response = json_response(&json!({}));
    let cookie = door.cookie_header("", "; Max-Age=0")?;
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

#[derive(Deserialize)]
struct SenseRequest {
    arm: Option<String>,
}

/// Senses an arm for any session that has logged in. It is a command, because cameras take pictures for it.
async fn sense(State(door): SharedDoor, request: Request) -> Result<Response, PageRefusal> {
    check_command(request.headers(), door.scheme)?;
    door.identity(request.headers(), SessionUse::Person).await?;
    let caller = door.audit_name(request.headers());
    let sense: SenseRequest = json_of(request).await?;
    let answer = door.services.sense(caller, sense.arm).await;
    let pictures = answer
        .images
        .iter()
        .map(|(mime, bytes)| format!("data:{mime};base64,{}", STANDARD.encode(bytes)));
    Ok(json_response(&json!({
        "text": answer.text,
        "bus": answer.structured.get("bus"),
        "pictures": pictures.collect::<Vec<_>>(),
    })))
}

/// Takes a picture of an arm's sheet for any session that has logged in.
async fn sheet_photo(State(door): SharedDoor, request: Request) -> Result<Response, PageRefusal> {
    check_command(request.headers(), door.scheme)?;
    door.identity(request.headers(), SessionUse::Person).await?;
    let sense: SenseRequest = json_of(request).await?;
    let node = Arc::clone(&door.node);
    let taken = base::task::spawn(async move { node.sheet_photo(sense.arm.as_deref()).await });
    let broken = |_| PageRefusal::Broken("the node failed while it took the picture".to_owned());
    let photo = taken.await.map_err(broken)?;
    Ok(json_response(&match photo {
        Ok(photo) => {
            let picture = format!("data:image/png;base64,{}", STANDARD.encode(&photo.png));
            json!({"photo": photo, "picture": picture})
        }
        Err(refused) => json!({"why": refused.to_string()}),
    }))
}

/// Carries out an operator's verb.
async fn operate(State(door): SharedDoor, request: Request) -> Result<Response, PageRefusal> {
    let arrived = door.node.stamp_arrival();
    check_command(request.headers(), door.scheme)?;
    let admitted = door.operator(request.headers()).await;
    if let Err(refusal) = admitted.and_then(|_| door.check_new(request.headers())) {
        return Err(hear_stop(&door, request, refusal).await);
    }
    let caller = door.audit_name(request.headers());
    let body = body_of(request, door.services.verb_bytes_max()).await?;
    let reply = door.services.operate(caller, body.to_vec(), arrived);
    let reply = reply
        .await
        .map_err(|error| PageRefusal::Body(error.into()))?;
    Ok(json_response(&reply))
}

/// Carries out the stop in a refused verb, as for any browser that shows the page; the refusal then says so.
async fn hear_stop(door: &PageDoor, request: Request, refusal: PageRefusal) -> PageRefusal {
    let caller = door.audit_name(request.headers());
    let Ok(body) = body_of(request, SHORT_BYTES_MAX).await else {
        return refusal;
    };
    let Some(emergency) = door.services.stop_in(&body) else {
        return refusal;
    };
    PageRefusal::Stopped {
        refusal: Box::new(refusal),
        outcome: door.services.stop(caller, emergency).await.words,
    }
}

async fn stop(State(door): SharedDoor, headers: HeaderMap) -> Result<Response, PageRefusal> {
    stop_arms(&door, &headers, false).await
}

async fn emergency_stop(
    State(door): SharedDoor,
    headers: HeaderMap,
) -> Result<Response, PageRefusal> {
    stop_arms(&door, &headers, true).await
}

/// Stops every arm for any browser that shows the page, logged in or not. Forms may send it, so that the buttons work before any
/// script is loaded.
async fn stop_arms(
    door: &PageDoor,
    headers: &HeaderMap,
    emergency: bool,
) -> Result<Response, PageRefusal> {
    check_post(headers, door.scheme)?;
    let stopping = door.services.stop(door.audit_name(headers), emergency);
    let answer = stopping.await;
    if headers.contains_key(PAGE_HEADER) {
        let arms = door.node.arms.iter();
        let arms = arms.map(|arm| json!({"name": arm.name, "stop": arm.motion.snapshot().stop}));
        let arms: Vec<Value> = arms.collect();
        let body = json!({"verified": answer.verified, "words": answer.words, "arms": arms});
        Ok(json_response(&body))
    } else {
        Ok(stop_page(&answer))
    }
}

/// Returns the answer to a form.
fn stop_page(answer: &StopAnswer) -> Response {
    let title = match answer.verified {
        true => "Stopped",
        false => "Standstill NOT verified",
    };
    let text = html_escaped(&answer.words);
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><link rel=\"stylesheet\" href=\"/page/page.css\"><main><h1>{title}</h1><p>{text}</p><p><a href=\"/\">Back to the page</a></p></main></html>"
    );
    let kind = [(CONTENT_TYPE, "text/html; charset=utf-8")];
    (StatusCode::OK, kind, Body::from(html)).into_response()
}
