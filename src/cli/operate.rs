//! Operators' verbs, by the control socket of the node on this machine.

use std::time::Duration;

use super::control::{self, Verb};
use super::{AtArgs, Exit, show};

pub(super) async fn verb(at: &AtArgs, verb: Verb) -> anyhow::Result<Exit> {
    let path = match &at.socket {
        Some(path) => path.clone(),
        None => control::only_socket()?,
    };
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
