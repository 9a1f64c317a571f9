//! `call`: a tool call as any MCP client makes it, with a progress bar.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Map;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::stop_keys::StopKeyListener;
use super::{ExitStatus, NodeOptions, terminal_output};
use mcp::client::{self, ClientError, McpClient};
use mcp::http_client;
use mcp::{CallProgress, CallWatch, ProgressSender, ReceivedArguments, ToolAnswer};
use node::config_changes::ConfigWatcher;
use node::mcp_service::NodeMcpService;
use node::open::{self, SimulationRate};
use node::parking;
use node::peers::read_token;
use node::serve::{self, ShutdownRequests};
use permit::ActorRank;
use tools::Node;

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// The tool, such as stroke
    tool: String,
    /// Its arguments, sent as typed: `{"scene":"letters"}`, or anything that a model might send
    arguments: Option<String>,
    /// Another node, such as 127.0.0.1:8700, instead of one in this process
    #[arg(long, value_name = "URL")]
    node: Option<String>,
    /// The file that holds the token for that node
    #[arg(long, value_name = "FILE", requires = "node")]
    token_file: Option<PathBuf>,
    /// Print the structured result alone
    #[arg(long)]
    json: bool,
    /// Scenes to enable first, where the arm is not the embedded simulator
    #[arg(long, value_name = "SCENE", num_args = 1..)]
    enable: Vec<String>,
}

/// HTTP status of a request that wants a token and has none.
const UNAUTHORIZED: u16 = 401;

pub(super) async fn run(node: &NodeOptions, args: CallArgs) -> anyhow::Result<ExitStatus> {
    let at = node;
    // The node, if it is ours, outlives the call: its arm is stopped when it goes.
    let own = match &args.node {
        Some(_) => None,
        None => {
            let watched = shows_progress(args.json);
            let node = open::node(
                node,
                if watched {
                    SimulationRate::Watched
                } else {
                    SimulationRate::Fast
                },
            )?;
            open::enable(&node, &args.enable)?;
            node.note_start();
            ConfigWatcher::since_last(&node, at);
            Some(node)
        }
    };
    let client = match (&own, &args.node) {
        (Some(node), _) => client::in_process(Arc::new(NodeMcpService::new(node))).await?,
        (None, url) => {
            let url = whole_address(url.as_deref().unwrap_or_default());
            connect(&url, args.token_file.as_deref()).await?
        }
    };
    if let Some(node) = &own {
        escalate_second_interrupt(node)?;
    }
    let called = call(&client, &args, own.as_deref()).await;
    client.close().await;
    let leaves = called
        .as_ref()
        .map_or(None, |called| called.leaves.as_ref());
    let ended = match &own {
        Some(node) => end(node, leaves).await,
        None => ExitStatus::Done,
    };
    let called = called?;
    let answer = called.answer.unwrap_or_else(|| interrupted_answer(ended));
    print(&answer, args.json);
    Ok(match ended {
        ExitStatus::Done if answer.is_error => ExitStatus::Refused,
        ended => ended,
    })
}

/// Outcome of a call.
struct CallOutcome {
    /// None where the process was told to end before there was one.
    answer: Option<ToolAnswer>,
    /// The arms of a node of its own, when the process was told to end.
    leaves: Option<ShutdownRequests>,
}

/// A second interrupt is an emergency stop, here as in a node that serves.
fn escalate_second_interrupt(node: &Arc<Node>) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let node = Arc::clone(node);
    tokio::spawn(async move {
        interrupt.recv().await;
        interrupt.recv().await;
        node.stop_all(ActorRank::Operator, true);
    });
    Ok(())
}

/// Brings a node of one call to its end: its arm is parked where the process was told to end, and
/// all that was under way is in its journal.
async fn end(node: &Arc<Node>, leaves: Option<&ShutdownRequests>) -> ExitStatus {
    let ended = match leaves {
        Some(leaves) => serve::end(node, Some(leaves)).await,
        None => ExitStatus::Done,
    };
    serve::close(node).await;
    node.audit.note_end(format!("{ended:?}"));
    for seat in node.seats.iter().filter(|seat| parking::stays_up(seat)) {
        terminal_output::note(&format!(
            "{}: the arm is still energised where it stands",
            seat.name
        ));
    }
    ended
}

/// The answer to a call that was given up because the process was told to end.
fn interrupted_answer(ended: ExitStatus) -> ToolAnswer {
    let text = match ended {
        ExitStatus::Energised => {
            "told to end: the arm was stopped and is still energised where it stands"
        }
        ExitStatus::Broken => "told to end: the arm's standstill could not be verified: look at it",
        ExitStatus::Done | ExitStatus::Refused | ExitStatus::Absent => {
            "told to end: the arm was stopped and is at rest"
        }
    };
    let mut structured = Map::new();
    structured.insert("success".to_owned(), false.into());
    structured.insert("message".to_owned(), text.into());
    ToolAnswer {
        is_error: true,
        structured,
        text: text.to_owned(),
        ..ToolAnswer::default()
    }
}

/// Returns the whole address of a node: `HOST:PORT` is what people type, and a path that is not said is the usual one.
fn whole_address(said: &str) -> String {
    let said = said.trim();
    let (scheme, rest) = said.split_once("://").unwrap_or(("http", said));
    match rest.trim_end_matches('/') {
        host if host.contains('/') => format!("{scheme}://{rest}"),
        host => format!("{scheme}://{host}/mcp"),
    }
}

/// Opens the protocol with a node elsewhere. A refusal for want of a token names the option that sends one.
async fn connect(url: &str, token_file: Option<&Path>) -> anyhow::Result<McpClient> {
    let token = token_file.map(read_token).transpose();
    let token = token.map_err(anyhow::Error::msg)?;
    let has_token = token.is_some();
    let error = match client::connect_as(url, token).await {
        Ok(client) => return Ok(client),
        Err(error) => error,
    };
    // The protocol library keeps no status; the same address says it to a plain request.
    if !has_token && let Ok((UNAUTHORIZED, _)) = http_client::json(url, None, None).await {
        bail!(
            "{url} wants a token: make one there with `steadyhand token add NAME`, write it into a file, and call again with --token-file FILE"
        );
    }
    bail!("{}", in_plain_words(&error.to_string()))
}

/// Returns an error without the protocol's name and number of it, which say less than the words that follow.
fn in_plain_words(error: &str) -> String {
    let named = error.split_once("JSON-RPC error: ");
    let words = named.and_then(|(at, rest)| Some(format!("{at}{}", rest.split_once(": ")?.1)));
    words.unwrap_or_else(|| error.to_owned())
}

async fn call(
    client: &McpClient,
    args: &CallArgs,
    own: Option<&Node>,
) -> anyhow::Result<CallOutcome> {
    let arguments = args
        .arguments
        .as_deref()
        .map_or(ReceivedArguments::Absent, client::arguments_from_text);
    let (sender, mut news) = ProgressSender::pair();
    let cancelled = CancellationToken::new();
    let watch = CallWatch {
        cancelled: cancelled.clone(),
        progress: Some(sender),
    };
    let bar = bar(&args.tool, args.json);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut keys = StopKeyListener::listen(shows_progress(args.json));
    let mut call = std::pin::pin!(client.call(&args.tool, arguments, watch));
    let mut leaves = None;
    let answer = loop {
        tokio::select! {
            answer = &mut call => break answer,
            Ok(()) = news.changed() => show_progress(&bar, &news.borrow_and_update()),
            // The server stops the arm when its caller gives up.
            Ok(()) = tokio::signal::ctrl_c() => cancelled.cancel(),
            () = keys.stop() => cancelled.cancel(),
            _ = terminate.recv() => {
                // As they were before they are stopped for it.
                leaves = leaves.or_else(|| own.map(serve::leaves));
                cancelled.cancel();
            }
            _ = hang_up.recv() => cancelled.cancel(),
        }
    };
    drop(keys);
    bar.finish_and_clear();
    let answer = match answer {
        Err(ClientError::Cancelled) if leaves.is_some() => None,
        // Given up, and so stopped: whoever gave up is told that the arm stands, or that it does not.
        Err(ClientError::Cancelled) => Some(ToolAnswer {
            is_error: true,
            ..client
                .call("stop", ReceivedArguments::Absent, uncancellable_watch())
                .await?
        }),
        answer => Some(answer?),
    };
    Ok(CallOutcome { answer, leaves })
}

/// Returns a watch that never cancels.
fn uncancellable_watch() -> CallWatch {
    CallWatch {
        cancelled: CancellationToken::new(),
        progress: None,
    }
}

/// Returns whether a person sees the progress bar.
fn shows_progress(json: bool) -> bool {
    !json && std::io::stderr().is_terminal()
}

fn bar(tool: &str, json: bool) -> ProgressBar {
    let target = if shows_progress(json) {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{prefix} {spinner} {msg}") {
        bar.set_style(style);
    }
    let prefix = format!("{tool} (space, q or Ctrl-C stops)");
    bar.set_prefix(terminal_output::harmless(&prefix).into_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; for a bar only"
)]
fn show_progress(bar: &ProgressBar, progress: &CallProgress) {
    if let Some(total) = progress.total {
        bar.set_length(total.round() as u64);
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:24}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
    }
    bar.set_position(progress.done.round() as u64);
    bar.set_message(terminal_output::harmless(&progress.message).into_owned());
}

fn print(answer: &ToolAnswer, json: bool) {
    if json {
        let text = serde_json::to_string_pretty(&answer.structured).unwrap_or_default();
        terminal_output::line(&text);
        return;
    }
    terminal_output::line(&answer.text);
    terminal_output::facts(&answer.structured);
}
