//! Answers a challenge by Digest (RFC 7616): the password is hashed with what the server chose, and never sent.

use md5::Md5;
use sha2::{Digest, Sha256};

use super::login_challenge::LoginChallenge;

/// A name and a password.
pub(super) struct NamedPassword<'a> {
    pub(super) name: &'a str,
    pub(super) password: &'a str,
}

/// Hash functions, the strongest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DigestHash {
    Md5,
    Sha256,
}

impl DigestHash {
    fn of(self, text: &str) -> String {
        fn hex(bytes: &[u8]) -> String {
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        }
        match self {
            Self::Md5 => hex(&Md5::digest(text)),
            Self::Sha256 => hex(&Sha256::digest(text)),
        }
    }
}

/// A challenge that can be answered.
#[derive(Debug)]
pub(super) struct DigestChallenge<'a> {
    pub(super) hash: DigestHash,
    /// True if the password's hash depends on the nonces too.
    is_session: bool,
    /// True if the answer counts and has a nonce of its own, which RFC 2069 did not know.
    has_quality: bool,
    algorithm: Option<&'a str>,
    realm: &'a str,
    nonce: &'a str,
    opaque: Option<&'a str>,
}

impl<'a> DigestChallenge<'a> {
    /// Reads a challenge; `None` for another way, an unknown hash, or one that covers bodies alone.
    pub(super) fn new(challenge: &'a LoginChallenge) -> Option<Self> {
        let algorithm = challenge.parameter("algorithm");
        let (hash, is_session) = match algorithm.map(str::to_ascii_lowercase).as_deref() {
            None | Some("md5") => (DigestHash::Md5, false),
            Some("md5-sess") => (DigestHash::Md5, true),
            Some("sha-256") => (DigestHash::Sha256, false),
            Some("sha-256-sess") => (DigestHash::Sha256, true),
            _ => return None,
        };
        let qualities = challenge.parameter("qop");
        let is_auth = |quality: &str| quality.trim().eq_ignore_ascii_case("auth");
        let has_quality = qualities.is_some_and(|all| all.split(',').any(is_auth));
        let is_answerable = challenge.scheme == "digest" && has_quality == qualities.is_some();
        is_answerable.then_some(Self {
            hash,
            is_session,
            has_quality,
            algorithm,
            realm: challenge.parameter("realm")?,
            nonce: challenge.parameter("nonce")?,
            opaque: challenge.parameter("opaque"),
        })
    }

    /// Returns the header that answers it for a path, with a nonce of the client's own.
    pub(super) fn answer(&self, login: &NamedPassword, path: &str, own_nonce: &str) -> String {
        let hash = |text: &str| self.hash.of(text);
        let Self { realm, nonce, .. } = self;
        let NamedPassword { name, password } = login;
        let mut secret = hash(&format!("{name}:{realm}:{password}"));
        if self.is_session {
            secret = hash(&format!("{secret}:{nonce}:{own_nonce}"));
        }
        let asked = hash(&format!("GET:{path}"));
        let response = match self.has_quality {
            true => hash(&format!(
                "{secret}:{nonce}:00000001:{own_nonce}:auth:{asked}"
            )),
            false => hash(&format!("{secret}:{nonce}:{asked}")),
        };
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut header = format!(
            "Digest username=\"{}\", realm=\"{}\", nonce=\"{}\", uri=\"{path}\", response=\"{response}\"",
            quoted(name),
            quoted(realm),
            quoted(nonce),
        );
        if self.has_quality {
            header += &format!(", qop=auth, nc=00000001, cnonce=\"{own_nonce}\"");
        }
        if let Some(algorithm) = self.algorithm {
            header += &format!(", algorithm={algorithm}");
        }
        if let Some(opaque) = self.opaque {
            header += &format!(", opaque=\"{}\"", quoted(opaque));
        }
        header
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::super::login_challenge::challenges;
    use super::*;
    use http::header::WWW_AUTHENTICATE;
    use http::{HeaderMap, HeaderValue};

    fn answered(asked: &str, login: &NamedPassword, path: &str, own_nonce: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_str(asked).unwrap());
        let ways = challenges(&headers);
        let challenge = DigestChallenge::new(ways.first()?)?;
        Some(challenge.answer(login, path, own_nonce))
    }

    /// Section 3.9.1 of RFC 7616, section 3.5 of RFC 2617, and the same without `qop` as RFC 2069 has it, by `openssl`.
    #[test]
    fn answers_are_those_of_the_standards() {
        let new = r#"realm="http-auth@example.org", qop="auth, auth-int", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#;
        let old = r#"realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41""#;
        let oldest = r#"realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""#;
        let (own_new, own_old) = ("f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", "0a4f113b");
        let [life, circle] = ["Circle of Life", "Circle Of Life"];
        for (asked, password, own_nonce, response) in [
            (
                format!("Digest {new}, algorithm=MD5"),
                life,
                own_new,
                "8ca523f5e9506fed4657c9700eebdbec",
            ),
            (
                format!("Digest {new}, algorithm=SHA-256"),
                life,
                own_new,
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
            (
                format!("digest {old}"),
                circle,
                own_old,
                "6629fae49393a05397450978507c4ef1",
            ),
            (
                format!("Digest {oldest}"),
                circle,
                own_old,
                "670fd8c2df070c60b045671b8b24ff02",
            ),
        ] {
            let login = NamedPassword {
                name: "Mufasa",
                password,
            };
            let answer = answered(&asked, &login, "/dir/index.html", own_nonce).unwrap();
            assert!(
                answer.contains(&format!("response=\"{response}\"")),
                "{asked}: {answer}"
            );
            assert!(!answer.contains("Circle"), "{answer}");
        }
    }

    #[test]
    fn a_challenge_that_cannot_be_answered_is_left() {
        let login = NamedPassword {
            name: "a",
            password: "b",
        };
        for asked in [
            "Basic realm=x",
            "Digest realm=x",
            "Digest nonce=x",
            "Digest realm=x, nonce=y, algorithm=SHA-512-256",
            "Digest realm=x, nonce=y, qop=auth-int",
        ] {
            assert_eq!(answered(asked, &login, "/", "n"), None, "{asked}");
        }
    }

    #[test]
    fn names_with_quotes_stay_one_name() {
        let login = NamedPassword {
            name: r#"a"\"#,
            password: "b",
        };
        let answer = answered("Digest realm=x, nonce=y", &login, "/", "n").unwrap();
        assert!(
            answer.starts_with(r#"Digest username="a\"\\", realm="x""#),
            "{answer}"
        );
    }
}
