//! One picture from an address: a JPEG as the answer, or the second one of a stream.

use http::header::{ACCEPT, AGE, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, Request, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::CameraFailure;
use super::jpeg_decode::JPEG_BYTES_MAX;
use super::mjpeg_stream::{MjpegParts, media_type};

/// Longer heads of answers are not read.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// An answer has no more header lines.
const HEADERS_MAX: usize = 64;

/// A cache that says it kept the picture for longer makes it an old one.
const AGE_S_MAX: u64 = 2;

/// Frames to skip at the start of a stream; the first may be stale.
const PASSED: usize = 1;

/// Destination of a request.
struct SnapshotTarget {
    /// `host:port`.
    host: String,
    path: Uri,
}

/// Fetches a picture. May be dropped while it waits, and the connection is closed then.
pub(super) async fn fetch(address: &str) -> Result<Vec<u8>, CameraFailure> {
    let SnapshotTarget { host, path } = target(address)?;
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
    let _connection = AbortOnDropHandle::new(base::task::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a camera ended");
        }
    }));
    let request = Request::get(path)
        .header(HOST, &host)
        .header(ACCEPT, "image/jpeg, multipart/x-mixed-replace")
        .body(Empty::<Bytes>::new())
        .map_err(|_| CameraFailure::Address(address.to_owned()))?;
    let answer = sender.send_request(request).await.map_err(broken)?;
    if !answer.status().is_success() {
        let status = answer.status().as_u16();
        return Err(CameraFailure::Status { host, status });
    }
    let kind = header_text(answer.headers(), &CONTENT_TYPE);
    let age = header_text(answer.headers(), &AGE).parse().unwrap_or(0);
    if age > AGE_S_MAX {
        return Err(CameraFailure::Old(age));
    }
    let body = SnapshotBody {
        body: answer.into_body(),
        host,
    };
    match media_type(&kind).as_str() {
        "image/jpeg" | "image/jpg" => body.whole().await,
        "multipart/x-mixed-replace" => body.of_stream(MjpegParts::new(&kind)?).await,
        other => Err(CameraFailure::kind(other)),
    }
}

fn header_text(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn target(address: &str) -> Result<SnapshotTarget, CameraFailure> {
    let wrong = || CameraFailure::Address(address.to_owned());
    let uri: Uri = address.parse().map_err(|_| wrong())?;
    // A name and password in an address would stand in logs.
    let who = uri.authority();
    let has_user = who.is_some_and(|who| who.as_str().contains('@'));
    if uri.scheme_str() != Some("http") || has_user {
        return Err(wrong());
    }
    let host = uri.host().ok_or_else(wrong)?;
    let host = format!("{host}:{}", uri.port_u16().unwrap_or(80));
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let path = path.parse().map_err(|_| wrong())?;
    Ok(SnapshotTarget { host, path })
}

struct SnapshotBody {
    body: Incoming,
    host: String,
}

impl SnapshotBody {
    async fn more(&mut self) -> Result<Option<Bytes>, CameraFailure> {
        loop {
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| CameraFailure::Broken {
                host: self.host.clone(),
                what: error.to_string(),
            })?;
            // Trailers are nothing.
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
    }

    async fn whole(mut self) -> Result<Vec<u8>, CameraFailure> {
        let mut all = Vec::new();
        while let Some(bytes) = self.more().await? {
            if all.len() + bytes.len() > JPEG_BYTES_MAX {
                return Err(CameraFailure::TooLong);
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    async fn of_stream(mut self, mut parts: MjpegParts) -> Result<Vec<u8>, CameraFailure> {
        let mut passed = 0;
        while let Some(bytes) = self.more().await? {
            for picture in parts.feed(&bytes)? {
                if passed == PASSED {
                    return Ok(picture);
                }
                passed += 1;
            }
        }
        Err(CameraFailure::Ended)
    }
}
