//! Sends operators' verbs: through the control socket of a node on this machine, or with a token over HTTP.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use super::questions;
use super::{AtArgs, ExitStatus, NodeOptions, given_options, terminal_output, which_node};
use base::plain_file;
use base::signals::{SignalKind, SignalListener};
use base::wording::{duration, with_statement};
use mcp::http_client;
use node::control_socket;
use node::operator_verb::{OperatorVerb, VerbReply};
use node::running_nodes::NodeDescription;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;

/// Time limit for a report of a node.
const REPORTED_WITHIN: Duration = Duration::from_secs(20);

/// Time limit for a node's answer to a stop.
const STOP_ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Silence of a node that was told to stop after which a person is told so.
const SILENCE_TOLD_AFTER: Duration = Duration::from_secs(2);

/// Asks a named node: through its socket, or at its address with a token.
///
/// # Errors
/// It does not answer, or sends no report or no answer to a stop in time.
pub(super) async fn ask(at: &AtArgs, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    let asking = send(at, verb);
    if verb.stops() {
        return ask_to_stop(at, asking).await;
    }
    if !verb.only_reports() {
        return asking.await;
    }
    let reply = tokio::time::timeout(REPORTED_WITHIN, asking).await;
    reply.unwrap_or_else(|_| {
        bail!(
            "the node has not answered for {}: it may be frozen, and its arm may not be under control. Next: `steadyhand stop{}` (it shows the result)",
            duration(REPORTED_WITHIN),
            at.text()
        )
    })
}

/// Waits for the answer to a stop; who waits longer than a stop takes is told so.
async fn ask_to_stop(
    at: &AtArgs,
    asking: impl Future<Output = anyhow::Result<VerbReply>>,
) -> anyhow::Result<VerbReply> {
    let mut asking = std::pin::pin!(asking);
    if let Ok(reply) = tokio::time::timeout(SILENCE_TOLD_AFTER, &mut asking).await {
        return reply;
    }
    let address = address(at);
    terminal_output::note(&format!(
        "the node at {address} was told to stop and has not answered yet. Cut its arm's power if it moves"
    ));
    let reply = tokio::time::timeout(STOP_ANSWERED_WITHIN - SILENCE_TOLD_AFTER, asking).await;
    let limit_s = STOP_ANSWERED_WITHIN.as_secs();
    reply.unwrap_or_else(|_| {
        Err(anyhow!(
            "the node at {address} was told to stop and has not answered for {limit_s} s. Its arm may still move. Next: look at it, and cut its power if it moves"
        ))
    })
}

fn address(at: &AtArgs) -> String {
    let socket = at
        .socket
        .as_ref()
        .map(|socket| socket.display().to_string());
    at.node.clone().or(socket).unwrap_or_default()
}

async fn send(at: &AtArgs, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    match (&at.node, &at.token_file) {
        (Some(url), Some(token)) => ask_remote(url, token, verb).await,
        _ => {
            let socket = at.socket.as_deref().context("no node is named")?;
            control_socket::ask(socket, verb).await
        }
    }
}

/// Like [`ask`], but a refusal is an error.
///
/// # Errors
/// Fails if the node does not answer, or with its own message if it refuses.
pub(super) async fn require(at: &AtArgs, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    let reply = ask(at, verb).await?;
    anyhow::ensure!(reply.done, "{}", reply.text);
    Ok(reply)
}

/// Parses a reply whose text is JSON.
pub(super) fn parse_text<T: DeserializeOwned>(reply: &VerbReply) -> anyhow::Result<T> {
    serde_json::from_str(&reply.text)
        .with_context(|| format!("cannot read the node's answer: {}", reply.text))
}

/// Asks a node for its description.
pub(super) async fn description(at: &AtArgs) -> anyhow::Result<NodeDescription> {
    let reply = ask(at, &OperatorVerb::Describe).await?;
    let data = reply.data.context("the node did not say who it is")?;
    NodeDescription::deserialize(data).context("the node has a different version")
}

async fn ask_remote(url: &str, token: &Path, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    let token = plain_file::read_text(token)
        .with_context(|| format!("cannot read the token in {}", token.display()))?;
    let token = token.trim().to_owned();
    let url = format!("{}/operator", base_url(url));
    let request = http_client::ask(&url, Some(token), serde_json::to_vec(verb)?);
    let (status, body) = request
        .await
        .with_context(|| format!("cannot reach {url}"))?;
    if status.is_success() {
        let reply = serde_json::from_str(&body.to_string());
        return reply.with_context(|| format!("{url} does not answer as a node"));
    }
    let text = body
        .pointer("/error/message")
        .and_then(|text| text.as_str());
    match (text, status.as_u16()) {
        (Some(text), _) => bail!("{url} refuses ({status}): {text}"),
        (None, 404) => bail!(
            "{url} takes no operators' commands: over HTTP, a node takes them only if it requires tokens. Next: run this on the node's own machine"
        ),
        (None, _) => bail!("{url} refuses ({status})"),
    }
}

/// Returns a node's address without a path, from a host with its port or from the node's MCP address.
pub(super) fn base_url(address: &str) -> String {
    let address = address.trim().trim_end_matches('/');
    let base = address.strip_suffix("/mcp").unwrap_or(address);
    match base.contains("://") {
        true => base.to_owned(),
        false => format!("http://{base}"),
    }
}

/// Asks the node on this machine for a one-time code for its page.
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

/// Waits for the answer to a verb that moves an arm. Ctrl-C, Ctrl-\, SIGTERM and the end of the terminal stop it, a second Ctrl-C is
/// an emergency stop, and the result of each is printed.
///
/// # Errors
/// Fails if the node does not answer.
pub(super) async fn moving(
    at: &AtArgs,
    motion: impl Future<Output = anyhow::Result<VerbReply>>,
) -> anyhow::Result<VerbReply> {
    let mut interrupt = SignalListener::listen(SignalKind::Interrupt)?;
    let mut terminate = SignalListener::listen(SignalKind::Terminate)?;
    let mut hang_up = SignalListener::listen(SignalKind::HangUp)?;
    let mut motion = std::pin::pin!(motion);
    let mut stops = Vec::new();
    let mut interrupts = 0_u32;
    let reply = loop {
        tokio::select! {
            reply = &mut motion => break reply,
            _ = interrupt.recv() => interrupts += 1,
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        let verb = match interrupts {
            0 | 1 => OperatorVerb::Stop,
            _ => OperatorVerb::Estop,
        };
        // A second stop does not wait for the answer to the first.
        stops.push(base::task::spawn(stop_and_report(at.clone(), verb)));
    };
    for stop in stops {
        stop.await?;
    }
    reply
}

/// Tells a node to stop, and prints the result.
async fn stop_and_report(at: AtArgs, verb: OperatorVerb) {
    match ask(&at, &verb).await {
        Ok(reply) => terminal_output::line(&reply.text),
        Err(error) => terminal_output::note(&with_statement(
            format!("the stop did not reach the node: {error:#}"),
            "cut the arm's power if it moves",
        )),
    }
}

/// Sends a verb whose answer comes at the end of a motion.
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
        let enable_verb = OperatorVerb::Enable {
            scene,
            meta: meta.clone(),
            for_s: for_.map(|for_| for_.as_secs()),
            arm: arm.clone(),
        };
        let exit = verb(&at, enable_verb).await?;
        if exit != ExitStatus::Done {
            return Ok(exit);
        }
    }
    Ok(ExitStatus::Done)
}

/// Ends an emergency stop. This takes a node, because without one nothing could move anyway.
pub(super) async fn clear(options: &NodeOptions, at: &AtArgs) -> anyhow::Result<ExitStatus> {
    let cleared = which_node::verb(options, at, OperatorVerb::Clear).await;
    cleared.with_context(|| {
        let address = given_options::addressing_text(options);
        format!("only a running node can end an emergency stop. Start the node (its arm stays stopped, and nothing moves), then `steadyhand {address}clear{}`", at.text())
    })
}

/// Holds the motion under way, at once or at the end of its stroke.
pub(super) async fn hold(node: &NodeOptions, at: &AtArgs, now: bool) -> anyhow::Result<ExitStatus> {
    which_node::verb(node, at, OperatorVerb::Hold { now }).await
}

/// Takes torque off, after asking, because the arm drops.
pub(super) async fn torque_off(
    options: &NodeOptions,
    at: &AtArgs,
    yes: bool,
) -> anyhow::Result<ExitStatus> {
    const WARNING: &str = "the arm DROPS when its torque is off: hold it, or make sure that it already rests on something";
    let at = which_node::required(options, at).await?;
    if !yes {
        let question = format!("{WARNING}. Type `yes` to take its torque off:");
        let refusal = format!("{WARNING}. Next: add --yes to confirm");
        if !questions::confirm_in_full(&question, &refusal)? {
            return terminal_output::refused("nothing was done");
        }
    }
    verb(&at, OperatorVerb::TorqueOff).await
}
