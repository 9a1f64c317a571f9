//! Operators' verbs: by the control socket of a node on this machine, or with an operator's token over HTTP.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};

use super::questions::{self, WHOLE_YES};
use super::{AtArgs, ExitStatus, NodeOptions, terminal_output, which_node};
use base::signals::{SignalKind, SignalListener};
use mcp::http_client;
use node::control_socket;
use node::operator_verb::{OperatorVerb, VerbReply};
use node::running_nodes::NodeDescription;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;

/// Asks a node that is named: its socket, or its address with a token.
pub(super) async fn ask(at: &AtArgs, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    match (&at.node, &at.token_file) {
        (Some(url), Some(token)) => ask_remote(url, token, verb).await,
        _ => {
            let socket = at.socket.as_deref().context("no node is named")?;
            control_socket::ask(socket, verb).await
        }
    }
}

/// Asks as [`ask`] does, for what nothing goes on without.
///
/// # Errors
/// The node does not answer, or refuses: in its own words.
pub(super) async fn ask_for(at: &AtArgs, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    let told = ask(at, verb).await?;
    anyhow::ensure!(told.done, "{}", told.text);
    Ok(told)
}

/// Reads a reply whose words are data.
pub(super) fn read_text<T: DeserializeOwned>(told: &VerbReply) -> anyhow::Result<T> {
    serde_json::from_str(&told.text).with_context(|| format!("the node says: {}", told.text))
}

/// Asks a node who it is.
pub(super) async fn description(at: &AtArgs) -> anyhow::Result<NodeDescription> {
    let told = ask(at, &OperatorVerb::Describe).await?;
    let data = told.data.context("the node did not say who it is")?;
    NodeDescription::deserialize(data).context("the node is of another version")
}

async fn ask_remote(url: &str, token: &Path, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    let token = std::fs::read_to_string(token)
        .with_context(|| format!("cannot read the token in {}", token.display()))?;
    let token = token.trim().to_owned();
    let url = format!("{}/operator", base_url(url));
    let asked = http_client::ask(&url, Some(token), serde_json::to_vec(verb)?);
    let (status, body) = asked
        .await
        .with_context(|| format!("{url} was not asked"))?;
    if status.is_success() {
        let told = serde_json::from_str(&body.to_string());
        return told.with_context(|| format!("{url} answers as no node of this kind"));
    }
    let why = body.pointer("/error/message").and_then(|why| why.as_str());
    match (why, status.as_u16()) {
        (Some(why), _) => bail!("{url} refuses ({status}): {why}"),
        (None, 404) => bail!(
            "{url} is not there: a node takes operators' verbs over HTTP only where its callers need tokens"
        ),
        (None, _) => bail!("{url} refuses ({status})"),
    }
}

/// A node's address without a path, from a host with its port or from the address at which the node speaks MCP.
pub(super) fn base_url(said: &str) -> String {
    let said = said.trim().trim_end_matches('/');
    let base = said.strip_suffix("/mcp").unwrap_or(said);
    match base.contains("://") {
        true => base.to_owned(),
        false => format!("http://{base}"),
    }
}

/// Asks the node on this machine for a code that opens its page once.
pub(super) async fn page(
    options: &NodeOptions,
    socket: Option<PathBuf>,
) -> anyhow::Result<ExitStatus> {
    let at = socket.map_or_else(AtArgs::default, AtArgs::at_socket);
    which_node::verb(options, &at, OperatorVerb::PageLogin).await
}

pub(super) async fn verb(at: &AtArgs, verb: OperatorVerb) -> anyhow::Result<ExitStatus> {
    Ok(terminal_output::reply(&ask(at, &verb).await?))
}

/// Waits for the answer to what moves an arm. Ctrl-C, SIGTERM and the end of the terminal stop it, a second Ctrl-C is an
/// emergency stop, and what came of each is said.
///
/// # Errors
/// The node does not answer.
pub(super) async fn moving(
    at: &AtArgs,
    asked: impl Future<Output = anyhow::Result<VerbReply>>,
) -> anyhow::Result<VerbReply> {
    let mut interrupt = SignalListener::listen(SignalKind::Interrupt)?;
    let mut terminate = SignalListener::listen(SignalKind::Terminate)?;
    let mut hang_up = SignalListener::listen(SignalKind::HangUp)?;
    let mut asked = std::pin::pin!(asked);
    let mut stops = Vec::new();
    let mut interrupts = 0_u32;
    let told = loop {
        tokio::select! {
            told = &mut asked => break told,
            _ = interrupt.recv() => interrupts += 1,
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        let verb = match interrupts {
            0 | 1 => OperatorVerb::Stop,
            _ => OperatorVerb::Estop,
        };
        // A second word does not wait for the first one's answer.
        stops.push(base::task::spawn(stop_aloud(at.clone(), verb)));
    };
    for stop in stops {
        stop.await?;
    }
    told
}

/// Tells a node to stop, and says what came of it.
async fn stop_aloud(at: AtArgs, verb: OperatorVerb) {
    match ask(&at, &verb).await {
        Ok(told) => terminal_output::line(&told.text),
        Err(error) => terminal_output::note(&format!(
            "the node did not hear the stop: {error:#}; cut the arm's power if it moves"
        )),
    }
}

/// Does a verb whose answer comes at the end of a motion.
pub(super) async fn moving_verb(at: &AtArgs, verb: OperatorVerb) -> anyhow::Result<ExitStatus> {
    Ok(terminal_output::reply(&moving(at, ask(at, &verb)).await?))
}

pub(super) async fn enable(
    options: &NodeOptions,
    at: &AtArgs,
    scenes: Vec<String>,
    meta: Option<String>,
    for_: Option<Duration>,
    arm: Option<String>,
) -> anyhow::Result<ExitStatus> {
    let at = which_node::required(options, at).await?;
    for scene in scenes {
        let ask = OperatorVerb::Enable {
            scene,
            meta: meta.clone(),
            for_s: for_.map(|for_| for_.as_secs()),
            arm: arm.clone(),
        };
        let exit = verb(&at, ask).await?;
        if exit != ExitStatus::Done {
            return Ok(exit);
        }
    }
    Ok(ExitStatus::Done)
}

/// An emergency stop that is kept is ended through a node: without one, nothing could be moved.
pub(super) async fn clear(options: &NodeOptions, at: &AtArgs) -> anyhow::Result<ExitStatus> {
    let cleared = which_node::verb(options, at, OperatorVerb::Clear).await;
    cleared.context("an emergency stop that is latched is ended by the node: start it, then say `steadyhand clear`; it starts latched, and nothing moves before")
}

/// The arm drops, so this asks.
pub(super) async fn torque_off(
    options: &NodeOptions,
    at: &AtArgs,
    yes: bool,
) -> anyhow::Result<ExitStatus> {
    const WARNING: &str =
        "the arm will DROP when its torque is off: hold it, or be sure that it lies";
    let at = which_node::required(options, at).await?;
    if !yes {
        let question = format!("{WARNING}. Type yes to take its torque off:");
        let refusal = format!("{WARNING}; say --yes if that is what you want");
        if !questions::confirm(&question, &WHOLE_YES, &refusal)? {
            return terminal_output::refused("nothing was done");
        }
    }
    verb(&at, OperatorVerb::TorqueOff).await
}
