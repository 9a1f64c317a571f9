//! Tools that help with exams: passes calls on to the exam service, and its answers back.

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::answer::Reply;
use super::dispatch::Order;
use catalogue::{Here, Tool};

/// Service that runs the exam helpers.
pub trait Helpers: Send + Sync {
    /// Does what a helper is asked for, within its time. A step that failed is told as failed.
    fn help(
        &self,
        helper: &str,
        given: Map<String, Value>,
        here: Here,
    ) -> BoxFuture<'static, Helped>;
}

/// Answer of an exam helper.
#[derive(Clone, Debug, PartialEq)]
pub struct Helped {
    /// True if the caller did not get the requested result.
    pub is_failed: bool,
    /// In one line.
    pub message: String,
    /// As data.
    pub fields: Map<String, Value>,
}

/// Asks a helper.
pub(super) async fn call(order: &Order<'_>, tool: &Tool) -> Reply {
    let Some(helpers) = &order.node.helpers else {
        return Reply::failed(
            "this program was built without the exam, so it has no helpers for it",
        )
        .with("code", "helper");
    };
    let given = order.reading.understood.clone();
    let helped = helpers.help(&tool.name, given, order.node.shown()).await;
    let mut reply = if helped.is_failed {
        Reply::failed(helped.message).with("code", "helper")
    } else {
        Reply::done(helped.message)
    };
    for (name, value) in helped.fields {
        reply = reply.with_value(&name, value);
    }
    reply
}
