//! Operators' verbs, by the control socket of the node on this machine.

use std::path::PathBuf;
use std::time::Duration;

use super::control::{self, Verb};
use super::{AtArgs, Exit, NodeArgs, show};

/// Whether a node that runs is asked, and not a folder.
pub(super) fn is_meant(node: &NodeArgs, at: &AtArgs) -> bool {
    let folder = node.state.is_some() || node.config.is_some();
    at.socket.is_some() || (!folder && control::only_socket().is_ok())
}

/// The socket of the node on this machine.
pub(super) fn socket(at: &AtArgs) -> anyhow::Result<PathBuf> {
    match &at.socket {
        Some(path) => Ok(path.clone()),
        None => control::only_socket(),
    }
}

pub(super) async fn verb(at: &AtArgs, verb: Verb) -> anyhow::Result<Exit> {
    let path = socket(at)?;
    let told = control::ask(&path, &verb).await?;
    show::line(&told.text);
    Ok(if told.done { Exit::Done } else { Exit::Refused })
}

pub(super) async fn enable(
    at: &AtArgs,
    scenes: Vec<String>,
    meta: Option<String>,
    for_: Option<Duration>,
) -> anyhow::Result<Exit> {
    for scene in scenes {
        let ask = Verb::Enable {
            scene,
            meta: meta.clone(),
            for_s: for_.map(|for_| for_.as_secs()),
        };
        let exit = verb(at, ask).await?;
        if exit != Exit::Done {
            return Ok(exit);
        }
    }
    Ok(Exit::Done)
}
