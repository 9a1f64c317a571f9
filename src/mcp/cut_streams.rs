//! Keeps the answers of calls whose streams were cut before them. A client that comes back with `Last-Event-ID` gets the answer.
//!
//! `rmcp` forgets a stream together with its answer (modelcontextprotocol/rust-sdk#1165, open).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::SetOnce;

/// Most streams of a session that are kept; one whose answer was read is not.
const KEPT_MAX: usize = 16;

/// Longest wait for the answer of a call that was given up: its arm comes to a stand first.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(20);

/// The answer of one stream's call, once there is one.
pub(super) type StreamAnswer = Arc<SetOnce<ServerSseMessage>>;

/// The streams of a session whose answers have not been read.
#[derive(Default)]
pub(super) struct CutStreams(Mutex<VecDeque<(u64, StreamAnswer)>>);

impl CutStreams {
    /// Takes note of an event of a stream; `is_cut` says of an answer whether its reader has gone.
    pub(super) fn observe(
        &self,
        event: &ServerSseMessage,
        is_cut: impl FnOnce(&ServerJsonRpcMessage) -> bool,
    ) {
        let Some(stream) = event.event_id.as_deref().and_then(stream_of) else {
            return;
        };
        let answer = event
            .message
            .as_deref()
            .filter(|message| is_answer(message));
        let mut all = self.lock();
        match answer {
            Some(answer) if is_cut(answer) => {
                // Only the first answer counts.
                let _ = entry(&mut all, stream).set(event.clone());
            }
            Some(_) => all.retain(|(known, _)| *known != stream),
            None => {
                entry(&mut all, stream);
            }
        }
    }

    /// Returns the answer of the stream that an event belongs to, if it was not read.
    pub(super) fn answer(&self, event_id: &str) -> Option<StreamAnswer> {
        let stream = stream_of(event_id)?;
        let all = self.lock();
        let found = all.iter().find(|(known, _)| *known == stream);
        found.map(|(_, answer)| Arc::clone(answer))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, StreamAnswer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the answer of a stream's call.
pub(super) async fn answered(answer: StreamAnswer) -> Option<ServerSseMessage> {
    let answered = tokio::time::timeout(ANSWER_WAIT_MAX, answer.wait()).await;
    answered.ok().cloned()
}

/// Returns the answer of a stream, which is kept from now on.
fn entry(all: &mut VecDeque<(u64, StreamAnswer)>, stream: u64) -> StreamAnswer {
    if let Some((_, answer)) = all.iter().find(|(known, _)| *known == stream) {
        return Arc::clone(answer);
    }
    if all.len() >= KEPT_MAX {
        all.pop_front();
    }
    let answer = StreamAnswer::default();
    all.push_back((stream, Arc::clone(&answer)));
    answer
}

/// Returns the stream of an event: the protocol library writes `INDEX/STREAM`.
fn stream_of(event_id: &str) -> Option<u64> {
    event_id.split_once('/')?.1.parse().ok()
}

const fn is_answer(message: &ServerJsonRpcMessage) -> bool {
    matches!(
        message,
        ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)
    )
}
