//! What the protocol side asks of whoever does the work, in plain data and without the protocol library's types.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::progress::ProgressSender;

/// The side that knows tools. One desk serves every connection of the node at the same time.
pub trait Desk: Send + Sync + 'static {
    /// The tools as they are listed now. Asked again for every `tools/list`.
    fn list(&self) -> Vec<ToolCard>;

    /// The workflow in a few sentences, for `initialize` and `server/discover`. Empty: none are sent.
    fn instructions(&self) -> String;

    /// Does one call, of a known tool or not: an unknown name is answered by the desk, as an error that a model can read.
    ///
    /// The future is never dropped half way. Whoever gives up sets [`CallWatch::cancelled`], and the desk comes to rest
    /// and answers, whether or not anybody still listens.
    fn call(&self, call: Call, watch: CallWatch) -> BoxFuture<'static, Answer>;

    /// Answers a call that only shows what is in memory, here and now. None where it takes longer, or is no such call: it
    /// then comes by [`Desk::call`]. Must not wait for anything.
    fn at_once(&self, call: &Call) -> Option<Answer> {
        let _ = call;
        None
    }

    /// A call of this tool was read and may have to wait for its turn. What cannot wait, a stop, is done here and now;
    /// the call itself still comes. Must not wait for anything.
    fn hurry(&self, tool: &str, arguments: &Received) {
        let _ = (tool, arguments);
    }

    /// Returns whether a tool of this name stops now. Must not wait for anything.
    fn is_stop(&self, tool: &str) -> bool {
        let _ = tool;
        false
    }

    /// Stops here and now if a tool of this name stops, and returns whether it does: a message that is no call named it, so
    /// that no call comes after. Must not wait for anything.
    fn stray_stop(&self, tool: &str) -> bool {
        let _ = tool;
        false
    }

    /// A caller gave up on something, and there is no way left to find out on what: whatever moves is stopped. Must not
    /// wait for anything.
    fn give_up(&self) {}

    /// What there is beside tools. What is not offered here is answered as a method that does not exist.
    fn offers(&self) -> Offers {
        Offers::default()
    }

    /// Notices of changed lists, where [`Offers::changes`] says that there are any.
    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        None
    }

    /// The resources that can be read now.
    fn resources(&self) -> Vec<ResourceCard> {
        Vec::new()
    }

    /// The families of resources, `scene://{name}`.
    fn templates(&self) -> Vec<TemplateCard> {
        Vec::new()
    }

    /// Reads one resource; [`Unknown`] carries what there is instead.
    fn read(&self, uri: String) -> BoxFuture<'static, Result<ResourceText, Unknown>> {
        let message = format!("there is no resource {uri}");
        Box::pin(std::future::ready(Err(Unknown { message })))
    }

    /// The prompts that a person may choose.
    fn prompts(&self) -> Vec<PromptCard> {
        Vec::new()
    }

    /// One prompt, filled with its arguments.
    fn prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<PromptText, Unknown> {
        let _ = arguments;
        let message = format!("there is no prompt {name}");
        Err(Unknown { message })
    }

    /// Values that complete what was typed, best first.
    fn complete(&self, completion: &Completion) -> Vec<String> {
        let _ = completion;
        Vec::new()
    }
}

/// One tool call, as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool's name as received, perhaps decorated (`robotAlign()`); empty when the caller sent none.
    pub tool: String,
    /// The arguments as received.
    pub arguments: Received,
    /// Who asks, and by which way.
    pub caller: Caller,
}

/// A call's arguments before anybody has judged them.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// There was no `arguments` at all.
    Absent,
    /// Any JSON but a string: an object as it should be, or a list, a number, `null`.
    Value(Value),
    /// A JSON string, or the exact text of arguments that JSON alone would read with a loss, such as a key said twice.
    Text(String),
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The way in.
    pub via: Via,
    /// The session's id, where the protocol has sessions.
    pub session: Option<String>,
    /// The client's name as it introduced itself.
    pub client_name: Option<String>,
    /// The client's version as it introduced itself.
    pub client_version: Option<String>,
    /// The protocol's revision that this request is served by, such as `2026-07-28`.
    pub protocol: Option<String>,
    /// Who the caller has proven to be, where the way in asks.
    pub identity: Option<Identity>,
    /// Set where another node passes the call on.
    pub hop: Option<Hop>,
}

/// That a call was passed on by another node, in that node's words: they take rights away and give none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// What the other node is called.
    pub from: String,
    /// What it calls this one.
    pub called: String,
    /// The most that its caller may do.
    pub role: Option<String>,
    /// The same text for the same caller of that node.
    pub caller: String,
}

/// Somebody whom a [`Doorkeeper`] let in, in the doorkeeper's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name under which the caller is known.
    pub name: String,
    /// What that allows.
    pub role: String,
    /// Calls a minute, stops aside.
    pub calls_per_minute: u32,
}

/// Says who may come in over HTTP.
pub trait Doorkeeper: Send + Sync + 'static {
    /// Judges the bearer token of one request where that takes no time: there is none, it cannot be one, or it was believed
    /// before. Nothing where it has to be proven by [`Doorkeeper::admit`].
    fn glance(&self, token: Option<&str>) -> Option<Result<Identity, String>>;

    /// Judges the bearer token of one request; may take long, and memory: it is asked for one at a time.
    ///
    /// # Errors
    /// Why the caller may not come in, and how one may.
    fn admit(&self, token: Option<&str>) -> Result<Identity, String>;

    /// Returns whether a request without a token is turned away. Where it is not, a token that is sent counts all the same.
    fn wants_tokens(&self) -> bool {
        true
    }

    /// Counts a session that this caller opens as one of its calls.
    ///
    /// # Errors
    /// The seconds until it may open one.
    fn opens(&self, who: &Identity) -> Result<(), f64>;
}

/// A way into the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Standard input and output.
    Stdio,
    /// Streamable HTTP, with a session or without.
    Http,
    /// A client in the same process.
    InProcess,
}

impl Caller {
    /// Who comes by a way that says no more.
    #[must_use]
    pub fn unnamed(via: Via) -> Self {
        Self {
            via,
            session: None,
            client_name: None,
            client_version: None,
            protocol: None,
            identity: None,
            hop: None,
        }
    }

    /// The same text for the same caller across its calls, as well as the way in can tell: the session where there is one,
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
        if let Some(identity) = &self.identity {
            return format!("token {}", identity.name);
        }
        match (&self.session, self.via) {
            (Some(session), _) => session_key(session),
            (None, Via::Stdio) => "stdio".to_owned(),
            (None, Via::InProcess) => "in process".to_owned(),
            (None, Via::Http) => {
                format!("http {}", self.client_name.as_deref().unwrap_or("unnamed"))
            }
        }
    }
}

/// [`Caller::key`] of whoever calls within a session.
#[must_use]
pub fn session_key(session: &str) -> String {
    format!("session {session}")
}

/// What a call may look at, and tell, while it runs.
#[derive(Debug, Clone)]
pub struct CallWatch {
    /// Set when the caller cancelled, hung up or reached its end: a motion stops.
    pub cancelled: CancellationToken,
    /// Where progress goes; absent when the caller asked for none.
    pub progress: Option<ProgressSender>,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// The result as data, shaped by the tool's output schema.
    pub structured: Map<String, Value>,
    /// The result as short text.
    pub text: String,
    /// Whether the caller did not get what was asked.
    pub is_error: bool,
    /// Pictures as media type and bytes, such as `("image/png", …)`.
    pub images: Vec<(String, Vec<u8>)>,
}

/// One tool as clients see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCard {
    /// 1 to 128 of `A-Z a-z 0-9 _ . - /`.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For models.
    pub description: String,
    /// JSON Schema of the arguments; its `type` is `object`.
    pub input_schema: Map<String, Value>,
    /// JSON Schema of [`Answer::structured`].
    pub output_schema: Option<Map<String, Value>>,
    /// What the tool does to the world.
    pub hints: Hints,
}

/// The protocol's annotations, all of them said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing.
    pub read_only: bool,
    /// May undo or spoil something.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Reaches things outside the node's own world.
    pub open_world: bool,
}

/// What a desk has beside tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offers {
    /// Resources and their templates.
    pub resources: bool,
    /// Prompts.
    pub prompts: bool,
    /// Completion of prompts' and templates' arguments.
    pub completion: bool,
    /// Notices of changed lists.
    pub changes: bool,
}

/// A list that is no longer what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Tools, or the values that their parameters take.
    Tools,
    /// Resources or their templates.
    Resources,
    /// Prompts.
    Prompts,
}

/// One resource in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceCard {
    /// Its address, `usage://stroke`.
    pub uri: String,
    /// Short name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Media type.
    pub mime: String,
}

/// One family of resources in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateCard {
    /// RFC 6570 template, `scene://{name}`.
    pub uri_template: String,
    /// Short name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Media type.
    pub mime: String,
}

/// A resource that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceText {
    /// Media type.
    pub mime: String,
    /// What it holds.
    pub body: ResourceBody,
}

/// What a resource holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text in UTF-8.
    Text(String),
    /// Bytes, sent in base64.
    Bytes(Vec<u8>),
}

/// One prompt in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptCard {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// What it takes.
    pub parameters: Vec<PromptParameter>,
}

/// One argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptParameter {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Whether it must be given.
    pub required: bool,
}

/// A prompt filled in: what the person would have said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptText {
    /// One sentence.
    pub description: String,
    /// The person's message.
    pub text: String,
}

/// What is being typed, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The prompt's name or the resource template.
    pub of: String,
    /// Which argument.
    pub argument: String,
    /// What was typed so far.
    pub typed: String,
}

/// There is no such thing; the message names what there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unknown {
    /// A phrase that a person can act on.
    pub message: String,
}
