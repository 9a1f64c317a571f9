//! Connections to other MCP servers, for declared tools. They are kept open, each with its limits.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::Mutex;

use base::lock::MutexExt;
use base::wording::cut;
use call::{Refusal, refusal};
use config::ServerEntry;
use mcp::client::{self, ClientError, McpClient};
use mcp::{self, CallWatch, ProgressSender, ReceivedArguments, ToolCard};
use tools::{RemoteCallWatch, RemoteToolCall, RemoteTools, ToolAnswer};

/// Connections by server; at most as many as there are declared tools.
#[derive(Default)]
pub struct RemoteServers(std::sync::Mutex<HashMap<ServerEntry, ConnectionSlot>>);

/// Environment variable with the key to the model under examination. Other programs never get it.
pub const EXAM_KEY_VARIABLE: &str = "STEADYHAND_API_KEY";

/// Connection of one server, if open. The lock is held while it opens, so that two concurrent calls do not start a
/// program twice. Calls of other servers do not wait for it.
type ConnectionSlot = Arc<Mutex<Option<Arc<RemoteConnection>>>>;

/// A connection, and the program behind it if this process started one. The program ends with the connection.
struct RemoteConnection {
    client: McpClient,
    _child: Option<Child>,
}

impl RemoteServers {
    fn slot(&self, server: &ServerEntry) -> ConnectionSlot {
        let mut slots = self.0.locked();
        Arc::clone(slots.entry(server.clone()).or_default())
    }
}

impl RemoteTools for RemoteServers {
    fn call(
        &self,
        request: RemoteToolCall,
        watch: RemoteCallWatch,
    ) -> BoxFuture<'static, Result<ToolAnswer, Refusal>> {
        let slot = self.slot(&request.server);
        Box::pin(async move {
            let limit_s = request.server.timeout_s;
            let limit = Duration::from_secs(limit_s.into());
            match tokio::time::timeout(limit, call_server(&slot, request, watch)).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(error)) => {
                    if !matches!(error, ClientError::Refused { .. } | ClientError::Cancelled) {
                        slot.lock().await.take();
                    }
                    Err(error.into())
                }
                Err(_) => {
                    slot.lock().await.take();
                    Err(refusal!(
                        "it did not answer within {limit_s} s (`timeout_s` of its server), but it may have acted"
                    ))
                }
            }
        })
    }
}

async fn call_server(
    slot: &Mutex<Option<Arc<RemoteConnection>>>,
    request: RemoteToolCall,
    watch: RemoteCallWatch,
) -> Result<ToolAnswer, ClientError> {
    let open = connection(slot, &request.server).await?;
    let arguments = ReceivedArguments::Value(Value::Object(request.arguments));
    let (call_watch, forwarding) = forward_progress(watch);
    let answer = open.client.call(&request.tool, arguments, call_watch).await;
    forwarding.abort();
    answer
}

/// Forwards progress to `watch` for as long as the task lives.
pub fn forward_progress(watch: RemoteCallWatch) -> (CallWatch, tokio::task::JoinHandle<()>) {
    let (sender, mut updates) = ProgressSender::pair();
    let call_watch = CallWatch {
        cancelled: watch.cancelled,
        progress: watch.progress.is_some().then_some(sender),
    };
    let forwarding = base::task::spawn(async move {
        let Some(progress) = watch.progress else {
            return;
        };
        while updates.changed().await.is_ok() {
            let update = updates.borrow_and_update().clone();
            progress(update.done, update.total.unwrap_or(0.0), &update.message);
        }
    });
    (call_watch, forwarding)
}

async fn connection(
    slot: &Mutex<Option<Arc<RemoteConnection>>>,
    server: &ServerEntry,
) -> Result<Arc<RemoteConnection>, ClientError> {
    let mut slot = slot.lock().await;
    if let Some(open) = slot.as_ref().filter(|open| !open.client.is_closed()) {
        return Ok(Arc::clone(open));
    }
    let open = Arc::new(open(server).await?);
    *slot = Some(Arc::clone(&open));
    Ok(open)
}

async fn open(server: &ServerEntry) -> Result<RemoteConnection, ClientError> {
    let Some(program) = &server.command else {
        let url = server.url.as_deref().unwrap_or_default();
        return Ok(RemoteConnection {
            client: client::connect(url).await?,
            _child: None,
        });
    };
    // It inherits standard error, so that its errors appear in the node's log.
    let child = spawn_program(server, program, Stdio::inherit())?;
    connect_program(child, server, program).await
}

fn spawn_program(server: &ServerEntry, program: &str, errors: Stdio) -> Result<Child, ClientError> {
    let spawned = Command::new(program)
        .args(&server.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors)
        .env_remove(EXAM_KEY_VARIABLE)
        .kill_on_drop(true)
        .spawn();
    spawned.map_err(|error| unreachable(program, &error.to_string()))
}

fn unreachable(program: &str, reason: &str) -> ClientError {
    ClientError::Unreachable {
        at: program.to_owned(),
        reason: reason.to_owned(),
    }
}

async fn connect_program(
    mut child: Child,
    server: &ServerEntry,
    program: &str,
) -> Result<RemoteConnection, ClientError> {
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(unreachable(
            program,
            "its standard input and output cannot be opened",
        ));
    };
    let limit = Duration::from_secs(server.timeout_s.into());
    let client = client::connect_streams_within(output, input, program, limit).await?;
    Ok(RemoteConnection {
        client,
        _child: Some(child),
    })
}

/// Starts the program of a command line, initialises MCP with it, and ends it. Returns the name that it gives itself.
pub async fn greet(command: &str) -> Result<String, Refusal> {
    let server = start_program(command).await?.client.server();
    Ok(server.unwrap_or_default())
}

/// Starts the program of a command line, lists its tools, and ends it.
pub async fn tools(command: &str) -> Result<Vec<ToolCard>, Refusal> {
    Ok(start_program(command).await?.client.list().await?)
}

/// Starts a server's program. Its standard error is discarded unless it fails: then its last line gives the reason.
async fn start_program(command: &str) -> Result<RemoteConnection, Refusal> {
    let mut parts = command.split_whitespace().map(str::to_owned);
    let program = parts.next().unwrap_or_default();
    let server = ServerEntry {
        url: None,
        command: Some(program.clone()),
        args: parts.collect(),
        timeout_s: config::TIMEOUT_S,
    };
    let mut child = spawn_program(&server, &program, Stdio::piped())?;
    let errors = child.stderr.take();
    let last_line_reader = base::task::spawn(last_line(errors));
    match connect_program(child, &server, &program).await {
        Ok(open) => Ok(open),
        // When it ends, its standard error closes, unless a program that it started keeps it open.
        Err(error) => match tokio::time::timeout(LAST_LINE_WAIT, last_line_reader).await {
            Ok(Ok(line)) if !line.is_empty() => Err(refusal!("{error}; it said: {line}")),
            _ => Err(error.into()),
        },
    }
}

/// Time to read the standard error of a failed program.
const LAST_LINE_WAIT: Duration = Duration::from_millis(200);

/// Longest part of the last line in a message, and longest read of any line.
const LINE_CHARS_MAX: usize = 200;
const LINE_BYTES_MAX: u64 = 4096;

/// Returns the last line, truncated. Reads everything, so that the program does not block on a full pipe.
async fn last_line(errors: Option<ChildStderr>) -> String {
    let (mut last, mut line) = (String::new(), Vec::new());
    let Some(errors) = errors else {
        return last;
    };
    let mut errors = BufReader::new(errors);
    loop {
        line.clear();
        let mut part = (&mut errors).take(LINE_BYTES_MAX);
        match part.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return last,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                if !text.trim().is_empty() {
                    last = cut(text.trim(), LINE_CHARS_MAX);
                }
            }
        }
    }
}
