//! Recognises the requests that this node's own page can have made.
//!
//! Requests reach this module only if they name one of this node's hosts. Cookies do not distinguish the ports of one host, and a
//! browser sends no Origin when it only reads. So every answer with data requires the browser's `Sec-Fetch-Site`, and every
//! command the exact Origin as well.

use http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use http::{HeaderMap, HeaderValue};

use super::page_refusal::PageRefusal;

/// Header in which a browser states how the requesting page and the server are related.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Header that no form can send: the session's secret, or any text without a session.
pub(super) const PAGE_HEADER: HeaderName = HeaderName::from_static("steadyhand-page");

/// Checks that a page of this node sent the request.
pub(super) fn check_read(headers: &HeaderMap) -> Result<(), PageRefusal> {
    let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    match site {
        Some(b"same-origin") => Ok(()),
        _ => Err(PageRefusal::OtherSite),
    }
}

/// Checks that a form or a script of such a page sent the request.
pub(super) fn check_post(headers: &HeaderMap, scheme: &str) -> Result<(), PageRefusal> {
    check_read(headers)?;
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let own = format!("{scheme}://{}", host.unwrap_or_default());
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    match origin {
        Some(origin) if origin.eq_ignore_ascii_case(&own) => Ok(()),
        _ => Err(PageRefusal::OtherOrigin(own)),
    }
}

/// Checks that a script of such a page sent the command.
pub(super) fn check_command(headers: &HeaderMap, scheme: &str) -> Result<(), PageRefusal> {
    check_post(headers, scheme)?;
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    });
    match is_json && headers.contains_key(PAGE_HEADER) {
        true => Ok(()),
        false => Err(PageRefusal::NotByScript),
    }
}

/// Returns whether text typed on the page stays on one machine, by the `Host` header of the browser.
pub(super) fn is_on_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let authority = host.and_then(|host| host.parse::<http::uri::Authority>().ok());
    authority.is_some_and(|authority| {
        let name = authority.host().trim_matches(['[', ']']);
        let address = name.parse::<std::net::IpAddr>();
        name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        pairs.collect()
    }

    const OWN: [(&str, &str); 5] = [
        ("host", "localhost:8700"),
        ("origin", "http://localhost:8700"),
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/json; charset=utf-8"),
        ("steadyhand-page", "1"),
    ];

    #[test]
    fn a_command_is_the_own_pages_alone() {
        assert_eq!(check_command(&headers(&OWN), "http"), Ok(()));
        for (name, value) in [
            ("origin", Some("http://localhost:8701")),
            ("origin", Some("https://localhost:8700")),
            ("origin", Some("http://127.0.0.1:8700")),
            ("origin", Some("http://localhost")),
            ("origin", Some("null")),
            ("origin", None),
            ("sec-fetch-site", Some("same-site")),
            ("sec-fetch-site", Some("cross-site")),
            ("sec-fetch-site", Some("none")),
            ("sec-fetch-site", None),
            ("content-type", Some("text/plain")),
            ("content-type", None),
            ("steadyhand-page", None),
        ] {
            let kept = OWN.iter().filter(|(header, _)| *header != name).copied();
            let changed = value.map(|value| (name, value));
            let sent: Vec<_> = kept.chain(changed).collect();
            let result = check_command(&headers(&sent), "http");
            assert!(result.is_err(), "{name} {value:?}");
        }
    }

    #[test]
    fn a_form_of_the_own_page_may_send_and_no_other() {
        let form = headers(&OWN[..3]);
        assert_eq!(check_post(&form, "http"), Ok(()));
        assert!(check_post(&headers(&OWN[..2]), "http").is_err());
        assert!(check_post(&form, "https").is_err());
    }

    #[test]
    fn knows_its_own_machine() {
        for (host, is_here) in [
            ("localhost:8700", true),
            ("127.0.0.1:1", true),
            ("[::1]:8700", true),
            ("arm.example:8700", false),
            ("192.168.1.7:8700", false),
            ("localhost.evil.example", false),
        ] {
            assert_eq!(
                is_on_this_machine(&headers(&[("host", host)])),
                is_here,
                "{host}"
            );
        }
    }
}
