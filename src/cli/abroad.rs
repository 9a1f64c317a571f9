//! The way to other MCP servers, for declared tools: connections that are kept, each with its limits.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::config::ServerEntry;
use crate::mcp::client::{self, Client, ClientError};
use crate::mcp::{self, CallWatch, Progress, ProgressSender, Received, ToolCard};
use crate::tools::{Abroad, Answer, Errand, Watch};

/// Connections by server; at most as many as there are declared tools.
#[derive(Default)]
pub(super) struct Servers(std::sync::Mutex<HashMap<ServerEntry, Slot>>);

/// One server's connection, if it is open. The lock is held while it is opened, so that two calls at once do not start a
/// program twice; whoever calls another server does not wait for it.
type Slot = Arc<Mutex<Option<Arc<Open>>>>;

/// A connection, and the program behind it where this process has started one: it ends with the connection.
struct Open {
    client: Client,
    _child: Option<Child>,
}

impl Servers {
    fn slot(&self, server: &ServerEntry) -> Slot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(server.clone()).or_default())
    }
}

impl Abroad for Servers {
    fn call(&self, errand: Errand, watch: Watch) -> BoxFuture<'static, Result<Answer, String>> {
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
                    Err(error.to_string())
                }
                Err(_) => {
                    slot.lock().await.take();
                    Err(format!(
                        "it did not answer within {limit_s} s (`timeout_s` of its server); it may have acted"
                    ))
                }
            }
        })
    }
}

async fn ask(
    slot: &Mutex<Option<Arc<Open>>>,
    errand: Errand,
    watch: Watch,
) -> Result<Answer, ClientError> {
    let open = connection(slot, &errand.server).await?;
    let arguments = Received::Value(Value::Object(errand.arguments));
    let (told, hearing) = hear(watch);
    let answer = open.client.call(&errand.tool, arguments, told).await;
    hearing.abort();
    Ok(from_abroad(answer?))
}

/// An answer as the tools know it.
pub(super) fn from_abroad(answer: mcp::Answer) -> Answer {
    Answer {
        structured: answer.structured,
        text: answer.text,
        is_error: answer.is_error,
        images: answer.images,
    }
}

/// Passes progress on for as long as the task lives.
pub(super) fn hear(watch: Watch) -> (CallWatch, tokio::task::JoinHandle<()>) {
    let (sender, mut news) = ProgressSender::pair();
    let told = CallWatch {
        cancelled: watch.cancelled,
        progress: watch.progress.is_some().then_some(sender),
    };
    let hearing = tokio::spawn(async move {
        let Some(progress) = watch.progress else {
            return;
        };
        while news.changed().await.is_ok() {
            let Progress {
                done,
                total,
                message,
            } = news.borrow_and_update().clone();
            progress(done, total.unwrap_or(0.0), &message);
        }
    });
    (told, hearing)
}

async fn connection(
    slot: &Mutex<Option<Arc<Open>>>,
    server: &ServerEntry,
) -> Result<Arc<Open>, ClientError> {
    let mut slot = slot.lock().await;
    if let Some(open) = slot.as_ref().filter(|open| !open.client.is_closed()) {
        return Ok(Arc::clone(open));
    }
    let open = Arc::new(open(server).await?);
    *slot = Some(Arc::clone(&open));
    Ok(open)
}

async fn open(server: &ServerEntry) -> Result<Open, ClientError> {
    let Some(program) = &server.command else {
        let url = server.url.as_deref().unwrap_or_default();
        return Ok(Open {
            client: client::connect(url).await?,
            _child: None,
        });
    };
    let failed = |why: String| ClientError::Unreachable {
        at: program.clone(),
        why,
    };
    // Its standard error is this process's, so that its complaints are in the node's log.
    let mut child = Command::new(program)
        .args(&server.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("its streams cannot be reached".to_owned()));
    };
    let limit = Duration::from_secs(server.timeout_s.into());
    let client = client::over_within(output, input, program, limit).await?;
    Ok(Open {
        client,
        _child: Some(child),
    })
}

/// Starts the program of a command line, opens the protocol with it, and ends it: what it calls itself, or why not.
pub(super) async fn greet(command: &str) -> Result<String, String> {
    Ok(started(command).await?.client.server().unwrap_or_default())
}

/// Starts the program of a command line, asks for its tools, and ends it.
pub(super) async fn tools(command: &str) -> Result<Vec<ToolCard>, String> {
    let listed = started(command).await?.client.list().await;
    listed.map_err(|error| error.to_string())
}

async fn started(command: &str) -> Result<Open, String> {
    let mut words = command.split_whitespace().map(str::to_owned);
    let server = ServerEntry {
        url: None,
        command: words.next(),
        args: words.collect(),
        timeout_s: crate::config::TIMEOUT_S,
    };
    open(&server).await.map_err(|error| error.to_string())
}
