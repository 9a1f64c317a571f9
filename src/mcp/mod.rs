//! The only room that knows MCP: bytes come in, a [`ToolCall`] goes to the [`McpService`], a [`ToolAnswer`] goes back.
//!
//! It knows no tool. The implementation of [`McpService`] says which there are and does the work.
//!
//! * [`message_intake`]: checks a message before the protocol library sees it, and repairs or answers what is wrong
//! * `stray_stop`: stops in messages that are no calls
//! * [`server`]: the protocol library's handler over a service
//! * [`stdio`], [`http`]: the two ways in
//! * [`client`]: the way out, to other servers, and into our own server in the same process
//! * [`forward_call`]: one call to another node, on a connection of its own

mod accept;
pub mod client;
pub mod desk;
pub mod http;
pub mod http_client;
pub mod inlet;
pub mod server;
pub mod stdio;
pub mod tls;

mod guard;
mod kept;
mod keys;
mod offers;
mod pass;
mod patient;
mod porter;
mod progress;
mod sessions;
mod stray;

pub use call::{Answer, Call, Caller, Hints, Hop, Identity, Received, Via, session_key};
pub use desk::{
    CallWatch, Change, Completion, Desk, Doorkeeper, Offers, PromptCard, PromptParameter,
    PromptText, ResourceBody, ResourceCard, ResourceText, TemplateCard, ToolCard, Unknown,
};
pub use inlet::{Repair, Repaired, never_repair};
pub use pass::{Parcel, PassError, pass};
pub use progress::{Progress, ProgressSender};
pub use stray::named;
