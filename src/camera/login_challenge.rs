//! Reads the ways in which a server asks for a login: the header `WWW-Authenticate` of RFC 9110.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// A way to log in, with its parameters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LoginChallenge {
    /// Its name in lower case, such as `basic`.
    pub(super) scheme: String,
    /// Names in lower case, and values without their quotes.
    parameters: Vec<(String, String)>,
}

impl LoginChallenge {
    /// Returns the value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(known, _)| known == name)?;
        Some(&found.1)
    }
}

/// Reads all challenges of a response. A header may hold several, and several parameters each, all divided by commas.
pub(super) fn challenges(headers: &HeaderMap) -> Vec<LoginChallenge> {
    let mut challenges = Vec::new();
    for header in headers.get_all(WWW_AUTHENTICATE) {
        let text = String::from_utf8_lossy(header.as_bytes());
        read_header(&text, &mut challenges);
    }
    challenges
}

fn read_header(text: &str, challenges: &mut Vec<LoginChallenge>) {
    let between = |sign: char| sign == ',' || sign.is_ascii_whitespace();
    let mut rest = text.trim_start_matches(between);
    while !rest.is_empty() {
        let end = rest.find(|sign| between(sign) || sign == '=');
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        let name = name.to_ascii_lowercase();
        rest = match after.trim_start().strip_prefix('=') {
            Some(value) => {
                let (value, after) = read_value(value.trim_start());
                if let Some(challenge) = challenges.last_mut() {
                    challenge.parameters.push((name, value));
                }
                after
            }
            None => {
                challenges.push(LoginChallenge {
                    scheme: name,
                    parameters: Vec::new(),
                });
                after
            }
        };
        rest = rest.trim_start_matches(between);
    }
}

/// Reads a value, which may be quoted, and returns what follows it.
fn read_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|sign: char| sign == ',' || sign.is_ascii_whitespace());
        let (value, rest) = text.split_at(end.unwrap_or(text.len()));
        return (value.to_owned(), rest);
    };
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, sign) in quoted.char_indices() {
        match sign {
            '"' if !is_escaped => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' if !is_escaped => is_escaped = true,
            _ => {
                value.push(sign);
                is_escaped = false;
            }
        }
    }
    (value, "")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<LoginChallenge> {
        let mut headers = HeaderMap::new();
        headers.insert(
            WWW_AUTHENTICATE,
            HeaderValue::from_bytes(text.as_bytes()).unwrap(),
        );
        challenges(&headers)
    }

    #[test]
    fn challenges_are_read_as_cameras_write_them() {
        let both =
            read(r#"Basic realm="a, \"b\"", DIGEST Realm=x,nonce="=1=" , qop="auth,auth-int""#);
        let schemes: Vec<&str> = both.iter().map(|way| way.scheme.as_str()).collect();
        assert_eq!(schemes, ["basic", "digest"]);
        let [basic, digest] = both.as_slice() else {
            panic!("{both:?}")
        };
        assert_eq!(basic.parameter("realm"), Some(r#"a, "b""#));
        assert_eq!(digest.parameter("realm"), Some("x"));
        assert_eq!(digest.parameter("nonce"), Some("=1="));
        assert_eq!(digest.parameter("qop"), Some("auth,auth-int"));
        assert_eq!(digest.parameter("opaque"), None);
    }

    proptest! {
        #[test]
        fn no_header_breaks_the_reader(text in "[ -~]{0,200}") {
            read(&text);
        }
    }
}
