//! The tools of other servers, as they are now.

use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::{AddressKind, ExamRecord, ExamToolCard, RecordedServer, ServerTransport};
use args::ToolEffect;
use mcp::ToolCard;
use mcp::client::{self, ClientError};
use mcp::http_client;

/// A server lists its tools within this time, or not at all.
const LIST_MAX: Duration = Duration::from_secs(10);

/// Said of servers that speak no newer transport.
pub(super) const NO_SSE: &str = "sse is not supported, use streamable-http";

/// Longest wait for each answer of a server that is probed.
const PROBE_MAX: Duration = Duration::from_millis(300);

/// A server that is meant: what it is called, where it is and how it is spoken to.
#[derive(Debug)]
pub(super) struct NamedServer {
    pub(super) name: String,
    pub(super) url: String,
    transport: ServerTransport,
    key_env: Option<String>,
}

/// The servers of these names or addresses; an address that is in the record goes by its name there.
pub(super) fn resolve_servers(
    said: &[String],
    record: &ExamRecord,
) -> anyhow::Result<Vec<NamedServer>> {
    let known = record.servers()?;
    said.iter()
        .map(|said| resolve_server(said, &known))
        .collect()
}

fn resolve_server(said: &str, known: &[RecordedServer]) -> anyhow::Result<NamedServer> {
    let mut known = known.iter();
    if let Some(server) = known.find(|server| server.name == said || server.url == said) {
        return Ok(NamedServer {
            name: server.name.clone(),
            url: server.url.clone(),
            transport: server.transport,
            key_env: server.key_env.clone(),
        });
    }
    if !said.contains("://") {
        bail!("there is no server {said:?}; `exam servers list` shows them, or give an address");
    }
    AddressKind::Server.check(said)?;
    Ok(NamedServer {
        name: said.to_owned(),
        url: said.to_owned(),
        transport: ServerTransport::StreamableHttp,
        key_env: None,
    })
}

/// The tools of these servers, all at once.
///
/// # Errors
/// One of them cannot be asked: which, and why. There is no list without it.
pub(super) async fn tools(servers: &[NamedServer]) -> anyhow::Result<Vec<ExamToolCard>> {
    let mut cards = Vec::new();
    let lists = futures::future::join_all(servers.iter().map(listed)).await;
    for (NamedServer { name, .. }, list) in servers.iter().zip(lists) {
        for tool in list.with_context(|| format!("the tools of {name} cannot be listed"))? {
            cards.push(card(name, &tool)?);
        }
    }
    Ok(cards)
}

async fn listed(server: &NamedServer) -> anyhow::Result<Vec<ToolCard>> {
    match tokio::time::timeout(LIST_MAX, ask(server)).await {
        Ok(listed) => listed,
        Err(_) => bail!("it did not answer within {} s", LIST_MAX.as_secs()),
    }
}

async fn ask(server: &NamedServer) -> anyhow::Result<Vec<ToolCard>> {
    match server.transport {
        ServerTransport::Sse => bail!(NO_SSE),
        ServerTransport::Stdio => {
            let listed = node::remote_tools::tools(&server.url).await;
            listed.map_err(anyhow::Error::msg)
        }
        ServerTransport::StreamableHttp => {
            let key = ServerKey::of(server.key_env.as_deref())?;
            match list(&server.url, &key).await {
                Ok(listed) => Ok(listed),
                Err(_) if speaks_sse_alone(&server.url, &key).await => bail!(NO_SSE),
                Err(error) => bail!(key.redact(&error.to_string())),
            }
        }
    }
}

/// Returns whether a server refuses what is posted and opens a stream of events to whoever reads, as the transport before
/// streamable HTTP did.
pub(super) async fn speaks_sse_alone(url: &str, key: &ServerKey) -> bool {
    let ask = |body| tokio::time::timeout(PROBE_MAX, http_client::json(url, key.0.clone(), body));
    let posted = ask(Some(b"{}".to_vec())).await;
    if !matches!(posted, Ok(Ok((404 | 405, _)))) {
        return false;
    }
    match ask(None).await {
        Ok(Ok((status, body))) => status == 200 && body.contains("event:"),
        Ok(Err(_)) => false,
        // A stream stays open.
        Err(_) => true,
    }
}

async fn list(url: &str, key: &ServerKey) -> Result<Vec<ToolCard>, ClientError> {
    let client = client::connect_as(url, key.0.clone()).await?;
    let listed = client.list().await;
    client.close().await;
    listed
}

/// A server's key, which is read when it is needed and shown nowhere.
pub(super) struct ServerKey(pub(super) Option<String>);

impl ServerKey {
    /// The key in this environment variable; none where none is wanted.
    pub(super) fn of(variable: Option<&str>) -> anyhow::Result<Self> {
        let Some(variable) = variable else {
            return Ok(Self(None));
        };
        match std::env::var(variable) {
            Ok(key) if !key.trim().is_empty() => Ok(Self(Some(key))),
            _ => bail!("its key is to be in the environment variable {variable}, which is not set"),
        }
    }

    /// Redacts the key from a server's text, which may echo it.
    pub(super) fn redact(&self, text: &str) -> String {
        match &self.0 {
            Some(key) => text.replace(key.as_str(), "(key)"),
            None => text.to_owned(),
        }
    }
}

/// A tool that does not say that it only reads is held to move something.
fn card(server: &str, tool: &ToolCard) -> anyhow::Result<ExamToolCard> {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema});
    let card = ExamToolCard::defined(&function).map_err(anyhow::Error::msg)?;
    Ok(ExamToolCard {
        server: server.to_owned(),
        does: if tool.hints.read_only {
            ToolEffect::Reads
        } else {
            ToolEffect::Moves
        },
        output_schema: tool.output_schema.clone().map(Value::Object),
        ..card
    })
}
