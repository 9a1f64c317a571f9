//! The door for listeners: programs of this machine that speak the protocol, and no page of a stranger in a browser of this machine.

use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header::{ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::protocol::SUBPROTOCOLS;

/// Pages that may listen beside those that this machine serves.
const FOXGLOVE: [&str; 2] = ["https://app.foxglove.dev", "https://studio.foxglove.dev"];

/// Accepts a listener under the newest name of the protocol that it knows, or says why not.
#[allow(
    clippy::result_large_err,
    reason = "the WebSocket crate's own type for a refusal"
)]
pub(super) fn accept(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    if let Some(origin) = text(request.headers(), ORIGIN)
        && !is_trusted(origin)
    {
        let why = format!(
            "{origin} may not look at this arm: pages of this machine and {} may",
            FOXGLOVE.join(", ")
        );
        return Err(refusal(StatusCode::FORBIDDEN, why));
    }
    let offered = text(request.headers(), SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
    let known = |name: &&&str| offered.split(',').any(|offered| offered.trim() == **name);
    let Some(name) = SUBPROTOCOLS.iter().find(known) else {
        let why = format!(
            "offer one of the subprotocols {}; you offer \"{offered}\"",
            SUBPROTOCOLS.join(", ")
        );
        return Err(refusal(StatusCode::BAD_REQUEST, why));
    };
    let name = HeaderValue::from_static(name);
    response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, name);
    Ok(response)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    // What cannot be read is trusted as little as what is not known.
    Some(headers.get(name)?.to_str().unwrap_or("?"))
}

/// Returns whether a page of this origin may listen. A program that is no browser names none; one on the desktop names its own
/// scheme.
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

fn refusal(status: StatusCode, why: String) -> ErrorResponse {
    let mut refusal = ErrorResponse::new(Some(why));
    *refusal.status_mut() = status;
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_strangers_do_not_listen() {
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
