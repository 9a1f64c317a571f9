//! What the protocol side asks of whoever does the work, in plain data and without the protocol library's types.

use std::collections::BTreeMap;

use call::{Answer, Call, Hints, Identity, Received};
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

/// What a call may look at, and tell, while it runs.
#[derive(Debug, Clone)]
pub struct CallWatch {
    /// Set when the caller cancelled, hung up or reached its end: a motion stops.
    pub cancelled: CancellationToken,
    /// Where progress goes; absent when the caller asked for none.
    pub progress: Option<ProgressSender>,
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
