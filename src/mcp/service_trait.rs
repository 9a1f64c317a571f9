//! Interface between the protocol side and the tools, in plain data and without the protocol library's types.

use std::collections::BTreeMap;

use call::{ReceivedArguments, Refusal, ToolAnswer, ToolCall, ToolHints, VerifiedIdentity};
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::progress::ProgressSender;

/// The side that knows tools. One desk serves every connection of the node at the same time.
pub trait McpService: Send + Sync + 'static {
    /// The tools as they are listed now. Asked again for every `tools/list`.
    fn list(&self) -> Vec<ToolCard>;

    /// The workflow in a few sentences, for `initialize` and `server/discover`. Empty: none are sent.
    fn instructions(&self) -> String;

    /// Does one call. An unknown tool name is answered too, with an error that a model can read.
    ///
    /// The future is never dropped half way. A caller that gives up sets [`CallWatch::cancelled`]; the service then comes
    /// to rest and answers, even if no client listens any more.
    fn call(&self, call: ToolCall, watch: CallWatch) -> BoxFuture<'static, ToolAnswer>;

    /// A call of this tool was read and may have to wait for its turn. What cannot wait, a stop, is done here and now;
    /// the call itself still comes. Must not wait for anything.
    /// `sender` is whom the token of the message belongs to, where it came with one: whose stop it is. Returns whether it
    /// was one.
    fn preempt_stop(
        &self,
        tool: &str,
        arguments: &ReceivedArguments,
        sender: Option<&VerifiedIdentity>,
    ) -> bool {
        let _ = (tool, arguments, sender);
        false
    }

    /// Returns whether a tool of this name stops now. Must not wait for anything.
    fn is_stop(&self, tool: &str) -> bool {
        let _ = tool;
        false
    }

    /// Stops here and now if a tool of this name stops, and returns whether it does: a message that is no call named it, so
    /// that no call comes after. Must not wait for anything.
    fn stray_stop(&self, tool: &str, sender: Option<&VerifiedIdentity>) -> bool {
        let _ = (tool, sender);
        false
    }

    /// Stops all motion: a caller gave up on something that can no longer be identified. Must not wait for anything.
    fn abort_motion(&self) {}

    /// Returns what the service offers beside tools. Anything else is answered as a method that does not exist.
    fn offers(&self) -> ServiceCapabilities {
        ServiceCapabilities::default()
    }

    /// Notices of changed lists, where [`ServiceCapabilities::changes`] says that there are any.
    fn changes(&self) -> Option<broadcast::Receiver<ListChange>> {
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

    /// Reads one resource; [`UnknownNameError`] carries what there is instead.
    fn read(&self, uri: String) -> BoxFuture<'static, Result<ResourceText, UnknownNameError>> {
        let message = format!("there is no resource {uri}");
        Box::pin(std::future::ready(Err(UnknownNameError { message })))
    }

    /// The view that hosts of MCP Apps show beside the results of tools; `None`: there is none.
    fn app_view(&self) -> Option<AppView> {
        None
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
    ) -> Result<PromptText, UnknownNameError> {
        let _ = arguments;
        let message = format!("there is no prompt {name}");
        Err(UnknownNameError { message })
    }

    /// Values that complete what was typed, best first.
    fn complete(&self, completion: &CompletionRequest) -> Vec<String> {
        let _ = completion;
        Vec::new()
    }
}

/// Says who may come in over HTTP.
pub trait Authenticator: Send + Sync + 'static {
    /// Judges the bearer token of one request if that takes no time: there is none, it cannot be valid, or it was verified
    /// before. Returns `None` if [`Authenticator::verify`] has to verify it.
    fn verify_cached(&self, token: Option<&str>) -> Option<Result<VerifiedIdentity, Refusal>>;

    /// Judges the bearer token of one request; may take long, and memory: it is asked for one at a time.
    ///
    /// # Errors
    /// Why the caller may not come in, and how one may.
    fn verify(&self, token: Option<&str>) -> Result<VerifiedIdentity, Refusal>;

    /// Returns whether a request without a token is turned away. Where it is not, a token that is sent counts all the same.
    fn wants_tokens(&self) -> bool {
        true
    }

    /// Counts a session that this caller opens as one of its calls.
    ///
    /// # Errors
    /// The seconds until it may open one.
    fn count_session(&self, who: &VerifiedIdentity) -> Result<(), f64>;
}

/// Cancellation and progress of a running call.
#[derive(Debug, Clone)]
pub struct CallWatch {
    /// Set when the caller cancelled, hung up or reached its end: a motion stops.
    pub cancelled: CancellationToken,
    /// Receiver of progress; `None` if the caller asked for none.
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
    /// Effect of the tool on the world.
    pub hints: ToolHints,
}

/// Features that a service offers beside tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServiceCapabilities {
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
pub enum ListChange {
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
    /// Contents of the resource.
    pub body: ResourceBody,
}

/// Contents of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text in UTF-8.
    Text(String),
    /// Bytes, sent in base64.
    Bytes(Vec<u8>),
}

/// A view that a host of MCP Apps shows beside the results of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppView {
    /// Its address, `ui://…`.
    pub uri: String,
    /// Short name.
    pub name: String,
    /// For people.
    pub title: String,
    /// One sentence.
    pub description: String,
    /// Listed names of the tools whose results it shows.
    pub tools: Vec<String>,
    /// The whole view: one document that loads nothing else.
    pub html: String,
}

/// One prompt in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptCard {
    /// Its name.
    pub name: String,
    /// For people.
    pub title: String,
    /// One sentence.
    pub description: String,
    /// Parameters of the prompt.
    pub parameters: Vec<PromptParameter>,
}

/// One argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptParameter {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// True if the argument is required.
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

/// Request to complete a text while it is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The prompt's name or the resource template.
    pub of: String,
    /// The argument.
    pub argument: String,
    /// Text typed so far.
    pub typed: String,
}

/// There is no such thing; the message names what there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnknownNameError {
    /// A phrase that a person can act on.
    pub message: String,
}
