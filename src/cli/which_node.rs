//! Finds the running node that a command addresses: the named one, the one of a node file, the only one, or the one that a
//! person picks.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt as _};

use super::{
    AtArgs, ExitStatus, NodeOptions, given_options, operator_client, questions, terminal_output,
};
use node::open;
use node::operator_verb::{OperatorVerb, VerbReply};
use node::running_nodes::{self, RunningNode};

/// Finds the addressed node and prints which one it is; `None` if no such node runs.
///
/// # Errors
/// Fails if several run and nobody is there to pick one.
pub(super) async fn find(options: &NodeOptions, at: &AtArgs) -> anyhow::Result<Option<AtArgs>> {
    if at.is_named() {
        return Ok(Some(at.clone()));
    }
    let found = candidates(options).await?;
    let node = match found.as_slice() {
        [] => return Ok(None),
        [one] => one,
        several => pick_node(several)?,
    };
    terminal_output::note(&format!("on {}", node.words()));
    Ok(Some(AtArgs::at_socket(node.socket.clone())))
}

/// Like [`find`], for a command that moves nothing and can do its work on a simulated arm of its own: it does so where several nodes
/// run and none is named.
///
/// # Errors
/// Fails if a folder of sockets belongs to another user.
pub(super) async fn find_unless_several(
    options: &NodeOptions,
    at: &AtArgs,
) -> anyhow::Result<Option<AtArgs>> {
    if at.is_named() || names_files(options) {
        return find(options, at).await;
    }
    let running = running_nodes::running_nodes().await?.len();
    if running < 2 {
        return find(options, at).await;
    }
    terminal_output::note(&format!(
        "{running} nodes run here and none is named, so this command plans for a simulated arm of its own. `steadyhand status` lists the nodes; `--socket PATH` names one"
    ));
    Ok(None)
}

/// Like [`find`], but fails if no node runs.
///
/// # Errors
/// Fails if none runs, with advice to start it, or if several run and nobody is there to pick one.
pub(super) async fn required(options: &NodeOptions, at: &AtArgs) -> anyhow::Result<AtArgs> {
    if let Some(found) = find(options, at).await? {
        return Ok(found);
    }
    if let Some(node) = running_nodes::silent_node().await? {
        let (options, socket) = (given_options::text(options), node.socket.display());
        bail!(
            "no node answers for these options. The node at {socket} runs but does not answer; it may be the one you mean. Next: `steadyhand {options}stop` (it shows the result)"
        );
    }
    bail!(absent(options))
}

/// Sends a verb to the addressed node, after printing its name.
pub(super) async fn verb(
    options: &NodeOptions,
    at: &AtArgs,
    verb: OperatorVerb,
) -> anyhow::Result<ExitStatus> {
    operator_client::verb(&required(options, at).await?, verb).await
}

/// Like [`verb`], for a verb whose answer comes at the end of a motion: a client that leaves earlier stops the arm.
pub(super) async fn moving_verb(
    options: &NodeOptions,
    at: &AtArgs,
    verb: OperatorVerb,
) -> anyhow::Result<ExitStatus> {
    operator_client::moving_verb(&required(options, at).await?, verb).await
}

/// Stops the addressed node or, if several run and none is named, all of them: a stop asks no questions. If a node file is
/// named, each node is asked for its file and stopped separately, so that one that hangs does not delay another. A node that
/// does not answer may be the right one, and is stopped too.
pub(super) async fn stop(
    options: &NodeOptions,
    at: &AtArgs,
    verb: OperatorVerb,
) -> anyhow::Result<ExitStatus> {
    if at.is_named() {
        return operator_client::verb(at, verb).await;
    }
    let by_file = names_files(options);
    let sockets = running_nodes::all_sockets()?;
    let are_several = sockets.len() > 1;
    let stops = sockets.into_iter().map(|socket| {
        let verb = verb.clone();
        async move {
            if by_file && !may_be_addressed(&socket, options).await {
                return None;
            }
            let at = AtArgs::at_socket(socket.clone());
            let reply = operator_client::ask(&at, &verb).await;
            Some((socket, reply))
        }
    });
    let stops: FuturesUnordered<_> = stops.collect();
    let outcomes = stops.filter_map(std::future::ready);
    let exit = report_each(outcomes, are_several, are_several && !by_file).await?;
    exit.with_context(|| absent(options))
}

/// Prints the result of each stop as it arrives, with the node's name if there are several; `None` if there was none.
async fn report_each(
    outcomes: impl Stream<Item = (PathBuf, anyhow::Result<VerbReply>)>,
    are_several: bool,
    is_named: bool,
) -> anyhow::Result<Option<ExitStatus>> {
    let mut outcomes = std::pin::pin!(outcomes);
    let mut exit = None;
    while let Some((socket, reply)) = outcomes.next().await {
        let (done, text) = match reply {
            Ok(reply) => (reply.done, reply.text),
            Err(error) if are_several => (false, super::describe_error(&error)),
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

/// Returns whether a node belongs to the named files, or does not answer.
async fn may_be_addressed(socket: &Path, options: &NodeOptions) -> bool {
    let node = running_nodes::described(socket.to_owned()).await;
    node.description.is_none() || node.is_of(options.config.as_deref(), options.state.as_deref())
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

/// Asks a person to pick a node.
fn pick_node(several: &[RunningNode]) -> anyhow::Result<&RunningNode> {
    if !std::io::stdin().is_terminal() {
        bail!(
            "{}\nNothing was done. Next: name one with --socket, or with the --config that the node was started with",
            running_nodes::list(several)
        );
    }
    let descriptions: Vec<String> = several.iter().map(RunningNode::distinct_words).collect();
    let choice = questions::pick("several nodes run here. Which one?", &descriptions)?;
    let picked = several.iter().find(|node| node.distinct_words() == choice);
    picked.context("no node was picked. Nothing was done")
}

/// Returns the message that the addressed node does not run, and how to start it.
pub(super) fn absent(options: &NodeOptions) -> String {
    let options_text = given_options::text(options);
    if let Some(file) = &options.config {
        if let Err(error) = open::file(options) {
            return format!("{error:#}");
        }
        return format!(
            "the node of {} does not run here (or it needs its own --socket). Starting it moves nothing. Next: `steadyhand {options_text}serve` in another terminal, and leave it running",
            file.display()
        );
    }
    let file = match options.state {
        Some(_) => "",
        None => "--config node.toml ",
    };
    // Without a node file the node's arm is simulated unless its port is named.
    let (port, simulated) = match (&options.state, &options.port) {
        (Some(_), None) => ("--port PORT ", " Without --port PORT its arm is simulated."),
        _ => ("", ""),
    };
    format!(
        "no node runs here; starting one moves nothing.{simulated} (`steadyhand init` writes a node file.) Next: `steadyhand {file}{options_text}{port}serve` in another terminal, and leave it running"
    )
}
