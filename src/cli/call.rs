//! `call`: makes a tool call like any MCP client, with a progress bar.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use base::signals::{SignalKind, SignalListener};
use clap::Args;
use tokio_util::sync::CancellationToken;

use super::operator_door::OperatorDoor;
use super::pen_prompt::PenPrompt;
use super::progress_bar::WatchArgs;
use super::stop_keys::StopKeyListener;
use super::{
    ExitStatus, NodeOptions, given_options, own_node, progress_bar, result_copies, terminal_output,
};
use mcp::client::{self, ClientError, McpClient};
use mcp::http_client;
use mcp::{CallWatch, ProgressSender, ReceivedArguments, ToolAnswer};
use node::config_changes::ConfigWatcher;
use node::mcp_service::NodeMcpService;
use node::open;
use node::peers::read_token;
use node::running_nodes;
use node::serve::{self, ShutdownRequests};
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
    /// A file to draw is drawn by `steadyhand draw`
    #[arg(long, value_name = "FILE", hide = true)]
    design: Option<PathBuf>,
    /// Scenes to enable first, if the arm is not the embedded simulator
    #[arg(long, value_name = "SCENE", num_args = 1..)]
    enable: Vec<String>,
    #[command(flatten)]
    watch: WatchArgs,
}

/// Says that nodes run here which were not asked: `draw` and `enable` find them, and this command has a node of its own.
async fn note_running_nodes() {
    let running = running_nodes::running_nodes().await.unwrap_or_default();
    let description = running.iter().find_map(|node| node.description.as_ref());
    let Some(node) = description else {
        return;
    };
    let address = node
        .process
        .as_ref()
        .and_then(|process| process.address.as_deref());
    let next = match address {
        Some(address) => format!("add --node {address}"),
        None => "start it with `serve --http`, then add --node URL".to_owned(),
    };
    terminal_output::note(&format!(
        "node `{}` was not asked: this command started a node of its own, and that one answered. Next: {next}",
        node.name
    ));
}

/// Interval at which a call to the command's own node checks whether a pen is awaited.
const PEN_POLL: std::time::Duration = std::time::Duration::from_millis(100);

/// HTTP status of a request that lacks a token.
const UNAUTHORIZED: u16 = 401;

pub(super) async fn run(node: &NodeOptions, args: CallArgs) -> anyhow::Result<ExitStatus> {
    if let Some(design) = &args.design {
        bail!(
            "`call` sends a tool call, and tools take no files. Next: `steadyhand draw {}`",
            design.display()
        );
    }
    let options = node;
    // Our own node outlives the call: its arm is stopped when it is dropped.
    let own = match &args.node {
        Some(_) => None,
        None => {
            let node = open::node(node, args.watch.simulation_rate())?;
            open::enable(&node, &args.enable)?;
            node.note_start();
            ConfigWatcher::since_last(&node, options);
            Some(node)
        }
    };
    let client = match (&own, &args.node) {
        (Some(node), _) => client::in_process(Arc::new(NodeMcpService::new(node))).await?,
        (None, url) => {
            let url = full_address(url.as_deref().unwrap_or_default());
            connect(&url, args.token_file.as_deref()).await?
        }
    };
    if let Some(node) = &own {
        own_node::escalate_second_interrupt(node)?;
    }
    let outcome = call(&client, &args, own.as_ref()).await;
    client.close().await;
    let shutdown = outcome
        .as_ref()
        .ok()
        .and_then(|outcome| outcome.shutdown.as_ref());
    let ended = match &own {
        Some(node) => own_node::end(node, shutdown).await,
        None => ExitStatus::Done,
    };
    let answer = outcome?.answer;
    let mut answer = answer.unwrap_or_else(|| interrupted_answer(ended));
    let gathered = gather_files(options.output.as_deref(), args.node.as_deref(), &mut answer);
    if own.is_some() {
        answer.text = given_options::with_given(&answer.text, options);
    }
    print_answer(&answer, args.json)?;
    gathered?;
    if !args.json && own.is_some() {
        note_running_nodes().await;
    }
    Ok(match ended {
        ExitStatus::Done if answer.is_error => ExitStatus::Refused,
        ended => ended,
    })
}

/// Copies the files of an answer into the folder that this command names, and names the copies.
fn gather_files(
    folder: Option<&Path>,
    node: Option<&str>,
    answer: &mut ToolAnswer,
) -> anyhow::Result<()> {
    let Some(folder) = folder.filter(|_| result_copies::is_here(node)) else {
        return Ok(());
    };
    for (original, copy) in result_copies::gather(folder, &mut answer.structured)? {
        answer.text = answer.text.replace(&original, &copy);
    }
    Ok(())
}

/// Outcome of a call.
struct CallOutcome {
    /// `None` if the process was told to end before there was an answer.
    answer: Option<ToolAnswer>,
    /// Shutdown requests for the command's own node, if the process was told to end.
    shutdown: Option<ShutdownRequests>,
}

/// Returns the answer to a call that was abandoned because the process was told to end.
fn interrupted_answer(ended: ExitStatus) -> ToolAnswer {
    ToolAnswer::failed(match ended {
        ExitStatus::Energised => {
            "this command was ended, so the arm was stopped. It stands where it is, with its torque on"
        }
        ExitStatus::Broken => {
            "this command was ended, so the arm was stopped. Its standstill could not be verified. Next: look at the arm"
        }
        ExitStatus::Done | ExitStatus::Refused | ExitStatus::Absent => {
            "this command was ended, so the arm was stopped. It is at rest"
        }
    })
}

/// Completes the address of a node: people type `HOST:PORT`, and a missing path is `/mcp`.
fn full_address(address: &str) -> String {
    let address = address.trim();
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    match rest.trim_end_matches('/') {
        host if host.contains('/') => format!("{scheme}://{rest}"),
        host => format!("{scheme}://{host}/mcp"),
    }
}

/// Connects to another node. The error for a missing token names the option that sends one.
async fn connect(url: &str, token_file: Option<&Path>) -> anyhow::Result<McpClient> {
    let token = token_file.map(read_token).transpose();
    let token = token.map_err(anyhow::Error::msg)?;
    let has_token = token.is_some();
    let error = match client::connect_as(url, token).await {
        Ok(client) => return Ok(client),
        Err(error) => error,
    };
    // The protocol library keeps no HTTP status; a plain request to the same address returns it.
    if !has_token && let Ok((UNAUTHORIZED, _)) = http_client::json(url, None, None).await {
        bail!(
            "{url} needs a token. Next: run `steadyhand token add NAME` on its machine, save the token in a file, and add --token-file FILE"
        );
    }
    bail!("{}", without_rpc_prefix(&error.to_string()))
}

/// Removes the protocol's name and number of an error, which mean less than the text that follows.
fn without_rpc_prefix(error: &str) -> String {
    let split = error.split_once("JSON-RPC error: ");
    let text =
        split.and_then(|(before, rest)| Some(format!("{before}{}", rest.split_once(": ")?.1)));
    text.unwrap_or_else(|| error.to_owned())
}

async fn call(
    client: &McpClient,
    args: &CallArgs,
    own: Option<&Arc<Node>>,
) -> anyhow::Result<CallOutcome> {
    let arguments = args.arguments.as_deref().map(client::arguments_from_text);
    let arguments = arguments.unwrap_or(ReceivedArguments::Absent);
    let (sender, mut news) = ProgressSender::pair();
    let cancelled = CancellationToken::new();
    let watch = CallWatch {
        cancelled: cancelled.clone(),
        progress: Some(sender),
    };
    let title = format!("{} (space, q or Ctrl-C stops)", args.tool);
    let bar = progress_bar::begin(&title, args.json);
    let mut terminate = SignalListener::listen(SignalKind::Terminate)?;
    let mut hang_up = SignalListener::listen(SignalKind::HangUp)?;
    let mut keys = StopKeyListener::listen(progress_bar::is_shown(args.json));
    let door = own.map(|node| OperatorDoor::Own(Arc::clone(node)));
    let (mut pens, mut poll) = (PenPrompt::default(), tokio::time::interval(PEN_POLL));
    let mut call = std::pin::pin!(client.call(&args.tool, arguments, watch));
    let mut shutdown = None;
    let answer = loop {
        tokio::select! {
            answer = &mut call => break answer,
            Ok(()) = news.changed() => progress_bar::show(&bar, &news.borrow_and_update()),
            // The server stops the arm when its caller gives up.
            Ok(()) = tokio::signal::ctrl_c() => cancelled.cancel(),
            agrees = keys.any() => match &door {
                Some(door) if agrees => pens.confirm(door).await,
                _ if agrees => {}
                _ => cancelled.cancel(),
            },
            _ = poll.tick() => if let Some(door) = &door {
                pens.poll(door, None, &mut keys).await;
            },
            _ = terminate.recv() => {
                // Taken before the arms are stopped.
                shutdown = shutdown.or_else(|| own.map(|node| serve::shutdown_requests(node)));
                cancelled.cancel();
            }
            _ = hang_up.recv() => cancelled.cancel(),
        }
    };
    drop(keys);
    bar.finish_and_clear();
    let answer = match answer {
        Err(ClientError::Cancelled) if shutdown.is_some() => None,
        // A cancelled call stops the arm, and the answer says whether it stands.
        Err(ClientError::Cancelled) => {
            let unwatched = CallWatch {
                cancelled: CancellationToken::new(),
                progress: None,
            };
            let stop = client.call("stop", ReceivedArguments::Absent, unwatched);
            Some(ToolAnswer {
                is_error: true,
                ..stop.await?
            })
        }
        answer => Some(answer?),
    };
    Ok(CallOutcome { answer, shutdown })
}

fn print_answer(answer: &ToolAnswer, json: bool) -> anyhow::Result<()> {
    if json {
        return terminal_output::json(&answer.structured);
    }
    terminal_output::line(&answer.text);
    terminal_output::facts(&answer.structured);
    Ok(())
}
