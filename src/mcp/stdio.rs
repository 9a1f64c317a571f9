//! The way in by standard input and output: one message a line.
//!
//! Our own task reads the lines, so that a broken one is answered, a first message out of turn does not end the process,
//! and the end of input is known at once and not after the protocol library's five seconds of waiting for answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use call::EntryPoint;
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

use super::cancellation::{CANCELLED, RecentIds};
use super::long_messages::HERE_BYTES_MAX;
use super::message_intake::{
    self, AcceptedMessage, INVALID_REQUEST, MessageIntake, MessageRepair, TakenCall,
};
use super::server::{McpHandler, call_request};
use super::service_trait::McpService;
use super::stray_stop;
use super::wide_ids;

/// Longest line that is read; a longer one is refused and skipped.
pub const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Messages that wait for the protocol library. Reading never waits for it: a stop, or the end of input, is seen at once
/// however much waits. What does not fit is answered so.
const WAITING_MAX: usize = 1024;

/// And their bytes.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Answers of the reader's own that wait to be written. A client that takes none of them loses those that do not fit.
const REPLIES_MAX: usize = 256;

/// Time for which a client may still take the last answers.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Reason why serving a pair of streams ended early.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The opening of the protocol failed.
    #[error("the client and this server could not open the protocol: {0}")]
    Opening(String),
    /// The protocol's task broke.
    #[error("the protocol's task broke: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// Serves standard input and output until input ends or `stop` is set.
///
/// `ended` runs as soon as input has ended, before anything else: the arm stops there.
///
/// # Errors
/// See [`StdioError`]. The end of input is not an error.
pub async fn serve(
    desk: Arc<dyn McpService>,
    repair: MessageRepair,
    ended: impl FnOnce() + Send + 'static,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let pipes = rmcp::transport::stdio_pipes();
    serve_on(desk, EntryPoint::Stdio, repair, pipes, ended, stop).await
}

/// Serves any pair of streams as [`serve`] does standard input and output.
///
/// # Errors
/// See [`StdioError`].
pub async fn serve_on<R, W>(
    desk: Arc<dyn McpService>,
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
    serve_streams(desk, via, repair, streams, stop).await
}

pub(super) type BoxedInput = Box<dyn AsyncRead + Send + Unpin>;

pub(super) type BoxedOutput = Box<dyn AsyncWrite + Send + Unpin>;

/// A pair of streams of any kind.
struct StdioStreams {
    input: BoxedInput,
    output: BoxedOutput,
    ended: Box<dyn FnOnce() + Send>,
}

/// Boxed, so that it is compiled here once and not wherever it is awaited.
fn serve_streams(
    desk: Arc<dyn McpService>,
    via: EntryPoint,
    repair: MessageRepair,
    streams: StdioStreams,
    stop: CancellationToken,
) -> BoxFuture<'static, Result<(), StdioError>> {
    let served = async move {
        let gone = CancellationToken::new();
        let output = Arc::new(Mutex::new(streams.output));
        let (forward, inbound) = mpsc::channel(WAITING_MAX);
        let (replies, answers) = mpsc::channel(REPLIES_MAX);
        let writing = tokio::spawn(write_replies(answers, output.clone()).boxed());
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let has_wide_ids = Arc::new(AtomicBool::new(false));
        let reader = StdioReader {
            repair,
            desk: Arc::clone(&desk),
            replies,
            forward,
            waiting_bytes: Arc::clone(&waiting_bytes),
            has_wide_ids: Arc::clone(&has_wide_ids),
            recent: RecentIds::default(),
            opened: false,
        };
        let end = gone.clone();
        let reading = async move {
            reader.run(streams.input).await;
            (streams.ended)();
            end.cancel();
        };
        let reading = tokio::spawn(reading.boxed());
        let handler = McpHandler::new(desk, via).ending_with(gone);
        let lines = StdioTransport {
            inbound,
            waiting_bytes,
            has_wide_ids,
            output,
        };
        let served = run(handler, lines, stop).await;
        reading.abort();
        // What the reader answered last is still written, to a client that still reads.
        let _ = tokio::time::timeout(LAST_WORDS, writing).await;
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

/// Reads lines, answers what cannot go on, forwards the rest.
struct StdioReader {
    repair: MessageRepair,
    desk: Arc<dyn McpService>,
    replies: mpsc::Sender<Vec<u8>>,
    forward: mpsc::Sender<(usize, ClientJsonRpcMessage)>,
    waiting_bytes: Arc<AtomicUsize>,
    /// Set at the first id that stands for a number: from then on what is written is searched for them.
    has_wide_ids: Arc<AtomicBool>,
    /// Meanings of a cancellation.
    recent: RecentIds,
    /// True if the client has opened the protocol. Until then only requests may come; anything else would end the server.
    opened: bool,
}

impl StdioReader {
    /// Reads until input has ended or no client listens any more.
    async fn run(mut self, input: BoxedInput) {
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        loop {
            let on = match next_line(&mut input, &mut line).await {
                ReadLine::Whole => self.take(&mut line).await,
                ReadLine::TooLong => self.overlong(&line),
                ReadLine::Last => {
                    self.take(&mut line).await;
                    false
                }
                ReadLine::End => false,
            };
            if !on {
                return;
            }
        }
    }

    /// Handles one line. Returns `false` when no client listens any more.
    async fn take(&mut self, line: &mut Vec<u8>) -> bool {
        match self.admit(line).await {
            MessageIntake::Nothing => true,
            MessageIntake::Reply(reply) => self.reply(&reply),
            MessageIntake::Pass(passed) => self.pass(passed),
        }
    }

    /// Judges one line; a long one, whose bytes are taken, on another thread, so that no other client's stop waits behind it.
    async fn admit(&self, line: &mut Vec<u8>) -> MessageIntake {
        if line.len() <= HERE_BYTES_MAX {
            return stray_stop::admit(line, self.repair, self.desk.as_ref(), None);
        }
        let (line, repair) = (std::mem::take(line), self.repair);
        let desk = Arc::clone(&self.desk);
        let judging = tokio::task::spawn_blocking(move || {
            stray_stop::admit(&line, repair, desk.as_ref(), None)
        });
        let broken = |_| MessageIntake::Reply(message_intake::broken());
        judging.await.unwrap_or_else(broken)
    }

    /// Refuses a line that is too long, but does not lose a stop in what was kept of it.
    fn overlong(&self, kept: &[u8]) -> bool {
        let refusal = too_long(message_intake::id_in_broken(kept));
        match stray_stop::is_heard_in(kept, self.desk.as_ref(), None) {
            true => self.reply(&stray_stop::add_stop_notice(refusal)),
            false => self.reply(&refusal),
        }
    }

    fn pass(&mut self, mut passed: AcceptedMessage) -> bool {
        if !self.opened {
            match HandshakeStep::of(&passed) {
                HandshakeStep::Opens => self.opened = true,
                HandshakeStep::MayCome => {}
                HandshakeStep::Dropped => return true,
                HandshakeStep::TooEarly => return self.too_early(passed),
            }
        }
        match (&passed.id, passed.method.as_deref()) {
            (Some(id), Some(_)) => {
                if wide_ids::is_stand_in(id) {
                    self.has_wide_ids.store(true, Ordering::Relaxed);
                }
                self.recent.note(id);
            }
            (None, Some(CANCELLED)) => self.recent.settle(&mut passed.message),
            _ => {}
        }
        let call = passed.take_call();
        if let Some(call) = &call {
            self.desk.preempt_stop(&call.tool, &call.arguments, None);
        }
        let message = std::mem::take(&mut passed.message);
        // The library tries one of its types after the other; what a call is, is known already.
        let message = match call {
            Some(call) => call_request(call, message),
            None => ClientJsonRpcMessage::deserialize(message),
        };
        match message {
            Ok(message) => self.forward(passed, message),
            Err(error) => {
                let why = format!("the message is no request: {error}");
                self.reply(&message_intake::refusal(INVALID_REQUEST, passed.id, &why))
            }
        }
    }

    /// Refuses a request before the protocol is open, but does not lose a stop.
    fn too_early(&self, mut passed: AcceptedMessage) -> bool {
        let call = passed.take_call();
        let refusal = too_early(passed.id);
        let stops = |call: TakenCall| {
            self.desk.stray_stop(&call.tool, None)
                || self.desk.preempt_stop(&call.tool, &call.arguments, None)
        };
        match call.is_some_and(stops) {
            true => self.reply(&stray_stop::add_stop_notice(refusal)),
            false => self.reply(&refusal),
        }
    }

    /// Puts a message into the queue, or says that it is full.
    fn forward(&self, passed: AcceptedMessage, message: ClientJsonRpcMessage) -> bool {
        let bytes = passed.length;
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::SeqCst);
        if before + bytes <= WAITING_BYTES_MAX {
            match self.forward.try_send((bytes, message)) {
                Ok(()) => return true,
                Err(TrySendError::Closed(_)) => return false,
                Err(TrySendError::Full(_)) => {}
            }
        }
        self.waiting_bytes.fetch_sub(bytes, Ordering::SeqCst);
        if passed.method.as_deref() == Some(CANCELLED) {
            self.desk.abort_motion();
        }
        passed.id.is_none_or(|id| self.reply(&too_busy(id)))
    }

    /// Never waits: a client that reads nothing gets nothing.
    fn reply(&self, reply: &Value) -> bool {
        let mut line = wide_ids::restored(reply.to_string().into_bytes());
        line.push(b'\n');
        !matches!(self.replies.try_send(line), Err(TrySendError::Closed(_)))
    }
}

async fn write_replies(mut replies: mpsc::Receiver<Vec<u8>>, output: Arc<Mutex<BoxedOutput>>) {
    while let Some(line) = replies.recv().await {
        if write_line(&output, &line).await.is_err() {
            return;
        }
    }
}

fn too_busy(id: Value) -> Value {
    let why = format!(
        "{WAITING_MAX} messages wait already; read the answers, then send this again; a stop was heard nevertheless"
    );
    message_intake::refusal(message_intake::BUSY, Some(id), &why)
}

fn too_early(id: Option<Value>) -> Value {
    let why = "send `initialize` first, or name the protocol revision in the request's own `_meta`";
    message_intake::refusal(message_intake::INVALID_PARAMS, id, why)
}

fn too_long(id: Option<Value>) -> Value {
    let why = format!("the line is longer than {LINE_BYTES_MAX} bytes");
    message_intake::refusal(INVALID_REQUEST, id, &why)
}

/// Treatment of a message before the protocol is open.
enum HandshakeStep {
    Opens,
    MayCome,
    Dropped,
    TooEarly,
}

impl HandshakeStep {
    fn of(passed: &AcceptedMessage) -> Self {
        match (passed.method.as_deref(), &passed.id) {
            (Some("initialize"), Some(_)) => Self::Opens,
            (Some("ping" | "server/discover"), Some(_)) => Self::MayCome,
            (Some(_), Some(_)) if passed.stands_alone => Self::Opens,
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
    /// More than is read; its beginning and its end are kept.
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

/// Bytes of the beginning and of the end of a line that is too long: a call names its tool and its id in one of them.
const KEPT_BYTES: usize = 64 * 1024;

/// Leaves the beginning of a line and, now and then, no more than its end.
fn keep_ends(line: &mut Vec<u8>) {
    if line.len() > 3 * KEPT_BYTES {
        line.drain(KEPT_BYTES..line.len() - KEPT_BYTES);
    }
}

/// The protocol library's view of the two streams.
struct StdioTransport {
    inbound: mpsc::Receiver<(usize, ClientJsonRpcMessage)>,
    waiting_bytes: Arc<AtomicUsize>,
    has_wide_ids: Arc<AtomicBool>,
    output: Arc<Mutex<BoxedOutput>>,
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let output = self.output.clone();
        let has_wide_ids = self.has_wide_ids.load(Ordering::Relaxed);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            if has_wide_ids {
                line = wide_ids::restored(line);
            }
            line.push(b'\n');
            write_line(&output, &line).await
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

async fn write_line(output: &Mutex<BoxedOutput>, line: &[u8]) -> io::Result<()> {
    let mut output = output.lock().await;
    output.write_all(line).await?;
    output.flush().await
}
