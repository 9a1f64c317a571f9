//! Whom a request names and on whose page it was made, before anything else of it is looked at.
//!
//! A web page can make a browser send requests to any address, and its own name lead to this machine: what does not name
//! this node, or comes from a page of another, is refused wherever it goes.

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Request, StatusCode, Uri};

/// The names of a server and the pages that may call it.
#[derive(Debug)]
pub(super) struct Guard {
    hosts: Vec<Name>,
    /// Scheme, name, and the port where it is given.
    origins: Vec<(String, Name)>,
}

/// A host, and its port where that matters.
#[derive(Debug, PartialEq, Eq)]
struct Name {
    host: String,
    port: Option<u16>,
}

impl Name {
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

impl Guard {
    /// Hosts as they are written, with a port or without; origins as browsers write them, `:*` for any port.
    pub(super) fn new(hosts: &[String], origins: &[String]) -> Self {
        let host = |said: &String| match Authority::try_from(said.as_str()) {
            Ok(authority) => Name::of(&authority),
            // A bare IPv6 address is none.
            Err(_) => Name::new(said, None),
        };
        let origins = origins.iter().filter_map(|said| {
            let said = said.trim_end_matches(":*");
            let (scheme, authority) = parts(said)?;
            Some((scheme, Name::of(&authority)))
        });
        Self {
            hosts: hosts.iter().map(host).collect(),
            origins: origins.collect(),
        }
    }

    /// Why this request goes nowhere, if so.
    pub(super) fn refuses<B>(&self, request: &Request<B>) -> Option<(StatusCode, &'static str)> {
        let Some(host) = named(request) else {
            let why = "the request has no Host header that names a host";
            return Some((StatusCode::BAD_REQUEST, why));
        };
        if !self.hosts.iter().any(|own| own.is_of(&host)) {
            let why = "the Host header names another host: call this node by its address, by localhost, or by a name that it was given with --host";
            return Some((StatusCode::FORBIDDEN, why));
        }
        let foreign = !self.is_own_page(request.headers());
        let why = "the Origin header names the page of another server";
        foreign.then_some((StatusCode::FORBIDDEN, why))
    }

    fn is_own_page(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else {
            return true;
        };
        let said = origin.to_str().ok().and_then(parts);
        said.is_some_and(|(scheme, authority)| {
            let port = authority.port_u16().or(match scheme.as_str() {
                "http" => Some(80),
                "https" => Some(443),
                _ => None,
            });
            let page = Name::new(authority.host(), port);
            let is_it = |(own, name): &(String, Name)| *own == scheme && name.is_of(&page);
            self.origins.iter().any(is_it)
        })
    }
}

fn named<B>(request: &Request<B>) -> Option<Name> {
    let Some(said) = request.headers().get(HOST) else {
        return request.uri().authority().map(Name::of);
    };
    let authority = Authority::try_from(said.to_str().ok()?).ok()?;
    Some(Name::of(&authority))
}

fn parts(origin: &str) -> Option<(String, Authority)> {
    let page = Uri::try_from(origin.trim()).ok()?;
    Some((
        page.scheme_str()?.to_ascii_lowercase(),
        page.authority()?.clone(),
    ))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn judged(host: Option<&str>, origin: Option<&str>) -> u16 {
        let hosts = ["localhost", "127.0.0.1", "::1", "arm.example:8700"].map(str::to_owned);
        let origins = [
            "http://localhost:8700",
            "http://[::1]:8700",
            "https://app.example:443",
        ];
        let guard = Guard::new(&hosts, &origins.map(str::to_owned));
        let mut request = Request::builder().uri("/mcp");
        for (header, said) in [(HOST, host), (ORIGIN, origin)] {
            if let Some(said) = said {
                request = request.header(header, said);
            }
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
            (Some("a b"), 400),
            (Some(""), 400),
            (None, 400),
        ] {
            assert_eq!(judged(host, None), status, "{host:?}");
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
}
