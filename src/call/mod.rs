//! The vocabulary of a tool call: what arrives, who sends it, what it does and how it is answered.
//!
//! It is shared by the side that speaks the protocol and the side that knows the tools, so that neither translates.

mod answer;
mod arrival_stamp;
mod called_names;
mod queue_tag;
mod refusal;
mod stop_order;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use answer::{NOW, ToolAnswer};
pub use arrival_stamp::{ArrivalStamp, StopCounts};
pub use called_names::{CALL_TAGS, called_in_text, called_in_unreadable, called_name};
pub use queue_tag::{QueueTag, read_ticket};
pub use refusal::Refusal;
pub use stop_order::StopOrder;

/// A tool call as received.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool's name as received, perhaps decorated (`robotAlign()`); empty when the caller sent none.
    pub tool: String,
    /// The arguments as received.
    pub arguments: ReceivedArguments,
    /// The sender and the way in.
    pub caller: ToolCaller,
    /// The stops received before the call.
    pub arrived: ArrivalStamp,
}

/// A call's arguments before they are read.
#[derive(Debug, Clone, PartialEq)]
pub enum ReceivedArguments {
    /// No `arguments` at all.
    Absent,
    /// A JSON value: an object as it should be, or a list, a number, `null`; a string may itself hold arguments, even twice over.
    Value(Value),
    /// Text that should be JSON but may not be, or the exact text of arguments that a JSON reader would lose a part of,
    /// such as a key given twice.
    Text(String),
}

impl From<Option<Value>> for ReceivedArguments {
    fn from(arguments: Option<Value>) -> Self {
        match arguments {
            None => Self::Absent,
            Some(Value::String(text)) => Self::Text(text),
            Some(value) => Self::Value(value),
        }
    }
}

impl From<ReceivedArguments> for Option<Value> {
    fn from(arguments: ReceivedArguments) -> Self {
        match arguments {
            ReceivedArguments::Absent => None,
            ReceivedArguments::Value(value) => Some(value),
            ReceivedArguments::Text(text) => Some(Value::String(text)),
        }
    }
}

/// The sender of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCaller {
    /// The way in.
    pub via: EntryPoint,
    /// The session's id, where the protocol has sessions.
    pub session: Option<String>,
    /// The client's name as it introduced itself.
    pub client_name: Option<String>,
    /// The client's version as it introduced itself.
    pub client_version: Option<String>,
    /// The protocol's revision that this request is served by, such as `2026-07-28`.
    pub protocol: Option<String>,
    /// The identity that the caller has proven, if the way in requires one.
    pub identity: Option<VerifiedIdentity>,
    /// Set where another node passes the call on.
    pub hop: Option<CallHop>,
}

/// A way into the node: the transport of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryPoint {
    /// Standard input and output.
    Stdio,
    /// Streamable HTTP, with a session or without.
    Http,
    /// A client in the same process.
    InProcess,
}

/// A caller that was authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedIdentity {
    /// The caller's name.
    pub name: String,
    /// The role's name.
    pub role: String,
    /// Calls per minute, not counting stops.
    pub calls_per_minute: u32,
}

/// The node that passes a call on, as it describes itself: its claims can only reduce rights. Calls go one hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallHop {
    /// The node that passes the call on.
    pub from: String,
    /// Its name for the node that the call goes to.
    pub called: String,
    /// The highest role that the caller may have there, by name; absent if callers need none.
    pub role: Option<String>,
    /// Key of the caller on that node: the same text for the same caller.
    pub caller: String,
    /// Set if a queue of drawings makes the call.
    pub queue: Option<QueueTag>,
    /// Place of the call among the stops that the node has passed on.
    pub order: Option<StopOrder>,
}

/// The effect of a tool on the world, and so how strictly its arguments are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Stops motion: accepts any arguments.
    Stops,
    /// Looks and reports: may make assumptions, and says so.
    Reads,
    /// Moves an arm: on a guarded arm it never acts on a guess.
    Moves,
}

/// The protocol's annotations of a tool, all of them explicit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolHints {
    /// Changes nothing.
    pub read_only: bool,
    /// May undo or spoil something.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Reaches beyond the node's own world.
    pub open_world: bool,
}

impl ToolCaller {
    /// Returns the sender of a message of which no more is known than this.
    #[must_use]
    pub fn sender(
        via: EntryPoint,
        identity: Option<&VerifiedIdentity>,
        hop: Option<CallHop>,
    ) -> Self {
        Self {
            via,
            session: None,
            client_name: None,
            client_version: None,
            protocol: None,
            identity: identity.cloned(),
            hop,
        }
    }

    /// Returns its token, for records; `None` if it has none.
    #[must_use]
    pub fn token(&self) -> Option<String> {
        let identity = self.identity.as_ref()?;
        Some(format!("{TOKEN_PREFIX}{}", identity.name))
    }

    /// Returns a caller of whom only the way in is known.
    #[must_use]
    pub fn unnamed(via: EntryPoint) -> Self {
        Self::sender(via, None, None)
    }

    /// Returns a key that is the same for all calls of a caller, as far as the way in can tell: the session if there is one,
    /// otherwise the way in with the client's name.
    #[must_use]
    pub fn key(&self) -> String {
        let own = self.own_key();
        match &self.hop {
            Some(hop) => format!("{own} for {} of {}", hop.caller, hop.from),
            None => own,
        }
    }

    fn own_key(&self) -> String {
        if let Some(token) = self.token() {
            return token;
        }
        match (&self.session, self.via) {
            (Some(session), _) => session_key(session),
            (None, EntryPoint::Stdio) => "stdio".to_owned(),
            (None, EntryPoint::InProcess) => IN_PROCESS.to_owned(),
            (None, EntryPoint::Http) => {
                format!(
                    "{HTTP_PREFIX}{}",
                    self.client_name.as_deref().unwrap_or("unnamed")
                )
            }
        }
    }
}

/// Key of a person who types a call as a command: each command is a process, and a caller, of its own.
pub const IN_PROCESS: &str = "in process";

/// Start of the keys of callers with a token.
const TOKEN_PREFIX: &str = "token ";

/// Start of the keys of callers over HTTP that have neither a token nor a session.
const HTTP_PREFIX: &str = "http ";

/// Start of the keys of sessions.
const SESSION_PREFIX: &str = "session ";

/// Returns whether a key is that of a caller without a token over HTTP, whose next call may have another.
fn is_changing_key(key: &str) -> bool {
    key.starts_with(HTTP_PREFIX) || key.starts_with(SESSION_PREFIX)
}

/// Returns whether two keys may be those of one caller: they are equal, or both are of callers without a token over HTTP, whose
/// key may be another with each call and after a restart of the node.
#[must_use]
pub fn is_same_caller(key: &str, other: &str) -> bool {
    key == other || (is_changing_key(key) && is_changing_key(other))
}

/// Returns the [`ToolCaller::key`] of calls within a session. Other callers see the key, and a client that knows a
/// session's id can call in its name, so the key holds a hash of the id.
#[must_use]
pub fn session_key(session: &str) -> String {
    let hash = blake3::hash(session.as_bytes()).to_hex();
    format!("{SESSION_PREFIX}{}", hash.get(..12).unwrap_or_default())
}

/// Returns the key under which a caller is remembered: its own if it has a token, a session or standard input; all others are
/// one.
#[must_use]
pub fn remembered_key(key: &str) -> &str {
    match key.starts_with(HTTP_PREFIX) {
        true => HTTP_PREFIX,
        false => key,
    }
}
