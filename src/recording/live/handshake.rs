//! Handshake with listeners: accepts programs on this machine that speak the protocol, and refuses foreign web pages in its browsers.

use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header::{ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::protocol::SUBPROTOCOLS;

/// Pages that may listen in addition to those that this machine serves.
const FOXGLOVE: [&str; 2] = ["https://app.foxglove.dev", "https://studio.foxglove.dev"];

/// Accepts a listener under the newest subprotocol that it offers, or refuses it with a reason.
#[allow(
    clippy::result_large_err,
    reason = "the WebSocket crate's own type for a refusal"
)]
pub(super) fn accept(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    if let Some(origin) = text(request.headers(), ORIGIN)
        && !is_trusted(origin)
    {
        let reason = format!(
            "pages from {origin} may not view this arm; pages of this machine and {} may",
            FOXGLOVE.join(", ")
        );
        return Err(refusal(StatusCode::FORBIDDEN, reason));
    }
    let offered = text(request.headers(), SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
    let is_offered = |name: &&&str| offered.split(',').any(|offered| offered.trim() == **name);
    let Some(name) = SUBPROTOCOLS.iter().find(is_offered) else {
        let reason = format!(
            "your request offers the subprotocols \"{offered}\"; one of {} is needed",
            SUBPROTOCOLS.join(", ")
        );
        return Err(refusal(StatusCode::BAD_REQUEST, reason));
    };
    let name = HeaderValue::from_static(name);
    response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, name);
    Ok(response)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    // A value that cannot be read is not trusted.
    Some(headers.get(name)?.to_str().unwrap_or("?"))
}

/// Returns whether a page of this origin may listen. Programs other than browsers name no origin; desktop programs name a scheme of
/// their own.
fn is_trusted(origin: &str) -> bool {
    let Some((scheme, rest)) = origin.split_once("://") else {
        return false;
    };
    if !matches!(scheme, "http" | "https") {
        return true;
    }
    let host = match rest.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => rest,
    };
    FOXGLOVE.contains(&origin) || matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

fn refusal(status: StatusCode, reason: String) -> ErrorResponse {
    let mut refusal = ErrorResponse::new(Some(reason));
    *refusal.status_mut() = status;
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_pages_may_not_listen() {
        for origin in [
            "https://app.foxglove.dev",
            "http://localhost:8080",
            "http://127.0.0.1",
            "http://[::1]:3000",
            "file://",
            "app://foxglove",
        ] {
            assert!(is_trusted(origin), "{origin}");
        }
        for origin in [
            "null",
            "?",
            "https://evil.example",
            "http://app.foxglove.dev",
            "https://app.foxglove.dev.evil.example",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example:80",
        ] {
            assert!(!is_trusted(origin), "{origin}");
        }
    }
}
