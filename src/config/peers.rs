//! The other nodes in a node file, and the time limits for asking them.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::config_problem::ProblemList;

/// Most other nodes of one node file.
const PEERS_MAX: usize = 64;

/// Longest name of a node, which appears in lists and in headers.
const NAME_CHARS_MAX: usize = 64;

/// The name that means every node.
const EVERYWHERE: &str = "all";

/// Another node.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerEntry {
    /// Name of the node for callers of this one.
    pub name: String,
    /// MCP address: `10.0.0.7:8700`, or a URL such as `https://arm.example.org:8700/mcp`.
    pub address: String,
    /// The token that it made for this node.
    pub token: Option<SecretText>,
    /// A file that holds only the token, read again for every call.
    pub token_file: Option<PathBuf>,
    /// Words of your own, shown in `list_nodes`.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A text that is never shown: not in logs, not in messages.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// Creates a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for code that may see it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("(secret)")
    }
}

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("(secret)")
    }
}

impl PeerEntry {
    /// Returns the full URL, if the address has a valid form.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        let address = self.address.trim();
        if let Some((scheme, rest)) = address.split_once("://") {
            let is_valid = matches!(scheme, "http" | "https") && !rest.is_empty();
            return (is_valid && is_port_possible(rest)).then(|| address.to_owned());
        }
        let (host, port) = address.rsplit_once(':')?;
        let is_valid = !host.is_empty() && !host.contains(['/', ' ']);
        let port: u16 = port.parse().ok()?;
        is_valid.then(|| format!("http://{host}:{port}/mcp"))
    }
}

/// Returns whether the port of an address without its scheme is at most 65535, if it names one.
pub(super) fn is_port_possible(address: &str) -> bool {
    let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
    // The colons of an IPv6 address and of a user's password come before these.
    let host = authority.rsplit(['@', ']']).next().unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    port.is_empty() || port.parse::<u16>().is_ok()
}

/// Time limits and retries of calls to other nodes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FleetEntry {
    /// The longest that `list_nodes` waits for other nodes.
    pub list_within_ms: u64,
    /// Time for which an answer is shown again without asking.
    pub list_cache_ms: u64,
    /// Time for which the last answer of an unreachable node is shown.
    pub list_keep_s: u64,
    /// The longest for a call that looks.
    pub read_within_s: u64,
    /// The longest for a call that moves: more than that node's `answer_within_s`.
    pub move_within_s: u64,
    /// The longest for a stop.
    pub stop_within_s: u64,
    /// Silence after which a working node is given up.
    pub quiet_s: u64,
    /// Number of retries of a call that looks.
    pub read_retries: u32,
    /// Pause before the first retry, in ms; it doubles.
    pub retry_after_ms: u64,
    /// True if a node that listens beyond this machine announces itself by mDNS.
    pub announce: bool,
    /// A Zenoh router, where this node announces itself. Needs the cargo feature `zenoh`.
    pub zenoh: Option<ZenohEntry>,
}

/// A Zenoh router, and how this node and the router know each other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZenohEntry {
    /// Endpoint of the router: `tls/HOST:PORT`, or `tcp/HOST:PORT` on this machine.
    pub router: String,
    /// Silence after which a node counts as gone.
    #[serde(default = "zenoh_lease_ms")]
    pub lease_ms: u64,
    /// The authority that signed the router's certificate, as PEM.
    pub ca: Option<PathBuf>,
    /// This node's certificate, whose common name is the node's, as PEM.
    pub cert: Option<PathBuf>,
    /// Its key, as PEM.
    pub key: Option<PathBuf>,
}

/// Returns the default lease.
fn zenoh_lease_ms() -> u64 {
    1_000
}

impl ZenohEntry {
    fn check(&self, problems: &mut ProblemList) {
        let router = &self.router;
        let files = [&self.ca, &self.cert, &self.key];
        let problem = match router.split_once('/') {
            Some((_, address)) if !is_port_possible(address) => Some("needs a PORT up to 65535"),
            Some(("tls", _)) if files.iter().any(|file| file.is_none()) => {
                Some("needs `ca`, `cert` and `key`")
            }
            Some(("tls", _)) => None,
            Some(("tcp", address)) if is_loopback(address) => None,
            Some(("tcp", _)) => Some(
                "is on another machine, so it must begin with `tls/`; `tcp/` is only for 127.0.0.1, [::1] and localhost",
            ),
            _ => Some("is not of the form tls/HOST:PORT or tcp/HOST:PORT"),
        };
        if let Some(problem) = problem {
            problems.add("router", format!("router `{router}` {problem}"));
        }
        problems.range("lease_ms", "lease_ms", self.lease_ms, [200, 60_000]);
    }
}

/// Returns whether `HOST:PORT` is on this machine.
fn is_loopback(address: &str) -> bool {
    let is_loopback_ip = |address: &str| {
        address
            .parse::<std::net::SocketAddr>()
            .is_ok_and(|address| address.ip().is_loopback())
    };
    is_loopback_ip(address) || address.starts_with("localhost:")
}

impl Default for FleetEntry {
    fn default() -> Self {
        Self {
            list_within_ms: 800,
            list_cache_ms: 500,
            list_keep_s: 3_600,
            read_within_s: 10,
            move_within_s: 60,
            stop_within_s: 5,
            quiet_s: 10,
            read_retries: 2,
            retry_after_ms: 100,
            announce: true,
            zenoh: None,
        }
    }
}

impl FleetEntry {
    pub(super) fn check(&self, problems: &mut ProblemList) {
        for (key, value, range) in [
            ("list_within_ms", self.list_within_ms, [50, 900]),
            ("list_cache_ms", self.list_cache_ms, [0, 3_600_000]),
            ("list_keep_s", self.list_keep_s, [0, 31_536_000]),
            ("read_within_s", self.read_within_s, [1, 600]),
            ("move_within_s", self.move_within_s, [1, 3_700]),
            ("stop_within_s", self.stop_within_s, [1, 60]),
            ("quiet_s", self.quiet_s, [2, 600]),
            ("read_retries", u64::from(self.read_retries), [0, 10]),
            ("retry_after_ms", self.retry_after_ms, [1, 10_000]),
        ] {
            problems.range(key, key, value, range);
        }
        if let Some(zenoh) = &self.zenoh {
            problems.within("zenoh", |problems| zenoh.check(problems));
        }
    }
}

/// Finds all problems with the peers of a node of this name.
pub(super) fn check(node: &str, peers: &[PeerEntry], problems: &mut ProblemList) {
    problems.check(peers.len() <= PEERS_MAX, "peers", || {
        let count = peers.len();
        format!("{count} peers are named; at most {PEERS_MAX} are possible")
    });
    for (index, peer) in peers.iter().enumerate() {
        let name = &peer.name;
        let mut before = peers.iter().take(index);
        let is_twin = name == node || before.any(|other| other.name == *name);
        problems.within(&format!("peers[{index}]"), |problems| {
            problems.check(!is_twin, "name", || {
                format!("two nodes have the name `{name}`; each needs its own")
            });
            if let Some(problem) = bad_name(name) {
                problems.add("name", problem);
            }
            if let Some(problem) = bad_address(peer) {
                problems.add("address", problem);
            }
            let has_both = peer.token.is_some() && peer.token_file.is_some();
            problems.check(!has_both, "token_file", || {
                format!("peer `{name}` has a `token` and a `token_file`; leave one of them out")
            });
        });
    }
}

/// Returns the reason why a node cannot be reached at this address. One with a user in it may hold a secret, and is not shown.
fn bad_address(peer: &PeerEntry) -> Option<String> {
    let (name, address) = (&peer.name, &peer.address);
    if address.contains('@') {
        return Some(format!(
            "peer `{name}`: its address contains a user or a password, which every caller can see. Write only HOST:PORT, and put a token in `token_file`"
        ));
    }
    peer.url().is_none().then(|| {
        format!(
            "peer `{name}`: `{address}` is not of the form HOST:PORT, http://HOST:PORT/mcp or https://HOST:PORT/mcp"
        )
    })
}

/// Returns the reason why a node cannot have this name.
pub(super) fn bad_name(name: &str) -> Option<String> {
    let is_plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' '));
    if name.eq_ignore_ascii_case(EVERYWHERE) {
        return Some(format!(
            "`{name}` means every node; give the node a different name"
        ));
    }
    if name.trim().is_empty() || name.chars().count() > NAME_CHARS_MAX || !is_plain {
        return Some(format!(
            "`{}` cannot be a node's name; use 1 to {NAME_CHARS_MAX} letters, digits, `-`, `_` or `.`",
            name.escape_debug()
        ));
    }
    None
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::NodeFile;
    use super::*;

    fn peer(address: &str) -> PeerEntry {
        PeerEntry {
            name: "left".to_owned(),
            address: address.to_owned(),
            token: None,
            token_file: None,
            tags: Vec::new(),
        }
    }

    #[test]
    fn an_address_may_be_short() {
        for (address, url) in [
            ("10.0.0.7:8700", Some("http://10.0.0.7:8700/mcp")),
            ("left.local:80", Some("http://left.local:80/mcp")),
            ("http://left/mcp", Some("http://left/mcp")),
            ("https://left/mcp", Some("https://left/mcp")),
            ("http://[::1]:8700/mcp", Some("http://[::1]:8700/mcp")),
            ("http://[::1]/mcp", Some("http://[::1]/mcp")),
            ("http://left:99999/mcp", None),
            ("https://[::1]:99999", None),
            ("left:99999", None),
            ("ftp://left", None),
            ("left", None),
            ("left:port", None),
            (":80", None),
            ("", None),
        ] {
            assert_eq!(peer(address).url().as_deref(), url, "{address:?}");
        }
    }

    #[test]
    fn all_problems_are_reported_at_once_with_their_lines() {
        let text = "name = \"bench\"\n[[peers]]\nname = \"bench\"\naddress = \"x\"\n[[peers]]\nname = \"all\"\naddress = \"a:1\"\ntoken = \"t\"\ntoken_file = \"f\"\n[fleet]\nquiet_s = 0\n";
        let error = NodeFile::read("node.toml", text).unwrap_err().to_string();
        for expected in [
            "line 3: two nodes have the name `bench`",
            "line 4: peer `bench`: `x` is not of the form",
            "`all` means every node",
            "leave one of them out",
            "quiet_s is 0; 2 to 600",
        ] {
            assert!(error.contains(expected), "{expected:?} is not in {error}");
        }
    }

    #[test]
    fn a_router_of_another_machine_needs_certificates() {
        let error = |zenoh: &str| {
            let text = format!("[fleet.zenoh]\n{zenoh}\n");
            NodeFile::read("node.toml", &text)
                .err()
                .map(|error| error.to_string())
        };
        let files = "ca = \"a\"\ncert = \"b\"\nkey = \"c\"";
        for (keys, expected) in [
            ("router = \"tcp/10.0.0.1:7447\"", "begin with `tls/`"),
            (
                "router = \"tcp/127.0.0.1.example.org:7447\"",
                "begin with `tls/`",
            ),
            (
                "router = \"tls/10.0.0.1:7447\"",
                "needs `ca`, `cert` and `key`",
            ),
            ("router = \"10.0.0.1\"", "is not of the form"),
            ("router = \"tcp/[::1]:99999\"", "needs a PORT up to 65535"),
            ("router = \"tcp/[::1]:7447\"\nlease_ms = 10", "200 to 60000"),
        ] {
            let error = error(keys).unwrap();
            assert!(error.contains(expected), "{expected:?} is not in {error}");
        }
        assert_eq!(error("router = \"tcp/127.0.0.1:7447\""), None);
        assert_eq!(
            error(&format!("router = \"tls/10.0.0.1:7447\"\n{files}")),
            None
        );
    }

    #[test]
    fn an_address_holds_no_user_or_password() {
        for address in [
            "http://user:hunter2@127.0.0.1:8961/mcp",
            "user:hunter2@left:80",
        ] {
            let text = format!("[[peers]]\nname = \"left\"\naddress = \"{address}\"\n");
            let error = NodeFile::read("node.toml", &text).unwrap_err().to_string();
            assert!(error.contains("`token_file`"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        let text = "[[peers]]\nname = \"left\"\naddress = \"a:1\"\ntoken = \"sth_abc\"\n";
        let file = NodeFile::read("node.toml", text).unwrap();
        assert!(!format!("{file:?}").contains("sth_abc"));
        let secret = file.peers.first().unwrap().token.clone().unwrap();
        assert_eq!(secret.reveal(), "sth_abc");
    }
}
