//! Refuses addresses with keys: an address is recorded, logged and shown, and so would be a key in it.

use super::ExamError;

/// Kind of address, which decides where its key belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressKind {
    /// An OpenAI-compatible endpoint. Paths are added to its address, so it has no query at all.
    Endpoint,
    /// An MCP server.
    Server,
    /// A server that is started by a command line.
    Command,
}

/// Endings of normalised names of parameters and options whose value is a key.
const SUFFIXES: [&str; 7] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "credential",
    "signature",
];

/// Normalised names of keys that must match entirely.
const NAMES: [&str; 7] = [
    "auth",
    "authorization",
    "pass",
    "pwd",
    "sig",
    "bearer",
    "jwt",
];

impl AddressKind {
    /// Refuses an address that contains a key or is malformed. The refusal shows the address without the key.
    ///
    /// # Errors
    /// Fails with the place of the key and where it belongs, or with the form of an address.
    pub(crate) fn check(self, address: &str) -> Result<(), ExamError> {
        let secret = match self {
            Self::Endpoint if address.contains(['?', '#']) => {
                secret_in_address(address).or(Some("a query"))
            }
            Self::Endpoint | Self::Server => secret_in_address(address),
            Self::Command => secret_in_command(address),
        };
        match secret {
            None if self == Self::Command || is_http(address) => Ok(()),
            None => Err(ExamError::Address(address.to_owned())),
            Some(holds) => Err(ExamError::Key {
                address: self.masked(address),
                holds,
                instead: self.instead(),
            }),
        }
    }

    const fn instead(self) -> &'static str {
        match self {
            Self::Endpoint => "end the address at /v1, and put the key into STEADYHAND_API_KEY",
            Self::Server => {
                "add the server with `steadyhand exam servers add NAME URL --key-env VARIABLE`, and put the key into that variable"
            }
            Self::Command => "set the key in the environment, which the program inherits",
        }
    }

    /// Returns the address with any secrets masked.
    fn masked(self, address: &str) -> String {
        if self == Self::Command {
            let program = address.split_whitespace().next().unwrap_or_default();
            // A key may stand before the program, as in `KEY=… program`.
            let program = program.split('=').next().unwrap_or_default();
            return format!("{program} …");
        }
        let (scheme, rest, query) = parts(address);
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let user_mark = if host == rest { "" } else { "…@" };
        let query_mark = if query.is_empty() { "" } else { "?…" };
        format!("{scheme}{user_mark}{host}{query_mark}")
    }
}

/// Splits an address into its scheme with `://`, its authority and path, and its query.
fn parts(address: &str) -> (&str, &str, &str) {
    let start = address.find("://").map_or(0, |index| index + 3);
    let (scheme, rest) = address.split_at(start);
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (authority_and_path, query) = rest.split_at(end);
    (scheme, authority_and_path, query)
}

/// Returns whether an address belongs to this machine.
pub(crate) fn is_local(address: &str) -> bool {
    let (_, rest, _) = parts(address);
    let authority = rest.split('/').next().unwrap_or_default();
    let is_host = |host: &str| {
        let suffix = authority.strip_prefix(host);
        suffix.is_some_and(|port| port.is_empty() || port.starts_with(':'))
    };
    authority.starts_with("127.") || is_host("localhost") || is_host("[::1]")
}

/// Returns whether an address has a supported scheme and a host.
fn is_http(address: &str) -> bool {
    let (scheme, rest, _) = parts(address);
    let host = rest.split('/').next().unwrap_or_default();
    let has_host = !host.is_empty() && !host.starts_with(':');
    matches!(scheme, "http://" | "https://") && has_host && !address.contains(char::is_whitespace)
}

fn secret_in_address(address: &str) -> Option<&'static str> {
    let (_, rest, query) = parts(address);
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Some("a name or password before the @");
    }
    let mut pairs = query.split(['?', '&', ';', '#']);
    let is_key = |pair: &str| is_secret(pair.split('=').next().unwrap_or_default());
    pairs.any(is_key).then_some("a key in the query")
}

fn secret_in_command(command: &str) -> Option<&'static str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    for (word, next) in words.iter().zip(words.iter().skip(1).chain([&""])) {
        if word.contains("://") && secret_in_address(word).is_some() {
            return Some("an address with a key");
        }
        let (name, has_value) = match word.split_once('=') {
            Some((name, value)) => (name, !value.is_empty()),
            None => (*word, !next.is_empty() && !next.starts_with('-')),
        };
        let is_option = word.starts_with('-') || word.contains('=');
        // An option that names a key's variable or file holds no key itself.
        if is_option && has_value && is_secret(name) {
            return Some("a key in an option");
        }
    }
    None
}

/// Returns whether a name is that of a key: `api_key`, `api-key`, `apiKey`, `access_token`.
fn is_secret(name: &str) -> bool {
    let folded: String = without_escapes(name)
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    SUFFIXES.iter().any(|ending| folded.ends_with(ending)) || NAMES.contains(&folded.as_str())
}

/// Removes percent escapes: in names, `%5F` and the like only separate words.
fn without_escapes(name: &str) -> String {
    let mut parts = name.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.get(2..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(kind: AddressKind, address: &str) -> Option<String> {
        kind.check(address).err().map(|error| error.to_string())
    }

    #[test]
    fn a_key_is_refused_wherever_it_stands_and_is_not_shown() {
        use AddressKind::{Command, Endpoint, Server};
        for (kind, address) in [
            (Endpoint, "http://user:s3cret@h:1/v1"),
            (Endpoint, "https://s3cret@h/v1"),
            (Endpoint, "http://h/v1?api_key=s3cret"),
            (Endpoint, "http://h/v1?version=s3cret"),
            (Server, "http://h/mcp?profile=a&access_token=s3cret"),
            (Server, "http://h/mcp?api%5Fkey=s3cret"),
            (Server, "http://h/mcp#token=s3cret"),
            (Server, "user:s3cret@h/mcp"),
            (Command, "server --api-key s3cret"),
            (Command, "server --token=s3cret --fast"),
            (Command, "env API_KEY=s3cret server"),
            (Command, "proxy http://u:s3cret@h/mcp"),
        ] {
            let text = refusal(kind, address).unwrap_or_default();
            assert!(text.contains("stored and shown"), "{address}: {text}");
            assert!(!text.contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn an_address_without_a_key_is_accepted() {
        use AddressKind::{Command, Endpoint, Server};
        for (kind, address) in [
            (Endpoint, "http://127.0.0.1:8080/v1"),
            (Endpoint, "https://h/a@b/v1"),
            (Server, "http://h/mcp?profile=keyboard"),
            (Server, "http://h/keys/mcp"),
            (Command, "npx -y @scope/server --keyboard qwerty /data"),
            (Command, "server --key-env NAME --token-file /etc/token"),
        ] {
            assert_eq!(refusal(kind, address), None, "{address}");
        }
    }

    #[test]
    fn a_malformed_address_is_refused() {
        use AddressKind::{Endpoint, Server};
        for (kind, address) in [
            (Endpoint, "127.0.0.1:8080/v1"),
            (Endpoint, "http://"),
            (Endpoint, "http:///v1"),
            (Server, "ftp://h/mcp"),
            (Server, "http://:80/mcp"),
            (Server, "http://h /mcp"),
        ] {
            let text = refusal(kind, address).unwrap_or_default();
            assert!(text.contains("is not an address"), "{address}: {text}");
        }
    }

    #[test]
    fn an_address_of_this_machine_is_known() {
        for local in [
            "http://127.0.0.1:8080/v1",
            "http://localhost/v1",
            "http://[::1]:1/v1",
        ] {
            assert!(is_local(local), "{local}");
        }
        for other in [
            "http://h/127.0.0.1",
            "http://localhost.h/v1",
            "https://h:1/v1",
        ] {
            assert!(!is_local(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_address_is_taken_or_refused_without_what_stands_before_the_at(user in "[0-9]{6,12}", rest in "\\PC{0,40}") {
            for kind in [AddressKind::Endpoint, AddressKind::Server, AddressKind::Command] {
                let _ = kind.check(&rest);
            }
            let text = refusal(AddressKind::Server, &format!("http://{user}:{user}@h/mcp")).unwrap_or_default();
            prop_assert!(text.contains("…@h/mcp") && !text.contains(&user), "{}", text);
        }
    }
}
