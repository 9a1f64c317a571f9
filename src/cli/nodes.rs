//! `fleet nodes`: lists the nodes of the local network, and adds one to the node file once it has proven its key.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::duration::duration;
use super::node_file_text::NodeFileEdit;
use super::operator_client::base_url;
use super::{ExitStatus, NodeOptions, terminal_output};
use config::edit_node_file::add_peer;
use config::{NodeFile, PeerEntry};
use job::{identity_challenge, is_proven};
use mcp::http_client;
use node::open;

#[derive(Debug, Args)]
pub(super) struct NodesArgs {
    /// How long to listen
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "3s")]
    for_: Duration,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    what: Option<NodesCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum NodesCommand {
    /// Add a node to the node file, if it proves that it has this key
    Accept {
        /// Its name
        name: String,
        /// Its key, as `steadyhand fleet nodes` shows it on a machine that you trust
        #[arg(long, value_name = "HEX")]
        key: String,
        /// The file with the token that it made for this node
        #[arg(long, value_name = "FILE")]
        token_file: PathBuf,
        /// Its address, such as https://left.example.org:8700 [default: the announced one]
        #[arg(long, value_name = "URL")]
        address: Option<String>,
    },
}

/// A node that announces itself.
struct AnnouncedNode {
    name: String,
    address: SocketAddr,
    is_tls: bool,
    key: String,
    version: String,
}

pub(super) async fn run(options: &NodeOptions, args: &NodesArgs) -> anyhow::Result<ExitStatus> {
    match &args.what {
        None => list(options, args).await,
        Some(NodesCommand::Accept {
            name,
            key,
            token_file,
            address,
        }) => {
            let url = match address {
                Some(address) => base_url(address),
                None => announced_url(name, key, args.for_).await?,
            };
            accept(options, name, key, token_file, &url).await
        }
    }
}

async fn list(options: &NodeOptions, args: &NodesArgs) -> anyhow::Result<ExitStatus> {
    let file = open::file(options)?;
    let found = find(args.for_).await?;
    if args.json {
        let nodes: Vec<Value> = found.iter().map(|node| as_json(node, &file)).collect();
        terminal_output::json(&json!({ "nodes": nodes }))?;
        return Ok(ExitStatus::Done);
    }
    if found.is_empty() {
        let time = base::wording::duration(args.for_);
        terminal_output::line(&format!(
            "no node was found within {time}. Only nodes that serve other machines can be found. Next: on the node's machine, `steadyhand serve --http 0.0.0.0:8700`"
        ));
    }
    for node in &found {
        let peer_note = match peer_at(&file, node) {
            Some(peer) => format!("called `{}` in the node file", peer.name),
            None => "not in the node file".to_owned(),
        };
        terminal_output::line(&format!(
            "{}  {}  steadyhand {}  {peer_note}\n  key {}",
            node.name,
            node.url(),
            node.version,
            node.key
        ));
    }
    Ok(ExitStatus::Done)
}

fn as_json(node: &AnnouncedNode, file: &NodeFile) -> Value {
    json!({
        "name": node.name,
        "address": node.url(),
        "key": node.key,
        "version": node.version,
        "peer": peer_at(file, node).map(|peer| &peer.name),
    })
}

/// Returns the peer of the node file at a node's address.
fn peer_at<'a>(file: &'a NodeFile, node: &AnnouncedNode) -> Option<&'a PeerEntry> {
    let node_url = format!("{}/mcp", node.url());
    file.peers
        .iter()
        .find(|peer| peer.url().is_some_and(|url| url == node_url))
}

impl AnnouncedNode {
    fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

/// Returns the address at which a node of this name and key announces itself.
async fn announced_url(name: &str, key: &str, within: Duration) -> anyhow::Result<String> {
    let found = find(within).await?;
    let node = found
        .iter()
        .find(|node| node.name == name && node.key == key);
    let node = node.with_context(|| {
        format!(
            "no node `{name}` with this key was found on this network. Next: give its address with --address"
        )
    })?;
    Ok(node.url())
}

async fn accept(
    options: &NodeOptions,
    name: &str,
    key: &str,
    token_file: &Path,
    url: &str,
) -> anyhow::Result<ExitStatus> {
    // A peer whose token cannot be read would fail at its first call.
    node::peers::read_token(token_file).map_err(anyhow::Error::msg)?;
    verify_key(name, key, url).await?;
    let token_file = std::path::absolute(token_file)?;
    let edit = NodeFileEdit::begin(options)?;
    let path = edit.path;
    let changed = add_peer(&edit.text, name, &format!("{url}/mcp"), &token_file)
        .with_context(|| format!("cannot change {}", path.display()))?;
    edit.put(&changed)?;
    terminal_output::done(&format!(
        "{name} at {url} has proven its key and is now in `[[peers]]` of {}. Next: restart this machine's node, if it runs",
        path.display()
    ))
}

/// Checks that the node at an address has the key, before any secret is sent there.
async fn verify_key(name: &str, key: &str, url: &str) -> anyhow::Result<()> {
    let key = key.trim().to_lowercase();
    let challenge = identity_challenge()?;
    let response = http_client::fetch(&format!("{url}/identity/{challenge}")).await;
    let (_, reply) = response.with_context(|| format!("cannot reach {url}"))?;
    let text = |field: &str| reply.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("name") != name {
        bail!(
            "the node at {url} is called `{}`, not `{name}`. Nothing was changed",
            text("name")
        );
    }
    if text("key") != key || !is_proven(name, &key, &challenge, text("signature")) {
        bail!(
            "the node at {url} does not have the given key: it is a different node, or a machine in between changes the traffic. Nothing was changed"
        );
    }
    Ok(())
}

#[cfg(feature = "mdns")]
async fn find(within: Duration) -> anyhow::Result<Vec<AnnouncedNode>> {
    let found = tokio::task::spawn_blocking(move || fleet::local_discovery::find(within)).await??;
    let announced = found.into_iter().map(|node| AnnouncedNode {
        name: node.name,
        address: node.address,
        is_tls: node.is_tls,
        key: node.key,
        version: node.version,
    });
    Ok(announced.collect())
}

#[cfg(not(feature = "mdns"))]
async fn find(_: Duration) -> anyhow::Result<Vec<AnnouncedNode>> {
    bail!(
        "this program was built without mDNS. Next: give --address, or build it with the cargo feature `mdns` (on by default)"
    )
}
