//! Fetches one picture by HTTP: a JPEG response, or the second JPEG of a stream.

use http::header::{ACCEPT, AGE, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::CameraFailure;
use super::camera_login::CameraLogin;
use super::jpeg_decode::JPEG_BYTES_MAX;
use super::login_challenge::challenges;
use super::mjpeg_stream::{MjpegParts, media_type};

/// Largest head of a response.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of header lines of a response.
const HEADERS_MAX: usize = 64;

/// A cache that says it kept the picture for longer makes it an old one.
pub(super) const AGE_S_MAX: u64 = 2;

/// Frames to skip at the start of a stream; the first may be stale.
const SKIPPED: usize = 1;

/// Destination of a request.
struct SnapshotTarget {
    /// `host:port`.
    host: String,
    path: Uri,
}

/// Fetches a picture. May be dropped while it waits; the connection is then closed.
///
/// A login is sent only to a camera that asks, in the way that it asks for.
pub(super) async fn fetch(
    address: &str,
    login: Option<&CameraLogin>,
) -> Result<Vec<u8>, CameraFailure> {
    let target = parse_address(address)?;
    let first = target.request(None).await?;
    let answer = match login {
        Some(login) if first.response.status() == StatusCode::UNAUTHORIZED => {
            let ways = challenges(first.response.headers());
            let path = target.path.to_string();
            let answer = login.answer(&ways, &path);
            let host = || target.host.clone();
            let answer = answer.map_err(|error| CameraFailure::Broken {
                host: host(),
                what: error.to_string(),
            })?;
            answer.ok_or_else(|| CameraFailure::LoginWay { host: host() })?
        }
        _ => return target.picture(first, false).await,
    };
    // Many cameras close after a refusal: the answer has a connection of its own.
    drop(first);
    let second = target.request(Some(answer)).await?;
    target.picture(second, true).await
}

/// A response, and its connection, which ends with it.
struct OpenResponse {
    response: Response<Incoming>,
    _connection: AbortOnDropHandle<()>,
}

impl SnapshotTarget {
    async fn request(&self, login: Option<HeaderValue>) -> Result<OpenResponse, CameraFailure> {
        let host = self.host.clone();
        let broken = |error: hyper::Error| CameraFailure::Broken {
            host: host.clone(),
            what: error.to_string(),
        };
        let stream = TcpStream::connect(&host).await;
        let stream = stream.map_err(|what| CameraFailure::Connect {
            host: host.clone(),
            what,
        })?;
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        let connection = AbortOnDropHandle::new(base::task::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a camera ended");
            }
        }));
        let mut request = Request::get(self.path.clone())
            .header(HOST, &host)
            .header(ACCEPT, "image/jpeg, multipart/x-mixed-replace");
        if let Some(login) = login {
            request = request.header(AUTHORIZATION, login);
        }
        let request = request
            .body(Empty::<Bytes>::new())
            .map_err(|_| CameraFailure::Address(host.clone()))?;
        let response = sender.send_request(request).await.map_err(broken)?;
        Ok(OpenResponse {
            response,
            _connection: connection,
        })
    }

    /// Reads the picture of a response, or refuses it.
    async fn picture(&self, open: OpenResponse, has_login: bool) -> Result<Vec<u8>, CameraFailure> {
        let (response, host) = (open.response, self.host.clone());
        match (response.status(), has_login) {
            (status, _) if status.is_success() => {}
            (StatusCode::UNAUTHORIZED, true) => return Err(CameraFailure::WrongLogin { host }),
            (StatusCode::UNAUTHORIZED, false) => return Err(CameraFailure::NoLogin { host }),
            (status, _) => {
                let status = status.as_u16();
                return Err(CameraFailure::Status { host, status });
            }
        }
        let content_type = header_text(response.headers(), &CONTENT_TYPE);
        check_age(response.headers())?;
        let body = SnapshotBody {
            body: response.into_body(),
            host,
        };
        match media_type(&content_type).as_str() {
            "image/jpeg" | "image/jpg" => body.read_all().await,
            "multipart/x-mixed-replace" => {
                body.read_from_stream(MjpegParts::new(&content_type)?).await
            }
            other => Err(CameraFailure::wrong_content_type(other)),
        }
    }
}

/// Refuses a picture that was kept for too long, or for a time that cannot be read.
fn check_age(headers: &HeaderMap) -> Result<(), CameraFailure> {
    let ages = headers.get_all(AGE).iter();
    let mut ages = ages.map(|age| String::from_utf8_lossy(age.as_bytes()));
    let is_fresh = |age: &str| {
        age.trim()
            .parse()
            .is_ok_and(|age_s: u64| age_s <= AGE_S_MAX)
    };
    match ages.find(|age| !is_fresh(age)) {
        Some(age) => Err(CameraFailure::old(&age)),
        None => Ok(()),
    }
}

fn header_text(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn parse_address(address: &str) -> Result<SnapshotTarget, CameraFailure> {
    let invalid = || CameraFailure::Address(address.to_owned());
    let uri: Uri = address.parse().map_err(|_| invalid())?;
    // A user name and password in an address would appear in logs.
    let authority = uri.authority();
    let has_user = authority.is_some_and(|authority| authority.as_str().contains('@'));
    if uri.scheme_str() != Some("http") || has_user {
        return Err(invalid());
    }
    let host = uri.host().ok_or_else(invalid)?;
    let after_host = authority.and_then(|authority| authority.as_str().strip_prefix(host));
    let port: u16 = match after_host.unwrap_or_default().trim_start_matches(':') {
        "" => 80,
        port => port.parse().map_err(|_| invalid())?,
    };
    let host = format!("{host}:{port}");
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let path = path.parse().map_err(|_| invalid())?;
    Ok(SnapshotTarget { host, path })
}

struct SnapshotBody {
    body: Incoming,
    host: String,
}

impl SnapshotBody {
    async fn next_bytes(&mut self) -> Result<Option<Bytes>, CameraFailure> {
        loop {
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| CameraFailure::Broken {
                host: self.host.clone(),
                what: error.to_string(),
            })?;
            // Trailers are ignored.
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
    }

    async fn read_all(mut self) -> Result<Vec<u8>, CameraFailure> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next_bytes().await? {
            if all.len() + bytes.len() > JPEG_BYTES_MAX {
                return Err(CameraFailure::TooLong);
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    async fn read_from_stream(mut self, mut parts: MjpegParts) -> Result<Vec<u8>, CameraFailure> {
        let mut skipped = 0;
        while let Some(bytes) = self.next_bytes().await? {
            for picture in parts.feed(&bytes)? {
                if skipped == SKIPPED {
                    return Ok(picture);
                }
                skipped += 1;
            }
        }
        Err(CameraFailure::Ended)
    }
}
