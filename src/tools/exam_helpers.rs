//! Tools that help with exams: forwards calls to the exam service, and its answers back.

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};

use super::dispatch::ToolContext;
use super::reply::Reply;
use catalogue::{KnownNames, ToolDefinition};

/// Service that runs the exam helpers.
pub trait ExamHelperService: Send + Sync {
    /// Runs a helper, within its time limit. A failed step is reported as failed.
    fn help(
        &self,
        helper: &str,
        given: Map<String, Value>,
        names: KnownNames,
    ) -> BoxFuture<'static, HelperToolResult>;
}

/// Answer of an exam helper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HelperToolResult {
    /// True if the caller did not get the requested result.
    pub is_failed: bool,
    /// Message of one line.
    pub message: String,
    /// Result as data.
    pub fields: Map<String, Value>,
}

impl HelperToolResult {
    /// Returns a result with this message, failed unless `is_done`.
    #[must_use]
    pub fn done_if(is_done: bool, message: impl Into<String>) -> Self {
        Self {
            is_failed: !is_done,
            message: message.into(),
            fields: Map::new(),
        }
    }

    /// Returns a result with this message.
    #[must_use]
    pub fn done(message: impl Into<String>) -> Self {
        Self::done_if(true, message)
    }

    /// Returns a failed result with this message.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::done_if(false, message)
    }

    /// Returns the same result with one more field.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.fields.insert(field.to_owned(), value);
        self
    }
}

/// Calls a helper.
pub(super) async fn call(ctx: &ToolContext<'_>, tool: &ToolDefinition) -> Reply {
    let Some(helpers) = &ctx.node.helpers else {
        return Reply::failed("this program was built without the exam and its helpers")
            .with("code", "helper");
    };
    let given = ctx.reading.understood.clone();
    let names = ctx.node.all_names();
    let result = helpers.help(&tool.name, given, names).await;
    let mut reply = if result.is_failed {
        Reply::failed(result.message).with("code", "helper")
    } else {
        Reply::done(result.message)
    };
    reply.structured.extend(result.fields);
    reply
}
