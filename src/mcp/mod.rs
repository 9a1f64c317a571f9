//! MCP server and client: bytes come in, a [`ToolCall`] goes to the [`McpService`], a [`ToolAnswer`] goes back.
//!
//! This crate knows no tool. The implementation of [`McpService`] lists the tools and does the work.
//!
//! * [`message_intake`]: checks a message before the protocol library sees it, and repairs or answers what is wrong
//! * `stray_stop`: stops in messages that are not calls
//! * `wide_ids`: ids that the protocol library cannot hold
//! * [`server`]: the protocol library's handler over a service
//! * [`stdio`], [`http`]: the two servers
//! * [`client`]: the client, of other servers and of our own in the same process
//! * [`forward_call`]: one call to another node, on a connection of its own

mod accept;
mod call_response;
mod cancellation;
pub mod client;
pub mod http;
pub mod http_client;
pub mod message_intake;
pub mod server;
pub mod service_trait;
pub mod stdio;
pub mod tls;

mod app_view;
mod auth_queue;
mod convert;
mod cut_streams;
mod forward;
mod guarded_body;
mod kept_body;
mod long_messages;
mod lossy_json;
mod origin_guard;
mod own_hosts;
mod progress;
mod read_ahead;
mod request_sender;
mod sessions;
mod stranded_clients;
mod stray_stop;
mod wide_ids;
mod write_timeout;

pub use call::{
    CallHop, EntryPoint, ReceivedArguments, ToolAnswer, ToolCall, ToolCaller, ToolHints,
    VerifiedIdentity, session_key,
};
pub use forward::{ForwardError, ForwardedCall, forward_call};
pub use long_messages::INLINE_BYTES_MAX;
pub use message_intake::{MessageRepair, RepairedMessage, never_repair};
pub use progress::{CallProgress, ProgressSender};
pub use service_trait::{
    AppView, Authenticator, CallWatch, CompletionRequest, ListChange, McpService, PromptCard,
    PromptParameter, PromptText, ResourceBody, ResourceCard, ResourceText, ServiceCapabilities,
    TemplateCard, ToolCard, UnknownNameError,
};
pub use stray_stop::named_tool;
