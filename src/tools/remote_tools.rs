//! Tools of other MCP servers, called through [`RemoteTools`].

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::dispatch::{ToolContext, ToolRequest};
use super::reply::{Reply, refused};
use super::{AttachedArm, Node};
use call::Refusal;
use catalogue::ToolEffect;
use config::ServerEntry;
use fleet::{RemoteCallWatch, ToolAnswer};
use permit::StopLatch;

/// Longest words and data of an answer that are passed on, and the longest of its pictures together: more would keep the thread that
/// writes answers, and hears stops, from its work for longer than 50 ms.
const WORDS_BYTES_MAX: usize = 1 << 20;
const PICTURES_BYTES_MAX: usize = 4 << 20;

/// Client for the tools of other MCP servers.
pub trait RemoteTools: Send + Sync {
    /// Calls a tool of another server. Ends within the server's time limit, with an answer or the reason for none.
    fn call(
        &self,
        call: RemoteToolCall,
        watch: RemoteCallWatch,
    ) -> BoxFuture<'static, Result<ToolAnswer, Refusal>>;
}

/// A call of another server's tool.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteToolCall {
    /// The server.
    pub server: ServerEntry,
    /// Its tool.
    pub tool: String,
    /// The arguments as understood, under the declared names.
    pub arguments: Map<String, Value>,
}

/// Calls another server and passes its answer on.
pub(super) async fn call(ctx: &ToolContext<'_>, server: &ServerEntry, tool: &str) -> Reply {
    let name = server_name(server);
    let Some(client) = &ctx.node.remote_tools else {
        return Reply::failed(format!(
            "this node is not set up to reach other servers, such as {name}"
        ));
    };
    let call = RemoteToolCall {
        server: server.clone(),
        tool: tool.to_owned(),
        arguments: ctx.reading.understood.clone(),
    };
    let moves = ctx.tool.effect == ToolEffect::Moves;
    // Before the stops are looked at: one that comes later cancels the call.
    let stopped = ctx.node.remote_motion.token();
    if moves && let Err(reply) = ctx.node.check_unstopped(ctx.request) {
        return *reply;
    }
    let watch = RemoteCallWatch {
        cancelled: ctx.watch.cancelled.child_token(),
        ..ctx.watch.clone()
    };
    let cancelled = watch.cancelled.clone();
    let mut calling = client.call(call, watch);
    let answer = tokio::select! {
        answer = &mut calling => answer,
        () = stopped.cancelled(), if moves => {
            // The server is told, within its time limit.
            cancelled.cancel();
            let _ = calling.await;
            return stopped_there(tool, &name);
        }
    };
    match answer {
        Ok(answer) if is_too_long(&answer) => not_passed_on(tool, &name, &answer),
        Ok(answer) => reply_from(answer),
        Err(error) => Reply::failed(format!("{tool} of {name}: {error}")).with("code", "server"),
    }
    .with("server", name)
}

impl Node {
    /// Refuses what would move something on another server after a stop that came later than the call, or that a reset has not ended.
    fn check_unstopped(&self, request: &ToolRequest) -> Result<(), Box<Reply>> {
        if self.has_heard_stop_since(&request.arrived) {
            return Err(refused("stopped", "a stop came after this call"));
        }
        let is_stopped = |arm: &&Arc<AttachedArm>| {
            let latched = arm.permits().latched();
            matches!(
                latched,
                Some(StopLatch::Stopped(_) | StopLatch::Emergency(_))
            )
        };
        match self.arms.iter().find(is_stopped) {
            Some(arm) => Err(refused(
                "stopped",
                format!("the arm {} was stopped. Next: `reset`", arm.name),
            )),
            None => Ok(()),
        }
    }
}

/// Returns the answer to a call that a stop cancelled.
fn stopped_there(tool: &str, server: &str) -> Reply {
    Reply::failed(format!(
        "a stop cancelled {tool} of {server}, but something may still move there. Next: look there"
    ))
    .with("code", "stopped")
    .with("server", server)
}

/// Returns the answer in place of one that is too long.
fn not_passed_on(tool: &str, server: &str, answer: &ToolAnswer) -> Reply {
    let outcome = match is_failure(answer) {
        true => "failed",
        false => "was carried out",
    };
    Reply::failed(format!(
        "{tool} of {server} {outcome}, but its answer is too long (at most {} MiB of words and data, and {} MiB of pictures). Next: make its answer shorter",
        WORDS_BYTES_MAX >> 20,
        PICTURES_BYTES_MAX >> 20
    ))
    .with("code", "server")
}

fn is_too_long(answer: &ToolAnswer) -> bool {
    let data = serde_json::to_vec(&answer.structured).map_or(0, |data| data.len());
    let pictures = answer.images.iter().map(|(_, bytes)| bytes.len());
    answer.text.len() + data > WORDS_BYTES_MAX || pictures.sum::<usize>() > PICTURES_BYTES_MAX
}

/// Returns whether an answer is an error; one whose data say that it was no success is one, even if it is not marked as one.
fn is_failure(answer: &ToolAnswer) -> bool {
    answer.is_error || answer.structured.get("success") == Some(&Value::Bool(false))
}

/// Returns the answer of another server.
fn reply_from(answer: ToolAnswer) -> Reply {
    let text = match answer.text.as_str() {
        "" => "it answered without text",
        text => text,
    };
    let mut reply = if is_failure(&answer) {
        Reply::failed(text).with("code", "server")
    } else {
        Reply::done(text)
    };
    if !answer.structured.is_empty() {
        reply.set("result", answer.structured);
    }
    reply.images = answer.images;
    reply
}

/// Returns the name of a server for messages: its address, or its program.
fn server_name(server: &ServerEntry) -> String {
    let name = server.url.as_ref().or(server.command.as_ref());
    name.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_whose_data_say_that_it_failed_is_an_error() {
        for (success, is_error) in [(true, false), (false, true)] {
            let answer = ToolAnswer {
                structured: Map::from_iter([("success".to_owned(), success.into())]),
                ..ToolAnswer::default()
            };
            assert_eq!(reply_from(answer).is_error, is_error);
        }
    }

    #[test]
    fn an_answer_that_would_hold_up_a_stop_is_not_passed_on() {
        let of = |words: usize, data: usize, picture: usize| ToolAnswer {
            text: "a".repeat(words),
            structured: Map::from_iter([("data".to_owned(), "a".repeat(data).into())]),
            images: vec![("image/png".to_owned(), vec![0; picture])],
            ..ToolAnswer::default()
        };
        assert!(!is_too_long(&of(1000, 1000, PICTURES_BYTES_MAX)));
        assert!(is_too_long(&of(WORDS_BYTES_MAX, 0, 0)));
        assert!(is_too_long(&of(0, WORDS_BYTES_MAX, 0)));
        assert!(is_too_long(&of(0, 0, PICTURES_BYTES_MAX + 1)));
        for (is_error, says) in [
            (false, "pour of pump was carried out"),
            (true, "pour of pump failed"),
        ] {
            let answer = ToolAnswer {
                is_error,
                ..of(WORDS_BYTES_MAX, 1, 0)
            };
            assert!(
                not_passed_on("pour", "pump", &answer)
                    .text
                    .starts_with(says)
            );
        }
    }
}
