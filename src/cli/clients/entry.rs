//! The entry of a node in clients' files: a command that starts one, or the address of a running one.

use std::path::PathBuf;

use anyhow::{Context, anyhow, ensure};
use serde_json::{Map, Value, json};

use super::ClientKind;
use crate::{NodeOptions, given_options};

/// A client's connection to its node.
pub(super) enum NodeConnection {
    /// The client starts a node and uses its standard input and output.
    Started {
        command: PathBuf,
        arguments: Vec<String>,
    },
    /// The client connects to a running node.
    Running { url: String, has_token: bool },
}

/// Environment variable from which clients read the token, if they can.
const TOKEN_VARIABLE: &str = "STEADYHAND_TOKEN";

impl NodeConnection {
    /// Returns this program with absolute paths in its options: clients start it in their own folder with their own `PATH`.
    pub(super) fn started(node: &NodeOptions) -> anyhow::Result<Self> {
        let command = std::env::current_exe().context("the path of this program is unknown")?;
        let options = given_options::arguments(&with_absolute_paths(node)?).into_iter();
        let options = options.map(|word| word.into_string());
        let options = options.collect::<Result<Vec<String>, _>>();
        let mut arguments = options.map_err(|word| {
            anyhow!(
                "{} is not valid text, so a client's file cannot name it",
                word.display()
            )
        })?;
        arguments.push("serve".to_owned());
        Ok(Self::Started { command, arguments })
    }

    /// Returns the address of a running node; a missing `/mcp` is added.
    pub(super) fn to_url(url: &str, has_token: bool) -> anyhow::Result<Self> {
        let address = match url.contains("://") {
            true => url.to_owned(),
            false => format!("http://{url}"),
        };
        let error_text = || format!("{url:?} is not an address, such as http://127.0.0.1:8700");
        let uri: http::Uri = address.parse().with_context(error_text)?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        ensure!(is_http && uri.authority().is_some(), error_text());
        let base = address.trim_end_matches('/');
        let url = match uri.path() {
            "" | "/" => format!("{base}/mcp"),
            _ => base.to_owned(),
        };
        Ok(Self::Running { url, has_token })
    }

    pub(super) const fn is_started(&self) -> bool {
        matches!(self, Self::Started { .. })
    }

    /// Returns the entry of this node in the form of a client.
    pub(super) fn entry(&self, client: ClientKind) -> Value {
        let mut entry = Map::new();
        let mut set = |key: &str, value| entry.insert(key.to_owned(), value);
        let transport = match self {
            Self::Started { command, arguments } => {
                set("command", json!(command));
                set("args", json!(arguments));
                "stdio"
            }
            Self::Running { url, .. } => {
                set("url", json!(url));
                http_type(client)
            }
        };
        if has_types(client) {
            set("type", json!(transport));
        }
        if let Self::Running {
            has_token: true, ..
        } = self
        {
            let token = format!("Bearer {}", token_placeholder(client));
            set("headers", json!({ "Authorization": token }));
        }
        Value::Object(entry)
    }
}

/// Returns whether entries name their transport.
const fn has_types(client: ClientKind) -> bool {
    matches!(
        client,
        ClientKind::ClaudeCode | ClientKind::Vscode | ClientKind::Inspector
    )
}

const fn http_type(client: ClientKind) -> &'static str {
    match client {
        ClientKind::Inspector => "streamable-http",
        _ => "http",
    }
}

/// Returns the token's placeholder for a client; clients that read no variables need the token itself in the file.
fn token_placeholder(client: ClientKind) -> String {
    match client {
        ClientKind::ClaudeCode => format!("${{{TOKEN_VARIABLE}}}"),
        ClientKind::Vscode | ClientKind::Cursor => format!("${{env:{TOKEN_VARIABLE}}}"),
        _ => "PASTE-THE-TOKEN-HERE".to_owned(),
    }
}

/// Returns a node's options for a program that starts in another folder.
fn with_absolute_paths(node: &NodeOptions) -> anyhow::Result<NodeOptions> {
    let mut node = node.clone();
    let paths = [
        &mut node.config,
        &mut node.scenes,
        &mut node.output,
        &mut node.state,
        &mut node.trace,
    ];
    for path in paths.into_iter().flatten() {
        *path = std::path::absolute(&*path)
            .with_context(|| format!("the full path of {} cannot be found", path.display()))?;
    }
    Ok(node)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_its_path_and_other_text_is_refused() {
        for (text, url) in [
            ("127.0.0.1:8700", "http://127.0.0.1:8700/mcp"),
            ("http://arm:8700/", "http://arm:8700/mcp"),
            ("https://arm/mcp", "https://arm/mcp"),
            ("https://arm/lab/mcp/", "https://arm/lab/mcp"),
        ] {
            let connection = NodeConnection::to_url(text, false).unwrap();
            let entry = connection.entry(ClientKind::Cursor);
            assert_eq!(entry, json!({ "url": url }), "{text}");
        }
        for text in ["", "ftp://arm", "http://", "a b"] {
            assert!(NodeConnection::to_url(text, false).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_command_repeats_every_option_that_was_given() {
        let node = NodeOptions {
            scenes: Some("own".into()),
            record: true,
            log: Some(node::log::LogFormat::Json),
            ..NodeOptions::default()
        };
        let entry = NodeConnection::started(&node).unwrap();
        let entry = entry.entry(ClientKind::Cursor);
        let folder = std::path::absolute("own").unwrap();
        let arguments = json!(["--scenes", folder, "--log", "json", "--record", "serve"]);
        assert_eq!(entry["args"], arguments);
    }

    #[test]
    fn a_token_is_named_and_never_written() {
        let connection = NodeConnection::to_url("arm:8700", true).unwrap();
        for (client, place) in [
            (ClientKind::ClaudeCode, "Bearer ${STEADYHAND_TOKEN}"),
            (ClientKind::Vscode, "Bearer ${env:STEADYHAND_TOKEN}"),
            (ClientKind::LmStudio, "Bearer PASTE-THE-TOKEN-HERE"),
        ] {
            let entry = connection.entry(client);
            assert_eq!(entry["headers"]["Authorization"], place);
        }
    }
}
