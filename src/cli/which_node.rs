//! The running node that a command means: the one that is named, the one of a node file, the only one, or the one that a person
//! picks.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt as _};

use super::{
    AtArgs, ExitStatus, NodeOptions, given_options, operator_client, questions, terminal_output,
};
use node::open;
use node::operator_verb::{OperatorVerb, VerbReply};
use node::running_nodes::{self, RunningNode};

/// Finds the node that is meant, and says which it is before anything is asked of it; `None` where none of that kind runs.
///
/// # Errors
/// Several run and no person is there to pick one.
pub(super) async fn find(options: &NodeOptions, at: &AtArgs) -> anyhow::Result<Option<AtArgs>> {
    if at.is_named() {
        return Ok(Some(at.clone()));
    }
    let found = candidates(options).await?;
    let node = match found.as_slice() {
        [] => return Ok(None),
        [one] => one,
        several => picked(several)?,
    };
    terminal_output::note(&format!("on {}", node.words()));
    Ok(Some(AtArgs::at_socket(node.socket.clone())))
}

/// As [`find`], for what needs a running node.
///
/// # Errors
/// None runs, with how to start it; several run and no person is there to pick one.
pub(super) async fn required(options: &NodeOptions, at: &AtArgs) -> anyhow::Result<AtArgs> {
    let found = find(options, at).await?;
    found.with_context(|| absent(options))
}

/// Does a verb on the node that is meant, which is named first.
pub(super) async fn verb(
    options: &NodeOptions,
    at: &AtArgs,
    verb: OperatorVerb,
) -> anyhow::Result<ExitStatus> {
    operator_client::verb(&required(options, at).await?, verb).await
}

/// As [`verb`], for one whose answer comes at the end of a motion: a client that goes away before stops the arm.
pub(super) async fn moving_verb(
    options: &NodeOptions,
    at: &AtArgs,
    verb: OperatorVerb,
) -> anyhow::Result<ExitStatus> {
    operator_client::moving_verb(&required(options, at).await?, verb).await
}

/// Time in which a node that was told to stop says what came of it.
const STOP_ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Stops what is meant; where several nodes run and none is named, all of them: a stop asks nothing and waits for nobody. Where a
/// node file is named, each node is asked whose it is and stopped by itself, so that none that hangs holds up another; one that
/// does not say whose it is may be the one that is meant, and is stopped too.
pub(super) async fn stop(
    options: &NodeOptions,
    at: &AtArgs,
    verb: OperatorVerb,
) -> anyhow::Result<ExitStatus> {
    if at.is_named() {
        return operator_client::verb(at, verb).await;
    }
    let by_file = names_files(options);
    let sockets = match by_file {
        true => running_nodes::all_sockets()?,
        false => running_nodes::answering_sockets()?,
    };
    let several = sockets.len() > 1;
    let asked = sockets.into_iter().map(|socket| {
        let verb = verb.clone();
        async move {
            if by_file && !is_meant(&socket, options).await {
                return None;
            }
            let told = told_to_stop(&socket, &verb).await;
            Some((socket, told))
        }
    });
    let asked: FuturesUnordered<_> = asked.collect();
    let outcomes = asked.filter_map(std::future::ready);
    let exit = say_each(outcomes, several, several && !by_file).await?;
    exit.with_context(|| absent(options))
}

/// Says what came of each stop as soon as that is known, with the node's name where that is not clear; `None` where there was none.
async fn say_each(
    outcomes: impl Stream<Item = (PathBuf, anyhow::Result<VerbReply>)>,
    several: bool,
    is_named: bool,
) -> anyhow::Result<Option<ExitStatus>> {
    let mut outcomes = std::pin::pin!(outcomes);
    let mut exit = None;
    while let Some((socket, told)) = outcomes.next().await {
        let (done, text) = match told {
            Ok(told) => (told.done, told.text),
            Err(error) if several => (false, super::why(&error)),
            Err(error) => return Err(error),
        };
        let name = socket.file_stem().unwrap_or_default().to_string_lossy();
        terminal_output::line(&match is_named {
            true => format!("{name}: {text}"),
            false => text,
        });
        let is_all_done = done && exit != Some(ExitStatus::Refused);
        exit = Some(ExitStatus::of(is_all_done));
    }
    Ok(exit)
}

/// Returns whether a node is of the files that are named, or does not say whose it is.
async fn is_meant(socket: &Path, options: &NodeOptions) -> bool {
    let node = running_nodes::described(socket.to_owned()).await;
    node.description.is_none() || node.is_of(options.config.as_deref(), options.state.as_deref())
}

async fn told_to_stop(socket: &Path, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    let at = AtArgs::at_socket(socket.to_owned());
    let told = tokio::time::timeout(STOP_ANSWERED_WITHIN, operator_client::ask(&at, verb)).await;
    told.unwrap_or_else(|_| {
        bail!(
            "the node at {} was told to stop and has said nothing for {} s; whether its arm stands is not known: look at it, cut its power if it moves",
            socket.display(),
            STOP_ANSWERED_WITHIN.as_secs()
        )
    })
}

async fn candidates(options: &NodeOptions) -> anyhow::Result<Vec<RunningNode>> {
    match names_files(options) {
        true => running_nodes::nodes_of(options.config.as_deref(), options.state.as_deref()).await,
        false => running_nodes::running_nodes().await,
    }
}

const fn names_files(options: &NodeOptions) -> bool {
    options.config.is_some() || options.state.is_some()
}

/// Asks a person which node is meant.
fn picked(several: &[RunningNode]) -> anyhow::Result<&RunningNode> {
    if !std::io::stdin().is_terminal() {
        bail!(
            "{}\nname one with --socket, or with the --config that it was started with; nothing was done",
            running_nodes::list(several)
        );
    }
    let words: Vec<String> = several.iter().map(RunningNode::words).collect();
    let said = questions::pick("several nodes run here; which one is meant?", &words)?;
    let picked = several.iter().find(|node| node.words() == said);
    picked.context("no node was picked; nothing was done")
}

/// Says that the node that is meant does not run, and how to start it.
pub(super) fn absent(options: &NodeOptions) -> String {
    let given = given_options::words(options);
    if let Some(file) = &options.config {
        if let Err(error) = open::file(options) {
            return format!("{error:#}");
        }
        return format!(
            "the node of {} does not run here: start it in another terminal with `steadyhand {given}serve`, and leave it running; nothing moves by that. If it was started with a --socket of its own, name that",
            file.display()
        );
    }
    let file = match options.state {
        Some(_) => "",
        None => "--config node.toml ",
    };
    format!(
        "no node runs here: start it in another terminal with `steadyhand {file}{given}serve`, and leave it running; nothing moves by that. `steadyhand init` writes a node file"
    )
}
