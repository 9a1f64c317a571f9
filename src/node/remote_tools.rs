//! The way to other MCP servers, for declared tools: connections that are kept, each with its limits.

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

/// The environment variable of the key to the model under examination; other programs never see it.
pub const EXAM_KEY_VARIABLE: &str = "STEADYHAND_API_KEY";

/// Connection of one server, if open. The lock is held while it opens, so that two concurrent calls do not start a
/// program twice. Calls of other servers do not wait for it.
type ConnectionSlot = Arc<Mutex<Option<Arc<RemoteConnection>>>>;

/// A connection, and the program behind it where this process has started one: it ends with the connection.
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
        errand: RemoteToolCall,
        watch: RemoteCallWatch,
    ) -> BoxFuture<'static, Result<ToolAnswer, Refusal>> {
        let slot = self.slot(&errand.server);
        Box::pin(async move {
            let limit_s = errand.server.timeout_s;
            let limit = Duration::from_secs(limit_s.into());
            match tokio::time::timeout(limit, ask(&slot, errand, watch)).await {
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
                        "it did not answer within {limit_s} s (`timeout_s` of its server); it may have acted"
                    ))
                }
            }
        })
    }
}

async fn ask(
    slot: &Mutex<Option<Arc<RemoteConnection>>>,
    errand: RemoteToolCall,
    watch: RemoteCallWatch,
) -> Result<ToolAnswer, ClientError> {
    let open = connection(slot, &errand.server).await?;
    let arguments = ReceivedArguments::Value(Value::Object(errand.arguments));
    let (told, hearing) = hear(watch);
    let answer = open.client.call(&errand.tool, arguments, told).await;
    hearing.abort();
    answer
}

/// Passes progress on for as long as the task lives.
pub fn hear(watch: RemoteCallWatch) -> (CallWatch, tokio::task::JoinHandle<()>) {
    let (sender, mut news) = ProgressSender::pair();
    let told = CallWatch {
        cancelled: watch.cancelled,
        progress: watch.progress.is_some().then_some(sender),
    };
    let hearing = base::task::spawn(async move {
        let Some(progress) = watch.progress else {
            return;
        };
        while news.changed().await.is_ok() {
            let told = news.borrow_and_update().clone();
            progress(told.done, told.total.unwrap_or(0.0), &told.message);
        }
    });
    (told, hearing)
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
    // Its standard error is this process's, so that its complaints are in the node's log.
    let child = spawned(server, program, Stdio::inherit())?;
    opened(child, server, program).await
}

fn spawned(server: &ServerEntry, program: &str, errors: Stdio) -> Result<Child, ClientError> {
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

fn unreachable(program: &str, why: &str) -> ClientError {
    ClientError::Unreachable {
        at: program.to_owned(),
        reason: why.to_owned(),
    }
}

async fn opened(
    mut child: Child,
    server: &ServerEntry,
    program: &str,
) -> Result<RemoteConnection, ClientError> {
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(unreachable(program, "its streams cannot be reached"));
    };
    let limit = Duration::from_secs(server.timeout_s.into());
    let client = client::connect_streams_within(output, input, program, limit).await?;
    Ok(RemoteConnection {
        client,
        _child: Some(child),
    })
}

/// Starts the program of a command line, opens the protocol with it, and ends it: what it calls itself, or why not.
pub async fn greet(command: &str) -> Result<String, Refusal> {
    let server = start_program(command).await?.client.server();
    Ok(server.unwrap_or_default())
}

/// Starts the program of a command line, asks for its tools, and ends it.
pub async fn tools(command: &str) -> Result<Vec<ToolCard>, Refusal> {
    Ok(start_program(command).await?.client.list().await?)
}

/// Starts a server's program. Its standard error is discarded unless it fails: then its last line gives the reason.
async fn start_program(command: &str) -> Result<RemoteConnection, Refusal> {
    let mut words = command.split_whitespace().map(str::to_owned);
    let program = words.next().unwrap_or_default();
    let server = ServerEntry {
        url: None,
        command: Some(program.clone()),
        args: words.collect(),
        timeout_s: config::TIMEOUT_S,
    };
    let mut child = spawned(&server, &program, Stdio::piped())?;
    let errors = child.stderr.take();
    let last = base::task::spawn(last_line(errors));
    match opened(child, &server, &program).await {
        Ok(open) => Ok(open),
        // Its end closes its standard error, unless a program that it has started keeps that open.
        Err(error) => match tokio::time::timeout(LAST_WORDS, last).await {
            Ok(Ok(line)) if !line.is_empty() => Err(refusal!("{error}; it said: {line}")),
            _ => Err(error.into()),
        },
    }
}

/// Time to read the standard error of a failed program.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Longest part of that last line in a message; longest read of any line.
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
