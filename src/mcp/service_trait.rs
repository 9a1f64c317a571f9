//! Interface between the protocol and the tools, in plain data, without the protocol library's types.

use std::collections::BTreeMap;

use call::{
    ArrivalStamp, ReceivedArguments, Refusal, ToolAnswer, ToolCall, ToolCaller, ToolHints,
    VerifiedIdentity,
};
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::progress::ProgressSender;

/// Provides the tools. One service serves every connection of the node at the same time.
pub trait McpService: Send + Sync + 'static {
    /// Returns the tools as they are listed now. Called for every `tools/list`.
    fn list(&self) -> BoxFuture<'static, Vec<ToolCard>>;

    /// Returns the workflow in a few sentences, for `initialize` and `server/discover`; empty if none is to be sent. Must not wait
    /// for anything.
    fn instructions(&self) -> String;

    /// Carries out one call. An unknown tool name is answered too, with an error that a model can read.
    ///
    /// The future is never dropped half way. A caller that gives up sets [`CallWatch::cancelled`]; the service then comes
    /// to rest and answers, even if no client listens any more.
    fn call(&self, call: ToolCall, watch: CallWatch) -> BoxFuture<'static, ToolAnswer>;

    /// Records the stops that were heard before a message that arrives now. Must not wait for anything. A service that stops
    /// nothing counts none.
    fn stamp_arrival(&self) -> ArrivalStamp {
        ArrivalStamp::default()
    }

    /// Carries out the stop in a call that was read but may have to wait for its turn; the call itself still follows. Returns
    /// whether it was a stop. `caller` is its sender as far as that is known when the message arrives: its session and its name are
    /// not. Must not wait for anything.
    fn preempt_stop(&self, tool: &str, arguments: &ReceivedArguments, caller: &ToolCaller) -> bool {
        let _ = (tool, arguments, caller);
        false
    }

    /// Returns whether a tool of this name would stop now. Must not wait for anything.
    fn is_stop(&self, tool: &str) -> bool {
        let _ = tool;
        false
    }

    /// Returns whether this call may move something, as far as its name and arguments tell. Must not wait for anything.
    fn moves(&self, tool: &str, arguments: &ReceivedArguments) -> bool {
        let _ = (tool, arguments);
        false
    }

    /// Stops at once if a tool of this name stops, and returns whether it does. The name came in a message that is not a call, or
    /// that is refused, so no call follows. Must not wait for anything.
    fn stray_stop(&self, tool: &str, sender: Option<&VerifiedIdentity>) -> bool {
        let _ = (tool, sender);
        false
    }

    /// Records a stop that was carried out when it arrived, and whose call is refused.
    fn record_refused_stop(&self, sender: Option<&VerifiedIdentity>) {
        let _ = sender;
    }

    /// Stops all motion: a caller gave up on something that can no longer be identified. Must not wait for anything.
    fn abort_motion(&self, sender: Option<&VerifiedIdentity>) {
        let _ = sender;
    }

    /// Returns what the service offers besides tools. Anything else is answered as a method that does not exist.
    fn offers(&self) -> ServiceCapabilities {
        ServiceCapabilities::default()
    }

    /// Returns notices of changed lists, if [`ServiceCapabilities::changes`] is set.
    fn changes(&self) -> Option<broadcast::Receiver<ListChange>> {
        None
    }

    /// Returns the resources that can be read now.
    fn resources(&self) -> BoxFuture<'static, Vec<ResourceCard>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Returns the resource templates, such as `scene://{name}`.
    fn templates(&self) -> Vec<TemplateCard> {
        Vec::new()
    }

    /// Reads one resource; [`UnknownNameError`] names the existing ones.
    fn read(&self, uri: String) -> BoxFuture<'static, Result<ResourceText, UnknownNameError>> {
        let message = format!("there is no resource {uri}");
        Box::pin(std::future::ready(Err(UnknownNameError { message })))
    }

    /// Returns the view that hosts of MCP Apps show beside the results of tools, if there is one. Must not wait for anything.
    fn app_view(&self) -> Option<AppView> {
        None
    }

    /// Returns the prompts that a person may choose.
    fn prompts(&self) -> Vec<PromptCard> {
        Vec::new()
    }

    /// Returns one prompt, filled with its arguments.
    fn prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<PromptText, UnknownNameError> {
        let _ = arguments;
        let message = format!("there is no prompt {name}");
        Err(UnknownNameError { message })
    }

    /// Returns values that complete the typed text, best first.
    fn complete(&self, completion: CompletionRequest) -> BoxFuture<'static, Vec<String>> {
        let _ = completion;
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// Decides who may connect over HTTP.
pub trait Authenticator: Send + Sync + 'static {
    /// Judges the bearer token of one request if that needs no slow hash: it is absent, cannot be valid, or was verified before.
    /// Returns `None` if [`Authenticator::verify`] has to verify it.
    fn verify_cached(&self, token: Option<&str>) -> Option<Result<VerifiedIdentity, Refusal>>;

    /// Judges the bearer token of one request; may take time and memory, and is called for one token at a time.
    ///
    /// # Errors
    /// The reason why the caller is not let in, and how to be.
    fn verify(&self, token: Option<&str>) -> Result<VerifiedIdentity, Refusal>;

    /// Returns whether a request without a token is refused. If it is not, a token that is sent still counts.
    fn wants_tokens(&self) -> bool {
        true
    }

    /// Counts a session that this caller opens as one of its calls.
    ///
    /// # Errors
    /// The seconds until the caller may open one.
    fn count_session(&self, caller: &VerifiedIdentity) -> Result<(), f64>;
}

/// Cancellation and progress of a running call.
#[derive(Debug, Clone)]
pub struct CallWatch {
    /// Set when the caller cancels, hangs up or ends: a motion then stops.
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
    /// JSON Schema of [`ToolAnswer::structured`].
    pub output_schema: Option<Map<String, Value>>,
    /// Effect of the tool on the world.
    pub hints: ToolHints,
}

/// Features that a service offers besides tools.
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

/// A list that has changed.
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

/// A prompt filled in: the message that the person would have written.
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

/// Nothing has this name; the message lists the existing names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnknownNameError {
    /// A phrase that a person can act on.
    pub message: String,
}
