//! Checks which host a request names and on whose page it was made, before anything else of it is read.
//!
//! A web page can make a browser send requests to any address, and can make its own name resolve to this machine. A
//! request that does not name this node, or comes from a page of a different origin, is refused at every path.

use http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Request, StatusCode, Uri};

/// The names of a server and the pages that may call it.
#[derive(Debug)]
pub(super) struct OriginGuard {
    /// URL scheme of this server.
    scheme: &'static str,
    hosts: Vec<HostAndPort>,
    /// Scheme, name, and the port where it is given.
    origins: Vec<(String, HostAndPort)>,
}

/// A host, and its port where that matters.
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
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        Self {
            host: bare.to_ascii_lowercase(),
            port,
        }
    }

    /// Without a port it is every port's.
    fn is_of(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }
}

impl OriginGuard {
    /// Hosts as they are written, with a port or without; origins as browsers write them, `:*` for any port.
    pub(super) fn new(scheme: &'static str, hosts: &[String], origins: &[String]) -> Self {
        let host = |said: &String| match Authority::try_from(said.as_str()) {
            Ok(authority) => HostAndPort::of(&authority),
            // A bare IPv6 address is none.
            Err(_) => HostAndPort::new(said, None),
        };
        let origins = origins.iter().filter_map(|said| {
            let said = said.trim_end_matches(":*");
            let (scheme, authority) = parts(said)?;
            Some((scheme, HostAndPort::of(&authority)))
        });
        Self {
            scheme,
            hosts: hosts.iter().map(host).collect(),
            origins: origins.collect(),
        }
    }

    /// Returns the refusal of this request, if any.
    pub(super) fn refuses<B>(&self, request: &Request<B>) -> Option<(StatusCode, &'static str)> {
        if let Some(reason) = said_twice(request.headers()) {
            return Some((StatusCode::BAD_REQUEST, reason));
        }
        // Before a Host header, a whole URI says which host is meant.
        let target = request.uri().authority().map(HostAndPort::of);
        if target.is_some_and(|target| !self.is_own(&target)) {
            let reason = "the request's URI names another host: call this node by its address, by localhost, or by a name that it was given with --host";
            return Some((StatusCode::FORBIDDEN, reason));
        }
        let Some(host) = named(request) else {
            let reason = "the request has no Host header that names a host";
            return Some((StatusCode::BAD_REQUEST, reason));
        };
        if !self.is_own(&host) {
            let reason = "the Host header names another host: call this node by its address, by localhost, or by a name that it was given with --host";
            return Some((StatusCode::FORBIDDEN, reason));
        }
        let headers = request.headers();
        if !self.is_own_page(headers) && !self.is_sent_here(headers, &host) {
            let reason = "the Origin header names the page of another server";
            return Some((StatusCode::FORBIDDEN, reason));
        }
        // A browser leaves the Origin out of some requests that a page makes, and says this instead.
        let is_foreign = !headers.contains_key(ORIGIN) && is_of_another_site(headers);
        let reason = "the Sec-Fetch-Site header says that a page of another server made this request: open the page of this node itself";
        is_foreign.then_some((StatusCode::FORBIDDEN, reason))
    }

    fn is_own(&self, name: &HostAndPort) -> bool {
        self.hosts.iter().any(|own| own.is_of(name))
    }

    /// Returns whether the page that asks came from the very host and port that the request names, which is this server: so
    /// it is by another name of this server, or through a tunnel.
    fn is_sent_here(&self, headers: &HeaderMap, host: &HostAndPort) -> bool {
        let port_of = |port: Option<u16>| port.or(standard_port(self.scheme));
        let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
        origin.and_then(parts).is_some_and(|(scheme, authority)| {
            let page = HostAndPort::of(&authority);
            let is_same_port = port_of(page.port) == port_of(host.port);
            scheme == self.scheme && page.host == host.host && is_same_port
        })
    }

    fn is_own_page(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else {
            return true;
        };
        let said = origin.to_str().ok().and_then(parts);
        said.is_some_and(|(scheme, authority)| {
            let port = authority.port_u16().or(standard_port(&scheme));
            let page = HostAndPort::new(authority.host(), port);
            let is_it = |(own, name): &(String, HostAndPort)| *own == scheme && name.is_of(&page);
            self.origins.iter().any(is_it)
        })
    }
}

/// Headers by which a request is let in, and that it may have once: with two of them one program may read the first and
/// another the second.
const ONCE: [(HeaderName, &str); 5] = [
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

/// Names an MCP session.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// By which a browser says how the page that makes a request and the server that gets it are related.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

fn said_twice(headers: &HeaderMap) -> Option<&'static str> {
    let is_twice = |header: &HeaderName| headers.get_all(header).iter().nth(1).is_some();
    let mut once = ONCE.into_iter();
    once.find_map(|(header, reason)| is_twice(&header).then_some(reason))
}

/// Returns whether a browser says that neither this server's own page nor its user made the request.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let said = headers.get(FETCH_SITE);
    said.is_some_and(|said| ![&b"same-origin"[..], b"none"].contains(&said.as_bytes()))
}

/// The port of a URL that names none.
fn standard_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

fn named<B>(request: &Request<B>) -> Option<HostAndPort> {
    let Some(said) = request.headers().get(HOST) else {
        return request.uri().authority().map(HostAndPort::of);
    };
    // A user before the host is none of a Host header, and programs differ in which part they take for the host.
    let said = said.to_str().ok().filter(|said| !said.contains('@'))?;
    let authority = Authority::try_from(said).ok()?;
    Some(HostAndPort::of(&authority))
}

fn parts(origin: &str) -> Option<(String, Authority)> {
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
        let said = headers
            .into_iter()
            .filter_map(|(header, said)| Some((header, said?)));
        judged_at("/mcp", &said.collect::<Vec<_>>())
    }

    fn judged_at(uri: &str, headers: &[(HeaderName, &str)]) -> u16 {
        let hosts = ["localhost", "127.0.0.1", "::1", "arm.example:8700"].map(str::to_owned);
        let origins = [
            "http://localhost:8700",
            "http://[::1]:8700",
            "https://app.example:443",
        ];
        let guard = OriginGuard::new("http", &hosts, &origins.map(str::to_owned));
        let mut request = Request::builder().uri(uri);
        for (header, said) in headers {
            request = request.header(header, *said);
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
    fn refuses_a_header_that_lets_in_said_twice() {
        let host = (HOST, "localhost");
        for header in [HOST, ORIGIN, AUTHORIZATION, SESSION, FETCH_SITE] {
            let said = match header.as_str() {
                "host" => "localhost",
                "origin" => "http://localhost:8700",
                "sec-fetch-site" => "none",
                _ => "Bearer one",
            };
            let mut once = vec![(header.clone(), said)];
            if header != HOST {
                once.push(host.clone());
            }
            assert_eq!(judged_at("/mcp", &once), 200, "{header}");
            once.push((header.clone(), said));
            assert_eq!(judged_at("/mcp", &once), 400, "{header}");
        }
    }

    #[test]
    fn refuses_a_whole_uri_of_another_host() {
        for (uri, status) in [
            ("http://localhost:8700/mcp", 200),
            ("http://127.0.0.1/mcp", 200),
            ("http://evil.example/mcp", 403),
            ("http://arm.example:8701/mcp", 403),
            ("evil.example:443", 403),
        ] {
            assert_eq!(judged_at(uri, &[(HOST, "localhost")]), status, "{uri}");
        }
        // An own URI makes up for no Host header of another.
        let evil = [(HOST, "evil.example")];
        assert_eq!(judged_at("http://localhost/mcp", &evil), 403);
    }

    #[test]
    fn refuses_what_a_browser_says_another_site_made() {
        let own = (ORIGIN, "http://localhost:8700");
        let evil = (ORIGIN, "https://evil.example");
        for (site, alone) in [
            ("same-origin", 200),
            ("none", 200),
            ("same-site", 403),
            ("cross-site", 403),
            ("anything", 403),
            ("", 403),
        ] {
            let said = vec![(HOST, "localhost"), (FETCH_SITE, site)];
            let with =
                |origin: &(HeaderName, &'static str)| [said.clone(), vec![origin.clone()]].concat();
            assert_eq!(judged_at("/mcp", &said), alone, "{site}");
            assert_eq!(judged_at("/mcp", &with(&own)), 200, "{site}");
            assert_eq!(judged_at("/mcp", &with(&evil)), 403, "{site}");
        }
    }

    #[test]
    fn a_page_of_another_server_is_refused() {
        for (origin, status) in [
            ("http://localhost:8700", 200),
            ("http://[::1]:8700", 200),
            ("https://app.example", 200),
            ("https://app.example:444", 403),
            ("http://localhost:8701", 403),
            ("https://localhost:8700", 403),
            ("https://evil.example", 403),
            ("null", 403),
            ("", 403),
        ] {
            assert_eq!(judged(Some("localhost"), Some(origin)), status, "{origin}");
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
