//! Lists the tools of other servers.

use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::{AddressKind, ExamRecord, ExamToolCard, RecordedServer, ServerTransport};
use args::ToolEffect;
use mcp::ToolCard;
use mcp::client::{self, ClientError};
use mcp::http_client;

/// Time limit for a server to list its tools.
const LIST_MAX: Duration = Duration::from_secs(10);

/// Error for servers that speak only the older transport.
pub(super) const NO_SSE: &str = "`sse` is not supported. Next: use `streamable-http`";

/// Time limit for each answer of a probed server.
const PROBE_MAX: Duration = Duration::from_millis(300);

/// A server to examine: its name, address and transport.
#[derive(Debug)]
pub(super) struct NamedServer {
    pub(super) name: String,
    pub(super) url: String,
    transport: ServerTransport,
    key_env: Option<String>,
}

/// Finds the servers with these names or addresses; an address in the record gets its name from there.
pub(super) fn resolve_servers(
    requested: &[String],
    record: &ExamRecord,
) -> anyhow::Result<Vec<NamedServer>> {
    let recorded = record.servers()?;
    requested
        .iter()
        .map(|name| resolve_server(name, &recorded))
        .collect()
}

fn resolve_server(name: &str, recorded: &[RecordedServer]) -> anyhow::Result<NamedServer> {
    let mut recorded = recorded.iter();
    if let Some(server) = recorded.find(|server| server.name == name || server.url == name) {
        return Ok(NamedServer {
            name: server.name.clone(),
            url: server.url.clone(),
            transport: server.transport,
            key_env: server.key_env.clone(),
        });
    }
    if !name.contains("://") {
        bail!(
            "there is no server {name:?}. Next: `steadyhand exam servers list`, or give an address"
        );
    }
    AddressKind::Server.check(name)?;
    Ok(NamedServer {
        name: name.to_owned(),
        url: name.to_owned(),
        transport: ServerTransport::StreamableHttp,
        key_env: None,
    })
}

/// Lists the tools of these servers concurrently.
///
/// # Errors
/// Fails with the name of a server that cannot be asked. There is no list without it.
pub(super) async fn tools(servers: &[NamedServer]) -> anyhow::Result<Vec<ExamToolCard>> {
    let mut cards = Vec::new();
    let lists = futures::future::join_all(servers.iter().map(list_in_time)).await;
    for (NamedServer { name, .. }, list) in servers.iter().zip(lists) {
        for tool in list.with_context(|| format!("the tools of {name} cannot be listed"))? {
            cards.push(card(name, &tool)?);
        }
    }
    Ok(cards)
}

async fn list_in_time(server: &NamedServer) -> anyhow::Result<Vec<ToolCard>> {
    match tokio::time::timeout(LIST_MAX, list_tools(server)).await {
        Ok(listed) => listed,
        Err(_) => bail!("it did not answer within {} s", LIST_MAX.as_secs()),
    }
}

async fn list_tools(server: &NamedServer) -> anyhow::Result<Vec<ToolCard>> {
    match server.transport {
        ServerTransport::Sse => bail!(NO_SSE),
        ServerTransport::Stdio => {
            let listed = node::remote_tools::tools(&server.url).await;
            listed.map_err(anyhow::Error::msg)
        }
        ServerTransport::StreamableHttp => {
            let key = ServerKey::of(server.key_env.as_deref())?;
            match list_over_http(&server.url, &key).await {
                Ok(listed) => Ok(listed),
                Err(_) if speaks_sse_alone(&server.url, &key).await => bail!(NO_SSE),
                Err(error) => bail!(key.redact(&error.to_string())),
            }
        }
    }
}

/// Returns whether a server refuses a POST and answers a GET with a stream of events, as the transport before streamable
/// HTTP did.
pub(super) async fn speaks_sse_alone(url: &str, key: &ServerKey) -> bool {
    let send = |body| tokio::time::timeout(PROBE_MAX, http_client::json(url, key.0.clone(), body));
    let post_reply = send(Some(b"{}".to_vec())).await;
    if !matches!(post_reply, Ok(Ok((404 | 405, _)))) {
        return false;
    }
    match send(None).await {
        Ok(Ok((status, body))) => status == 200 && body.contains("event:"),
        Ok(Err(_)) => false,
        // A stream stays open.
        Err(_) => true,
    }
}

async fn list_over_http(url: &str, key: &ServerKey) -> Result<Vec<ToolCard>, ClientError> {
    let client = client::connect_as(url, key.0.clone()).await?;
    let listed = client.list().await;
    client.close().await;
    listed
}

/// A server's key. It is read when needed and never shown.
pub(super) struct ServerKey(pub(super) Option<String>);

impl ServerKey {
    /// Reads the key from this environment variable; without a variable there is no key.
    pub(super) fn of(variable: Option<&str>) -> anyhow::Result<Self> {
        let Some(variable) = variable else {
            return Ok(Self(None));
        };
        match std::env::var(variable) {
            Ok(key) if !key.trim().is_empty() => Ok(Self(Some(key))),
            _ => {
                bail!("its key must be in the environment variable {variable}, which is not set")
            }
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

/// Builds a tool. One that is not marked as read-only is assumed to move something.
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
