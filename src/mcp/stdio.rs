//! Server over standard input and output: one message per line.
//!
//! Our own task reads the lines, so that a broken line is answered, a message before `initialize` does not end the process,
//! and the end of input is noticed at once, not after the protocol library has waited five seconds for answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use call::{ArrivalStamp, EntryPoint, ToolCaller};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{ServerInitializeError, ServiceExt};
use rmcp::transport::Transport;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::cancellation::{self, CANCELLED, RequestIds};
use super::long_messages::INLINE_BYTES_MAX;
use super::message_intake::{
    self, AcceptedMessage, INVALID_REQUEST, MessageIntake, MessageRepair, TakenCall,
};
use super::server::{McpHandler, call_request};
use super::service_trait::McpService;
use super::stray_stop;
use super::wide_ids;

/// Longest line that is read; a longer one is refused and skipped.
pub const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most messages that wait for the protocol library. Reading never waits for it: a stop, or the end of input, is noticed at
/// once, however many wait. A message that does not fit is refused.
const WAITING_MAX: usize = 1024;

/// Most bytes of the messages that wait.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most of the reader's own answers that wait to be written. A client that reads none of them loses those that do not fit.
const REPLIES_MAX: usize = 256;

/// Time in which a client may still read the last answers.
const LAST_REPLIES_MAX: Duration = Duration::from_millis(500);

/// Reason why serving a pair of streams ended early.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The protocol could not be opened.
    #[error("the session with the client could not be opened: {0}")]
    Opening(String),
    /// The protocol's task panicked.
    #[error("the protocol's task failed: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// Serves standard input and output until input ends, output is closed by its reader, or `stop` is set.
///
/// `ended` runs as soon as input has ended, or nothing can be written any more, before anything else, to stop the arm.
///
/// # Errors
/// See [`StdioError`]. The end of input is not an error.
pub async fn serve(
    service: Arc<dyn McpService>,
    repair: MessageRepair,
    ended: impl FnOnce() + Send + 'static,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let pipes = rmcp::transport::stdio_pipes();
    serve_on(service, EntryPoint::Stdio, repair, pipes, ended, stop).await
}

/// Serves any pair of streams as [`serve`] does standard input and output.
///
/// # Errors
/// See [`StdioError`].
pub async fn serve_on<R, W>(
    service: Arc<dyn McpService>,
    via: EntryPoint,
    repair: MessageRepair,
    (input, output): (R, W),
    ended: impl FnOnce() + Send + 'static,
    stop: CancellationToken,
) -> Result<(), StdioError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let streams = StdioStreams {
        input: Box::new(input),
        output: Box::new(output),
        ended: Box::new(ended),
    };
    serve_streams(service, via, repair, streams, stop).await
}

pub(super) type BoxedInput = Box<dyn AsyncRead + Send + Unpin>;

pub(super) type BoxedOutput = Box<dyn AsyncWrite + Send + Unpin>;

/// A pair of streams of any kind.
struct StdioStreams {
    input: BoxedInput,
    output: BoxedOutput,
    ended: Box<dyn FnOnce() + Send>,
}

/// Serves boxed streams, so that this is compiled once, not wherever it is awaited.
fn serve_streams(
    service: Arc<dyn McpService>,
    via: EntryPoint,
    repair: MessageRepair,
    streams: StdioStreams,
    stop: CancellationToken,
) -> BoxFuture<'static, Result<(), StdioError>> {
    let served = async move {
        let gone = CancellationToken::new();
        let output = StdioOutput::new(streams.output);
        let (forward, inbound) = mpsc::channel(WAITING_MAX);
        let (replies, answers) = mpsc::channel(REPLIES_MAX);
        let writing = tokio::spawn(write_replies(answers, output.clone()).boxed());
        let unread = output.unread.clone();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let has_wide_ids = Arc::new(AtomicBool::new(false));
        let requests = Arc::new(RequestIds::default());
        let reader = StdioReader {
            repair,
            service: Arc::clone(&service),
            replies,
            forward,
            waiting_bytes: Arc::clone(&waiting_bytes),
            has_wide_ids: Arc::clone(&has_wide_ids),
            requests: Arc::clone(&requests),
            is_open: false,
        };
        let end = gone.clone();
        let reading = async move {
            tokio::select! {
                // What has arrived is heard first.
                biased;
                () = reader.run(streams.input) => {}
                () = unread.cancelled() => {}
            }
            (streams.ended)();
            end.cancel();
        };
        let reading = tokio::spawn(reading.boxed());
        let handler = McpHandler::new(service, via).ending_with(gone);
        let lines = StdioTransport {
            inbound,
            waiting_bytes,
            has_wide_ids,
            requests,
            output,
        };
        let served = run(handler, lines, stop).await;
        reading.abort();
        // The reader's last answers are still written to a client that still reads.
        let _ = tokio::time::timeout(LAST_REPLIES_MAX, writing).await;
        served
    };
    served.boxed()
}

async fn run(
    handler: McpHandler,
    lines: StdioTransport,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    match handler.serve_with_ct(lines, stop).await {
        Ok(service) => Ok(service.waiting().await.map(drop)?),
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(())
        }
        Err(error) => Err(StdioError::Opening(error.to_string())),
    }
}

/// Reads lines, answers those that cannot be passed on, and forwards the rest.
struct StdioReader {
    repair: MessageRepair,
    service: Arc<dyn McpService>,
    replies: mpsc::Sender<Vec<u8>>,
    forward: mpsc::Sender<(usize, ClientJsonRpcMessage)>,
    waiting_bytes: Arc<AtomicUsize>,
    /// Set at the first id that stands for a number: from then on output is searched for such ids.
    has_wide_ids: Arc<AtomicBool>,
    /// Requests that a cancellation can refer to.
    requests: Arc<RequestIds>,
    /// True if the client has opened the protocol. Until then only requests may come; anything else would end the server.
    is_open: bool,
}

impl StdioReader {
    /// Reads until input has ended or no client listens any more.
    async fn run(mut self, input: BoxedInput) {
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        loop {
            let goes_on = match next_line(&mut input, &mut line).await {
                ReadLine::Whole => self.take(&mut line).await,
                ReadLine::TooLong => self.refuse_overlong(&line),
                ReadLine::Last => {
                    self.take(&mut line).await;
                    false
                }
                ReadLine::End => false,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Handles one line. Returns `false` when no client listens any more.
    async fn take(&mut self, line: &mut Vec<u8>) -> bool {
        let arrived = self.service.stamp_arrival();
        match self.admit(line).await {
            MessageIntake::Nothing => true,
            MessageIntake::Reply(reply) => self.reply(&reply),
            MessageIntake::Pass(accepted) => self.pass(accepted, arrived),
        }
    }

    /// Judges one line; a long one, whose bytes are taken, on another thread, so that no other client's stop has to wait.
    async fn admit(&self, line: &mut Vec<u8>) -> MessageIntake {
        if line.len() <= INLINE_BYTES_MAX {
            return stray_stop::admit(line, self.repair, self.service.as_ref(), None);
        }
        let (line, repair) = (std::mem::take(line), self.repair);
        let service = Arc::clone(&self.service);
        let judging = tokio::task::spawn_blocking(move || {
            stray_stop::admit(&line, repair, service.as_ref(), None)
        });
        let failed = |_| MessageIntake::Reply(message_intake::internal_error());
        judging.await.unwrap_or_else(failed)
    }

    /// Refuses a line that is too long, but does not lose a stop in the kept part.
    fn refuse_overlong(&self, kept: &[u8]) -> bool {
        let refusal = too_long(message_intake::id_in_broken(kept));
        let is_stopped = stray_stop::stop_in_unreadable(kept, self.service.as_ref(), None);
        self.reply(&stray_stop::with_stop_notice(refusal, is_stopped))
    }

    fn pass(&mut self, mut accepted: AcceptedMessage, mut arrived: ArrivalStamp) -> bool {
        if !self.is_open {
            match HandshakeStep::of(&accepted) {
                HandshakeStep::Opens => self.is_open = true,
                HandshakeStep::MayCome => {}
                HandshakeStep::Dropped => return true,
                HandshakeStep::TooEarly => return self.refuse_early(accepted),
            }
        }
        // The cancelled request is unknown: it may be the one that moves.
        if accepted.method.as_deref() == Some(CANCELLED)
            && !self.requests.cancel(&mut accepted.message)
        {
            self.service.abort_motion(None);
        }
        let call = accepted.take_call();
        if let Some(call) = &call
            && self.preempt_stop(call)
        {
            arrived = self.service.stamp_arrival().of_stop();
        }
        if let (Some(id), Some(_)) = (&accepted.id, &accepted.method) {
            if wide_ids::is_stand_in(id) {
                self.has_wide_ids.store(true, Ordering::Relaxed);
            }
            if !self.requests.begin(id, CancellationToken::new()) {
                // A stop was done by then.
                let refusal = cancellation::id_in_use(id);
                let refusal = stray_stop::with_stop_notice(refusal, arrived.is_stop());
                return self.reply(&refusal);
            }
        }
        let message = std::mem::take(&mut accepted.message);
        // The library would try its types one after another; a call's type is already known.
        let message = match call {
            Some(call) => call_request(call, arrived, message),
            None => ClientJsonRpcMessage::deserialize(message),
        };
        match message {
            Ok(message) => self.forward(accepted, message),
            Err(error) => {
                if let Some(id) = &accepted.id {
                    self.requests.end(id);
                }
                let reason = format!("the message is no request: {error}");
                let refusal = message_intake::refusal(INVALID_REQUEST, accepted.id, &reason);
                self.reply(&refusal)
            }
        }
    }

    /// Carries out the stop in a call; returns whether there was one.
    fn preempt_stop(&self, call: &TakenCall) -> bool {
        let caller = ToolCaller::sender(EntryPoint::Stdio, None, None);
        let TakenCall {
            tool, arguments, ..
        } = call;
        self.service.preempt_stop(tool, arguments, &caller)
    }

    /// Refuses a request before the protocol is open, but does not lose a stop.
    fn refuse_early(&self, mut accepted: AcceptedMessage) -> bool {
        let call = accepted.take_call();
        let refusal = too_early(accepted.id);
        let stops =
            |call: TakenCall| self.service.stray_stop(&call.tool, None) || self.preempt_stop(&call);
        self.reply(&stray_stop::with_stop_notice(
            refusal,
            call.is_some_and(stops),
        ))
    }

    /// Queues a message, or replies that the queue is full.
    fn forward(&self, accepted: AcceptedMessage, message: ClientJsonRpcMessage) -> bool {
        let bytes = accepted.length;
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::SeqCst);
        if before + bytes <= WAITING_BYTES_MAX {
            match self.forward.try_send((bytes, message)) {
                Ok(()) => return true,
                Err(TrySendError::Closed(_)) => return false,
                Err(TrySendError::Full(_)) => {}
            }
        }
        self.waiting_bytes.fetch_sub(bytes, Ordering::SeqCst);
        if let Some(id) = &accepted.id {
            self.requests.end(id);
        }
        if accepted.method.as_deref() == Some(CANCELLED) {
            self.service.abort_motion(None);
        }
        accepted.id.is_none_or(|id| self.reply(&too_busy(id)))
    }

    /// Sends a reply without waiting: a client that reads nothing gets nothing.
    fn reply(&self, reply: &Value) -> bool {
        let mut line = wide_ids::restored(reply.to_string().into_bytes());
        line.push(b'\n');
        !matches!(self.replies.try_send(line), Err(TrySendError::Closed(_)))
    }
}

async fn write_replies(mut replies: mpsc::Receiver<Vec<u8>>, output: StdioOutput) {
    while let Some(line) = replies.recv().await {
        if output.write_line(&line).await.is_err() {
            return;
        }
    }
}

fn too_busy(id: Value) -> Value {
    let reason = format!(
        "{WAITING_MAX} messages already wait. If this one contained a stop, the stop was carried out. Next: read the answers, then send this message again"
    );
    message_intake::refusal(message_intake::BUSY, Some(id), &reason)
}

fn too_early(id: Option<Value>) -> Value {
    let reason = "send `initialize` first, or name the protocol revision in the request's `_meta`";
    message_intake::refusal(message_intake::INVALID_PARAMS, id, reason)
}

fn too_long(id: Option<Value>) -> Value {
    let reason = format!("the line is longer than {LINE_BYTES_MAX} bytes");
    message_intake::refusal(INVALID_REQUEST, id, &reason)
}

/// Treatment of a message before the protocol is open.
enum HandshakeStep {
    Opens,
    MayCome,
    Dropped,
    TooEarly,
}

impl HandshakeStep {
    fn of(accepted: &AcceptedMessage) -> Self {
        match (accepted.method.as_deref(), &accepted.id) {
            (Some("initialize"), Some(_)) => Self::Opens,
            (Some("ping" | "server/discover"), Some(_)) => Self::MayCome,
            (Some(_), Some(_)) if accepted.stands_alone => Self::Opens,
            (Some(_), Some(_)) => Self::TooEarly,
            _ => Self::Dropped,
        }
    }
}

enum ReadLine {
    /// A line without its end.
    Whole,
    /// Text before the end of input, without a line end.
    Last,
    /// A line longer than the limit; its beginning and its end are kept.
    TooLong,
    End,
}

async fn next_line(input: &mut BufReader<BoxedInput>, line: &mut Vec<u8>) -> ReadLine {
    line.clear();
    let mut too_long = false;
    loop {
        let Ok(chunk) = input.fill_buf().await else {
            return ReadLine::End;
        };
        if chunk.is_empty() {
            return match (too_long, line.is_empty()) {
                (true, _) => ReadLine::TooLong,
                (false, true) => ReadLine::End,
                (false, false) => ReadLine::Last,
            };
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let text = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or(chunk);
        too_long |= line.len() + text.len() > LINE_BYTES_MAX;
        line.extend_from_slice(text);
        if too_long {
            keep_ends(line);
        }
        let used = end.map_or(chunk.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return if too_long {
                ReadLine::TooLong
            } else {
                ReadLine::Whole
            };
        }
    }
}

/// Bytes kept of the beginning and of the end of an overlong line: a call names its tool and its id in one of them.
const KEPT_BYTES: usize = 64 * 1024;

/// Keeps the beginning of a line and, once it has grown enough, only its end.
pub(super) fn keep_ends(line: &mut Vec<u8>) {
    if line.len() > 3 * KEPT_BYTES {
        line.drain(KEPT_BYTES..line.len() - KEPT_BYTES);
    }
}

/// The protocol library's view of the two streams.
struct StdioTransport {
    inbound: mpsc::Receiver<(usize, ClientJsonRpcMessage)>,
    waiting_bytes: Arc<AtomicUsize>,
    has_wide_ids: Arc<AtomicBool>,
    requests: Arc<RequestIds>,
    output: StdioOutput,
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let output = self.output.clone();
        self.requests.end_answered(&message);
        let has_wide_ids = self.has_wide_ids.load(Ordering::Relaxed);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            if has_wide_ids {
                line = wide_ids::restored(line);
            }
            line.push(b'\n');
            output.write_line(&line).await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let (bytes, message) = self.inbound.recv().await?;
        self.waiting_bytes.fetch_sub(bytes, Ordering::SeqCst);
        Some(message)
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.inbound.close();
        Ok(())
    }
}

/// The client's end of the output; clones share it.
#[derive(Clone)]
struct StdioOutput {
    stream: Arc<Mutex<BoxedOutput>>,
    /// Set when a line could not be written: the client no longer reads the answers.
    unread: CancellationToken,
}

impl StdioOutput {
    fn new(stream: BoxedOutput) -> Self {
        Self {
            stream: Arc::new(Mutex::new(stream)),
            unread: CancellationToken::new(),
        }
    }

    async fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let mut stream = self.stream.lock().await;
        let written = async {
            stream.write_all(line).await?;
            stream.flush().await
        };
        let written = written.await;
        if let Err(error) = &written
            && !self.unread.is_cancelled()
        {
            tracing::warn!(%error, "an answer could not be written, so the client counts as disconnected");
            self.unread.cancel();
        }
        written
    }
}
