//! The running node that a command means: the one that is named, the one of a node file, the only one, or the one that a person
//! picks.

use std::io::IsTerminal;

use anyhow::{Context, bail};

use super::{AtArgs, ExitStatus, NodeOptions, operator_client, questions, terminal_output};
use node::control_socket::OperatorVerb;
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

/// Stops what is meant; where several nodes run and none is named, all of them: a stop asks nothing and waits for nobody.
pub(super) async fn stop(
    options: &NodeOptions,
    at: &AtArgs,
    verb: OperatorVerb,
) -> anyhow::Result<ExitStatus> {
    if at.is_named() {
        return operator_client::verb(at, verb).await;
    }
    let sockets = if names_files(options) {
        let found = candidates(options).await?;
        found.into_iter().map(|node| node.socket).collect()
    } else {
        running_nodes::answering_sockets()?
    };
    if sockets.is_empty() {
        bail!("{}", absent(options));
    }
    let several = sockets.len() > 1;
    let asked = sockets.into_iter().map(|socket| {
        let at = AtArgs::at_socket(socket.clone());
        let verb = verb.clone();
        async move { (socket, operator_client::ask(&at, &verb).await) }
    });
    let mut exit = ExitStatus::Done;
    for (socket, told) in futures::future::join_all(asked).await {
        let (done, text) = match told {
            Ok(told) => (told.done, told.text),
            Err(error) if several => (false, super::why(&error)),
            Err(error) => return Err(error),
        };
        let name = socket.file_stem().unwrap_or_default().to_string_lossy();
        match several {
            true => terminal_output::line(&format!("{name}: {text}")),
            false => terminal_output::line(&text),
        }
        if !done {
            exit = ExitStatus::Refused;
        }
    }
    Ok(exit)
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
    let index = words.iter().position(|words| *words == said);
    index
        .and_then(|index| several.get(index))
        .context("no node was picked; nothing was done")
}

/// Says that the node that is meant does not run, and how to start it.
pub(super) fn absent(options: &NodeOptions) -> String {
    let started = match (&options.config, &options.state) {
        (Some(file), _) => {
            let file = file.display();
            return format!(
                "the node of {file} does not run here: start it in another terminal with `steadyhand --config {file} serve`, and leave it running; nothing moves by that. If it was started with a --socket of its own, name that"
            );
        }
        (None, Some(state)) => format!("steadyhand --state {} serve", state.display()),
        (None, None) => "steadyhand --config node.toml serve".to_owned(),
    };
    format!(
        "no node runs here: start it in another terminal with `{started}`, and leave it running; nothing moves by that. `steadyhand init` writes a node file"
    )
}
