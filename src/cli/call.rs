//! `call`: a tool call as any MCP client makes it, with a progress bar.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::changes::Changes;
use super::desk::NodeDesk;
use super::keys::Keys;
use super::open::{self, Pace};
use super::peers::read_token;
use super::{CallArgs, Exit, NodeArgs, show};
use crate::mcp::client::{self, Client, ClientError};
use crate::mcp::{Answer, CallWatch, Progress, ProgressSender, Received};

pub(super) async fn run(node: &NodeArgs, args: CallArgs) -> anyhow::Result<Exit> {
    let at = node;
    // The node, if it is ours, outlives the call: its arm is stopped when it goes.
    let own = match &args.node {
        Some(_) => None,
        None => {
            let watched = is_watched(args.json);
            let node = open::node(node, if watched { Pace::Watched } else { Pace::Fast })?;
            open::enable(&node, &args.enable)?;
            node.note_start();
            Changes::since_last(&node, at);
            Some(node)
        }
    };
    let client = match (&own, &args.node) {
        (Some(node), _) => client::in_process(Arc::new(NodeDesk::new(node))).await?,
        (None, url) => {
            let token = args.token_file.as_deref().map(read_token).transpose();
            let url = with_path(url.as_deref().unwrap_or_default());
            client::connect_as(&url, token.map_err(anyhow::Error::msg)?).await?
        }
    };
    let answer = call(&client, &args).await;
    client.close().await;
    if let Some(node) = &own {
        node.audit.flush();
    }
    let answer = answer?;
    print(&answer, args.json);
    Ok(if answer.is_error {
        Exit::Refused
    } else {
        Exit::Done
    })
}

/// An address without a path means the usual one.
fn with_path(url: &str) -> String {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    if after_scheme.contains('/') {
        url.to_owned()
    } else {
        format!("{url}/mcp")
    }
}

async fn call(client: &Client, args: &CallArgs) -> anyhow::Result<Answer> {
    let arguments = args
        .arguments
        .as_deref()
        .map_or(Received::Absent, client::as_typed);
    let (sender, mut news) = ProgressSender::pair();
    let cancelled = CancellationToken::new();
    let watch = CallWatch {
        cancelled: cancelled.clone(),
        progress: Some(sender),
    };
    let bar = bar(&args.tool, args.json);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut keys = Keys::watched(is_watched(args.json));
    let mut call = std::pin::pin!(client.call(&args.tool, arguments, watch));
    let answer = loop {
        tokio::select! {
            answer = &mut call => break answer,
            Ok(()) = news.changed() => show_progress(&bar, &news.borrow_and_update()),
            // The server stops the arm when its caller gives up.
            Ok(()) = tokio::signal::ctrl_c() => cancelled.cancel(),
            () = keys.stop() => cancelled.cancel(),
            _ = terminate.recv() => cancelled.cancel(),
            _ = hang_up.recv() => cancelled.cancel(),
        }
    };
    drop(keys);
    bar.finish_and_clear();
    match answer {
        // Given up, and so stopped: whoever gave up is told that the arm stands, or that it does not.
        Err(ClientError::Cancelled) => Ok(Answer {
            is_error: true,
            ..client.call("stop", Received::Absent, unwatched()).await?
        }),
        answer => Ok(answer?),
    }
}

/// Nobody gives up a stop.
fn unwatched() -> CallWatch {
    CallWatch {
        cancelled: CancellationToken::new(),
        progress: None,
    }
}

/// Whether a person sees the bar.
fn is_watched(json: bool) -> bool {
    !json && std::io::stderr().is_terminal()
}

fn bar(tool: &str, json: bool) -> ProgressBar {
    let target = if is_watched(json) {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{prefix} {spinner} {msg}") {
        bar.set_style(style);
    }
    let prefix = format!("{tool} (space, q or Ctrl-C stops)");
    bar.set_prefix(show::harmless(&prefix).into_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; for a bar only"
)]
fn show_progress(bar: &ProgressBar, progress: &Progress) {
    if let Some(total) = progress.total {
        bar.set_length(total.round() as u64);
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:24}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
    }
    bar.set_position(progress.done.round() as u64);
    bar.set_message(show::harmless(&progress.message).into_owned());
}

fn print(answer: &Answer, json: bool) {
    if json {
        let text = serde_json::to_string_pretty(&answer.structured).unwrap_or_default();
        show::line(&text);
        return;
    }
    show::line(&answer.text);
    show::facts(&answer.structured);
}
