//! A small HTTP/1.1 client, as the protocol library requires: `http://` and `https://`, one connection per request.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tokio::net::TcpStream;

use super::tls::{self, ByteStream, TlsError};

/// Longest JSON answer, or event of a stream, that is read; it may contain pictures.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest part of an error's body that is kept for its message.
const COMPLAINT_CHARS_MAX: usize = 300;

const SESSION: &str = "mcp-session-id";
pub(super) const JSON: &str = "application/json";
pub(super) const STREAM: &str = "text/event-stream";

/// Reason why a request did not get through.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// The address is not one this client can reach.
    #[error(
        "{0} is not an address. Next: write http://HOST:PORT/mcp or https://HOST:PORT/mcp (PORT up to 65535)"
    )]
    Address(String),
    /// The host did not answer.
    #[error(
        "cannot reach {host}: {source}. Next: start its server (a node's is `steadyhand serve --http ADDRESS`)"
    )]
    Connect {
        /// Host and port.
        host: String,
        /// Error from the system.
        source: std::io::Error,
    },
    /// The other side cannot prove its identity, or does not speak TLS.
    #[error("the TLS connection to {host} failed: {source}")]
    Tls {
        /// Host and port.
        host: String,
        /// Error from TLS.
        source: TlsError,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    /// The request could not be built.
    #[error("the request cannot be sent: {0}")]
    Request(#[from] http::Error),
    /// The answer could not be read.
    #[error("the answer could not be read: {0}")]
    Answer(String),
}

impl HttpClientError {
    fn too_long(bytes_max: usize) -> Self {
        Self::Answer(format!("the answer is longer than {bytes_max} bytes"))
    }
}

type TransportFailure = StreamableHttpError<HttpClientError>;

impl From<HttpClientError> for TransportFailure {
    fn from(error: HttpClientError) -> Self {
        StreamableHttpError::Client(error)
    }
}

/// The client. It has no state: each request opens and closes its own connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct HttpClient;

/// Sends JSON to an address, or fetches JSON if there is no body. Returns the status and the text of the answer.
///
/// # Errors
/// Invalid address, no answer, or a broken connection.
pub async fn json(
    url: &str,
    token: Option<String>,
    body: Option<Vec<u8>>,
) -> Result<(u16, String), HttpClientError> {
    let (method, body) = match body {
        Some(body) => (Method::POST, body),
        None => (Method::GET, Vec::new()),
    };
    let (status, body) = exchange(method, url, token, body).await?;
    Ok((status.as_u16(), String::from_utf8_lossy(&body).into_owned()))
}

/// Parts of a request beside its body.
pub(super) struct RequestHead {
    pub(super) session: Option<Arc<str>>,
    pub(super) token: Option<String>,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
}

impl RequestHead {
    pub(super) fn request(
        self,
        method: Method,
        uri: &str,
        body: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>, HttpClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .header(ACCEPT, format!("{JSON}, {STREAM}"))
            .header(CONTENT_TYPE, JSON);
        if let Some(token) = self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(session) = self.session {
            request = request.header(SESSION, session.as_ref());
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        Ok(request.body(Full::new(Bytes::from(body)))?)
    }
}

pub(super) async fn send(
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, HttpClientError> {
    let RequestTarget { host, path, secure } = target(request.uri())?;
    let value = HeaderValue::from_str(&host).map_err(http::Error::from)?;
    request.headers_mut().insert(HOST, value);
    *request.uri_mut() = path;
    let stream = open(host, secure.as_deref()).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driver = async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to another node ended");
        }
    };
    tokio::spawn(driver.boxed());
    Ok(sender.send_request(request).await?)
}

/// Sends JSON and reads JSON. Returns the status, and the body if it is JSON.
///
/// # Errors
/// The host was not reached, or the answer could not be read.
pub async fn ask(
    url: &str,
    token: Option<String>,
    body: Vec<u8>,
) -> Result<(StatusCode, serde_json::Value), HttpClientError> {
    let (status, body) = exchange(Method::POST, url, token, body).await?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Fetches an address without a token, and its answer as JSON.
///
/// # Errors
/// There was no answer.
pub async fn fetch(url: &str) -> Result<(StatusCode, serde_json::Value), HttpClientError> {
    let (status, body) = exchange(Method::GET, url, None, Vec::new()).await?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

async fn exchange(
    method: Method,
    url: &str,
    token: Option<String>,
    body: Vec<u8>,
) -> Result<(StatusCode, Bytes), HttpClientError> {
    let head = RequestHead {
        session: None,
        token,
        headers: HashMap::new(),
    };
    let response = send(head.request(method, url, body)?).await?;
    Ok((response.status(), read(response, ANSWER_BYTES_MAX).await?))
}

/// Connects to `host:port`; with TLS if `secure` names the host that the certificate must be for.
async fn open(host: String, secure: Option<&str>) -> Result<Box<dyn ByteStream>, HttpClientError> {
    let stream = match TcpStream::connect(&host).await {
        Ok(stream) => stream,
        Err(source) => return Err(HttpClientError::Connect { host, source }),
    };
    let _ = stream.set_nodelay(true);
    match secure {
        None => Ok(Box::new(stream)),
        Some(name) => tls::connect(stream, name)
            .await
            .map_err(|source| HttpClientError::Tls { host, source }),
    }
}

/// Destination of a request.
struct RequestTarget {
    /// `host:port` to connect to.
    host: String,
    /// Path to request there.
    path: Uri,
    /// The name that the certificate must be for; `None` without TLS.
    secure: Option<String>,
}

fn target(uri: &Uri) -> Result<RequestTarget, HttpClientError> {
    let wrong = || HttpClientError::Address(uri.to_string());
    let authority = uri.authority().ok_or_else(wrong)?;
    let secure = match uri.scheme_str() {
        Some("http") => None,
        Some("https") => Some(authority.host().to_owned()),
        _ => return Err(wrong()),
    };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let path = path.parse().map_err(|_| wrong())?;
    let host = host_and_port(uri).ok_or_else(wrong)?;
    Ok(RequestTarget { host, path, secure })
}

/// Returns `host:port` of an address, with the standard port if it names none; `None` if its port is beyond 65535.
pub(super) fn host_and_port(uri: &Uri) -> Option<String> {
    let authority = uri.authority()?;
    let (host, text) = (authority.host(), authority.as_str());
    let after_user = text.rsplit_once('@').map_or(text, |(_, after)| after);
    let after_host = after_user.strip_prefix(host)?;
    let port: u16 = match (after_host.trim_start_matches(':'), uri.scheme_str()) {
        ("", Some("https")) => 443,
        ("", _) => 80,
        (port, _) => port.parse().ok()?,
    };
    Some(format!("{host}:{port}"))
}

pub(super) fn kind(response: &Response<Incoming>) -> &str {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

/// Reads a body of at most so many bytes.
pub(super) async fn read(
    response: Response<Incoming>,
    bytes_max: usize,
) -> Result<Bytes, HttpClientError> {
    let body = Limited::new(response.into_body(), bytes_max).collect();
    let body = body.await.map(|body| body.to_bytes());
    body.map_err(|error| match error.is::<LengthLimitError>() {
        true => HttpClientError::too_long(bytes_max),
        false => HttpClientError::Answer(error.to_string()),
    })
}

/// Reads a stream of events of at most so many bytes each.
pub(super) fn events(
    response: Response<Incoming>,
    bytes_max: usize,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let chunks = response.into_body().into_data_stream();
    let mut unfinished = 0_usize;
    let bounded = chunks.map(move |chunk| {
        let chunk = chunk.map_err(HttpClientError::from)?;
        unfinished = match event_end(&chunk) {
            Some(end) => chunk.len() - end,
            None => unfinished.saturating_add(chunk.len()),
        };
        if unfinished > bytes_max {
            return Err(HttpClientError::too_long(bytes_max));
        }
        Ok(chunk)
    });
    SseStream::from_bytes_stream(bounded).boxed()
}

/// Returns the position after the last event that ends in this chunk. An event whose empty line is split across chunks
/// counts as continuing.
fn event_end(chunk: &[u8]) -> Option<usize> {
    let ends = |line: &[u8]| chunk.windows(line.len()).rposition(|bytes| bytes == line);
    ends(b"\n\n").max(ends(b"\r\n\r\n"))
}

/// Returns the server's error in one line.
async fn complaint(response: Response<Incoming>) -> TransportFailure {
    let status = response.status();
    let body = read(response, ANSWER_BYTES_MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let text: String = text.chars().take(COMPLAINT_CHARS_MAX).collect();
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("{status}: {text}")))
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpClientError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, TransportFailure> {
        let had_session = session.is_some();
        let body = serde_json::to_vec(&message)?;
        let head = RequestHead {
            session,
            token,
            headers,
        };
        let response = send(head.request(Method::POST, &uri, body)?).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && had_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response.headers().get(SESSION);
        let session = session.and_then(|id| Some(id.to_str().ok()?.to_owned()));
        match kind(&response) {
            STREAM if status.is_success() => Ok(StreamableHttpPostResponse::Sse(
                events(response, ANSWER_BYTES_MAX),
                session,
            )),
            JSON => answer(response, session).await,
            _ => Err(complaint(response).await),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), TransportFailure> {
        let head = RequestHead {
            session: Some(session),
            token,
            headers,
        };
        let response = send(head.request(Method::DELETE, &uri, Vec::new())?).await?;
        match response.status() {
            // The server keeps its sessions until they are idle.
            StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status if status.is_success() => Ok(()),
            _ => Err(complaint(response).await),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportFailure> {
        if let Some(id) = last_event.and_then(|id| HeaderValue::from_str(&id).ok()) {
            headers.insert(HeaderName::from_static("last-event-id"), id);
        }
        let head = RequestHead {
            session,
            token,
            headers,
        };
        let response = send(head.request(Method::GET, &uri, Vec::new())?).await?;
        match (response.status(), kind(&response)) {
            (StatusCode::METHOD_NOT_ALLOWED, _) => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            (status, STREAM) if status.is_success() => Ok(events(response, ANSWER_BYTES_MAX)),
            _ => Err(complaint(response).await),
        }
    }
}

/// Reads a JSON answer. It is a message regardless of its status: an error's code and text are inside.
async fn answer(
    response: Response<Incoming>,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, TransportFailure> {
    let body = read(response, ANSWER_BYTES_MAX).await?;
    let message: ServerJsonRpcMessage = serde_json::from_slice(&body)?;
    Ok(StreamableHttpPostResponse::Json(message, session))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_cannot_be_is_not_replaced_by_another() {
        for (address, expected) in [
            ("http://left/mcp", Some("left:80")),
            ("https://left/mcp", Some("left:443")),
            ("http://1:8701/mcp", Some("1:8701")),
            ("http://[::1]:8700/mcp", Some("[::1]:8700")),
            ("http://me@left:8700/mcp", Some("left:8700")),
            ("http://127.0.0.1:87000/operator", None),
            ("https://left:65536/mcp", None),
        ] {
            let uri: Uri = address.parse().unwrap();
            assert_eq!(host_and_port(&uri).as_deref(), expected, "{address}");
            assert_eq!(target(&uri).is_ok(), expected.is_some(), "{address}");
        }
    }
}
