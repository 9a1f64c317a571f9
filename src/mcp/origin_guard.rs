//! Checks which host a request names and which page made it, before anything else of it is read.
//!
//! A web page can make a browser send requests to any address, and can make its own name resolve to this machine. A
//! request that does not name this node, or comes from a page of a different origin, is refused at every path. Another program may
//! have the same port under another name of this machine (`[::1]`, `127.0.0.1`), so a page is this node's own only under the very
//! host and port that its request names. Of a refused request only a stop is heard, because a stop is never refused.

use http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};

/// The names of a server.
#[derive(Debug)]
pub(super) struct OriginGuard {
    /// URL scheme of this server.
    scheme: &'static str,
    hosts: Vec<HostAndPort>,
}

/// The refusal of a request for another host or by another server's page, whose stop is heard all the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusedOrigin {
    pub(super) status: StatusCode,
    pub(super) reason: &'static str,
}

/// A host, and its port if that matters.
#[derive(Debug, PartialEq, Eq)]
struct HostAndPort {
    host: String,
    port: Option<u16>,
}

impl HostAndPort {
    fn of(authority: &Authority) -> Self {
        Self::new(authority.host(), authority.port_u16())
    }

    fn new(host: &str, port: Option<u16>) -> Self {
        let unbracketed = host.trim_start_matches('[').trim_end_matches(']');
        Self {
            host: unbracketed.to_ascii_lowercase(),
            port,
        }
    }

    /// Returns whether the other is the same host and port; without a port, this one covers every port.
    fn covers(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }
}

impl OriginGuard {
    /// Takes hosts with a port or without.
    pub(super) fn new(scheme: &'static str, hosts: &[String]) -> Self {
        let host = |text: &String| match Authority::try_from(text.as_str()) {
            Ok(authority) => HostAndPort::of(&authority),
            // A bare IPv6 address is not an authority.
            Err(_) => HostAndPort::new(text, None),
        };
        Self {
            scheme,
            hosts: hosts.iter().map(host).collect(),
        }
    }

    /// Returns the refusal of this request, if any.
    pub(super) fn refuses<B>(&self, request: &Request<B>) -> Option<(StatusCode, &'static str)> {
        if let Some(reason) = repeated_header(request.headers()) {
            return Some((StatusCode::BAD_REQUEST, reason));
        }
        // A full URI takes precedence over the Host header.
        let target = request.uri().authority().map(HostAndPort::of);
        if target.is_some_and(|target| !self.is_own(&target)) {
            let reason = "the request's URI names another host: call this node by its address, by localhost, or by a name that it was given with --host";
            return Some((StatusCode::FORBIDDEN, reason));
        }
        let Some(host) = requested_host(request) else {
            let reason = "the request has no Host header that names a host";
            return Some((StatusCode::BAD_REQUEST, reason));
        };
        if !self.is_own(&host) {
            let reason = "the Host header names another host: call this node by its address, by localhost, or by a name that it was given with --host";
            return Some((StatusCode::FORBIDDEN, reason));
        }
        let headers = request.headers();
        let is_own_page = |origin| self.is_same_host(origin, &host);
        if !headers.get(ORIGIN).is_none_or(is_own_page) {
            let reason = "the Origin header names the page of another server";
            return Some((StatusCode::FORBIDDEN, reason));
        }
        let reason = "the Sec-Fetch-Site header says that a page of another server made this request: open the page of this node itself";
        is_of_another_site(headers).then_some((StatusCode::FORBIDDEN, reason))
    }

    fn is_own(&self, name: &HostAndPort) -> bool {
        self.hosts.iter().any(|own| own.covers(name))
    }

    /// Returns whether the page came from the very host and port that the request names, which is this server.
    fn is_same_host(&self, origin: &HeaderValue, host: &HostAndPort) -> bool {
        let port_of = |port: Option<u16>| port.or(standard_port(self.scheme));
        let page = origin.to_str().ok().and_then(origin_parts);
        page.is_some_and(|(scheme, authority)| {
            let page = HostAndPort::of(&authority);
            let is_same_port = port_of(page.port) == port_of(host.port);
            scheme == self.scheme && page.host == host.host && is_same_port
        })
    }
}

/// Headers that decide on access, which a request may have only once: of two, one program may read the first and another the
/// second.
const SINGLE_HEADERS: [(HeaderName, &str); 5] = [
    (HOST, "the request has several Host headers; send one"),
    (ORIGIN, "the request has several Origin headers; send one"),
    (
        AUTHORIZATION,
        "the request has several Authorization headers; send one",
    ),
    (
        SESSION,
        "the request has several Mcp-Session-Id headers; send one",
    ),
    (
        FETCH_SITE,
        "the request has several Sec-Fetch-Site headers; send one",
    ),
];

/// Header that names an MCP session.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Header in which a browser states how the requesting page and this server are related.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

fn repeated_header(headers: &HeaderMap) -> Option<&'static str> {
    let is_repeated = |header: &HeaderName| headers.get_all(header).iter().nth(1).is_some();
    let mut headers_once = SINGLE_HEADERS.into_iter();
    headers_once.find_map(|(header, reason)| is_repeated(&header).then_some(reason))
}

/// Returns whether a browser states that neither this server's own page nor its user made the request.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let site = headers.get(FETCH_SITE);
    site.is_some_and(|site| ![&b"same-origin"[..], b"none"].contains(&site.as_bytes()))
}

/// Returns the port of a URL that names none.
fn standard_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

fn requested_host<B>(request: &Request<B>) -> Option<HostAndPort> {
    let Some(host) = request.headers().get(HOST) else {
        return request.uri().authority().map(HostAndPort::of);
    };
    // A Host header has no user before the host, and programs differ in which part they take for the host.
    let host = host.to_str().ok().filter(|host| !host.contains('@'))?;
    let authority = Authority::try_from(host).ok()?;
    Some(HostAndPort::of(&authority))
}

fn origin_parts(origin: &str) -> Option<(String, Authority)> {
    let page = Uri::try_from(origin.trim()).ok()?;
    let scheme = page.scheme_str()?.to_ascii_lowercase();
    Some((scheme, page.authority()?.clone()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn judged(host: Option<&str>, origin: Option<&str>) -> u16 {
        let headers = [(HOST, host), (ORIGIN, origin)];
        let sent = headers
            .into_iter()
            .filter_map(|(header, value)| Some((header, value?)));
        judged_at("/mcp", &sent.collect::<Vec<_>>())
    }

    fn judged_at(uri: &str, headers: &[(HeaderName, &str)]) -> u16 {
        let hosts = ["localhost", "127.0.0.1", "::1", "arm.example:8700"].map(str::to_owned);
        let guard = OriginGuard::new("http", &hosts);
        let mut request = Request::builder().uri(uri);
        for (header, value) in headers {
            request = request.header(header, *value);
        }
        let refused = guard.refuses(&request.body(()).unwrap());
        refused.map_or(200, |(status, _)| status.as_u16())
    }

    #[test]
    fn a_name_that_is_not_ours_is_refused() {
        for (host, status) in [
            (Some("localhost:8700"), 200),
            (Some("LOCALHOST"), 200),
            (Some("127.0.0.1:1"), 200),
            (Some("[::1]:8700"), 200),
            (Some("arm.example:8700"), 200),
            (Some("arm.example"), 403),
            (Some("evil.example"), 403),
            (Some("localhost.evil.example"), 403),
            (Some("evil@localhost:8700"), 400),
            (Some("localhost:8700@evil.example"), 400),
            (Some("a b"), 400),
            (Some(""), 400),
            (None, 400),
        ] {
            assert_eq!(judged(host, None), status, "{host:?}");
        }
    }

    #[test]
    fn refuses_a_repeated_access_header() {
        let host = (HOST, "localhost:8700");
        for header in [HOST, ORIGIN, AUTHORIZATION, SESSION, FETCH_SITE] {
            let value = match header.as_str() {
                "host" => "localhost:8700",
                "origin" => "http://localhost:8700",
                "sec-fetch-site" => "none",
                _ => "Bearer one",
            };
            let mut once = vec![(header.clone(), value)];
            if header != HOST {
                once.push(host.clone());
            }
            assert_eq!(judged_at("/mcp", &once), 200, "{header}");
            once.push((header.clone(), value));
            assert_eq!(judged_at("/mcp", &once), 400, "{header}");
        }
    }

    #[test]
    fn refuses_a_full_uri_of_another_host() {
        for (uri, status) in [
            ("http://localhost:8700/mcp", 200),
            ("http://127.0.0.1/mcp", 200),
            ("http://evil.example/mcp", 403),
            ("http://arm.example:8701/mcp", 403),
            ("evil.example:443", 403),
        ] {
            assert_eq!(judged_at(uri, &[(HOST, "localhost")]), status, "{uri}");
        }
        // An own URI does not make up for a foreign Host header.
        let evil = [(HOST, "evil.example")];
        assert_eq!(judged_at("http://localhost/mcp", &evil), 403);
    }

    #[test]
    fn refuses_requests_that_a_browser_attributes_to_another_site() {
        let own = (ORIGIN, "http://localhost");
        let evil = (ORIGIN, "https://evil.example");
        for (site, alone) in [
            ("same-origin", 200),
            ("none", 200),
            ("same-site", 403),
            ("cross-site", 403),
            ("anything", 403),
            ("", 403),
        ] {
            let sent = vec![(HOST, "localhost"), (FETCH_SITE, site)];
            let with =
                |origin: &(HeaderName, &'static str)| [sent.clone(), vec![origin.clone()]].concat();
            assert_eq!(judged_at("/mcp", &sent), alone, "{site}");
            assert_eq!(judged_at("/mcp", &with(&own)), alone, "{site}");
            assert_eq!(judged_at("/mcp", &with(&evil)), 403, "{site}");
        }
    }

    #[test]
    fn a_page_of_another_server_is_refused() {
        for (origin, status) in [
            ("http://localhost:8700", 200),
            ("http://[::1]:8700", 403),
            ("http://127.0.0.1:8700", 403),
            ("http://localhost", 403),
            ("http://localhost:8701", 403),
            ("https://localhost:8700", 403),
            ("https://evil.example", 403),
            ("null", 403),
            ("", 403),
        ] {
            let host = Some("localhost:8700");
            assert_eq!(judged(host, Some(origin)), status, "{origin}");
        }
    }

    #[test]
    fn a_page_of_this_server_under_its_other_names_is_its_own() {
        for (host, origin, status) in [
            ("arm.example:8700", "http://arm.example:8700", 200),
            ("arm.example:8700", "http://ARM.example:8700", 200),
            ("arm.example:8700", "http://arm.example:8701", 403),
            ("arm.example:8700", "https://arm.example:8700", 403),
            ("arm.example:8700", "http://arm.example", 403),
            ("localhost:9000", "http://localhost:9000", 200),
            ("localhost:9000", "http://localhost:9001", 403),
            ("localhost", "http://localhost:80", 200),
            ("evil.example:8700", "http://evil.example:8700", 403),
        ] {
            assert_eq!(judged(Some(host), Some(origin)), status, "{host} {origin}");
        }
    }
}
