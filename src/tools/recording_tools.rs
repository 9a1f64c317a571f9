//! Tools for recordings: forwards calls to the node's recordings, and their answers back.

use serde_json::{Map, Value};

use super::dispatch::ToolContext;
use super::reply::Reply;
use call::Refusal;
use catalogue::ToolDefinition;

/// Answers questions about recordings. Waits for the disk.
pub trait RecordingLibrary: Send + Sync {
    /// Answers a tool of the toolset `recording` with a line and fields.
    ///
    /// # Errors
    /// The recording does not exist or cannot be read.
    fn answer(
        &self,
        tool: &str,
        given: &Map<String, Value>,
    ) -> Result<(String, Map<String, Value>), Refusal>;

    /// Returns a recorded job's report as a page of HTML without scripts.
    ///
    /// # Errors
    /// The recording does not exist or cannot be read.
    fn report(&self, job: &str) -> Result<String, Refusal>;
}

/// Asks the node's recordings.
pub(super) async fn call(ctx: &ToolContext<'_>, tool: &ToolDefinition) -> Reply {
    let failed = |reason: String| Reply::failed(reason).with("code", "recording");
    let Some(library) = ctx.node.recordings.clone() else {
        return failed("this program was built without recordings".to_owned());
    };
    let (name, given) = (tool.name.clone(), ctx.reading.understood.clone());
    let answering = tokio::task::spawn_blocking(move || library.answer(&name, &given));
    match answering.await {
        Ok(Ok((message, fields))) => {
            let mut reply = Reply::done(message);
            reply.structured.extend(fields);
            reply
        }
        Ok(Err(reason)) => failed(reason.into()),
        Err(_) => failed("the recording could not be read: its thread failed".to_owned()),
    }
}
