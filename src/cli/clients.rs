//! `clients`: prints a client's configuration for this node, or writes it into the client's own file.

mod config_file;
mod entry;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::questions;
use super::{ExitStatus, NodeOptions, terminal_output};
use base::file_access::{self, HOME};
use config_file::{ConfigChange, ConfigFile};
use entry::NodeConnection;

#[derive(Debug, Args)]
pub(super) struct ClientsArgs {
    /// The client [default: list all of them]
    client: Option<ClientKind>,
    /// Connect to a node that runs and serves HTTP, such as http://127.0.0.1:8700, instead of starting one
    #[arg(long, value_name = "URL")]
    node: Option<String>,
    /// Send a token; the configuration says where the client looks for it
    #[arg(long, requires = "node")]
    token: bool,
    /// Name of the server in the client; clients put it before each tool's name
    #[arg(long, default_value = "steadyhand", value_parser = server_name)]
    name: String,
    /// Add it to the client's file; asks first
    #[arg(long, requires = "client")]
    write: bool,
    /// The file, if the client keeps it elsewhere
    #[arg(long, value_name = "FILE", requires = "write")]
    file: Option<PathBuf>,
    /// Do not ask
    #[arg(long, requires = "write")]
    yes: bool,
}

/// An MCP client, or a program that gives a model tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ClientKind {
    ClaudeDesktop,
    ClaudeCode,
    Vscode,
    Cursor,
    LmStudio,
    Inspector,
    /// The web page of `llama-server`
    #[value(name = "llama.cpp")]
    LlamaCpp,
    /// Agents that take servers as the OpenAI Agents SDK does
    OpenaiAgents,
}

/// Longest name, so that it and a tool's name stay below the 60 characters that some clients allow.
const NAME_CHARS_MAX: usize = 20;

fn server_name(name: &str) -> Result<String, &'static str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_short = (1..=NAME_CHARS_MAX).contains(&name.len());
    let starts_with_letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_short && starts_with_letter && name.chars().all(is_allowed))
        .then(|| name.to_owned())
        .ok_or("a name begins with a letter and has at most 20 letters, digits, - or _")
}

pub(super) fn run(node: &NodeOptions, args: &ClientsArgs) -> anyhow::Result<ExitStatus> {
    let connection = match &args.node {
        Some(url) => NodeConnection::to_url(url, args.token)?,
        None => NodeConnection::started(node)?,
    };
    let Some(client) = args.client else {
        list(&connection);
        return Ok(ExitStatus::Done);
    };
    let printed = client.configuration(&args.name, &connection)?;
    if args.write {
        return write(client, args, &printed);
    }
    terminal_output::json(&printed)?;
    terminal_output::note(&client.next_step(&args.name, &connection));
    Ok(ExitStatus::Done)
}

fn list(connection: &NodeConnection) {
    for client in ClientKind::value_variants() {
        let file = match client.file() {
            Some(file) if client.supports(connection) => file.display().to_string(),
            Some(_) => "this client starts its own node: leave --node out".to_owned(),
            None => "no file: the text is printed".to_owned(),
        };
        terminal_output::line(&format!("{:16} {file}", client.word()));
    }
    terminal_output::note(
        "`steadyhand clients NAME` prints a client's configuration; --write puts it into the client's file",
    );
}

impl ClientKind {
    fn word(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns the key under which the client's file lists servers.
    const fn servers_key(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            _ => "mcpServers",
        }
    }

    /// Returns whether the client can use this kind of connection.
    fn supports(self, connection: &NodeConnection) -> bool {
        match self {
            Self::ClaudeDesktop => connection.is_started(),
            Self::LlamaCpp => !connection.is_started(),
            _ => true,
        }
    }

    fn configuration(self, name: &str, connection: &NodeConnection) -> anyhow::Result<Value> {
        if !self.supports(connection) {
            bail!(match self {
                Self::LlamaCpp =>
                    "llama.cpp's page needs a running node. Next: `steadyhand serve --http 127.0.0.1:8700`, then add --node http://127.0.0.1:8700",
                _ =>
                    "Claude Desktop's file cannot name a running server. Next: leave --node out, or add the address under Settings, Connectors",
            });
        }
        let entry = connection.entry(self);
        Ok(match self {
            Self::LlamaCpp => entry,
            Self::OpenaiAgents => json!({ "name": name, "params": entry }),
            _ => json!({ self.servers_key(): { name: entry } }),
        })
    }

    /// Returns the file in which the client looks for servers: its own, or the project's in this folder.
    fn file(self) -> Option<PathBuf> {
        let home = || std::env::var_os(HOME).map(PathBuf::from);
        match self {
            Self::ClaudeDesktop => {
                let settings = file_access::xdg_folder("XDG_CONFIG_HOME");
                let settings = settings.or_else(|| Some(home()?.join(".config")));
                Some(settings?.join("Claude/claude_desktop_config.json"))
            }
            Self::ClaudeCode => Some(PathBuf::from(".mcp.json")),
            Self::Vscode => Some(PathBuf::from(".vscode/mcp.json")),
            Self::Cursor => Some(home()?.join(".cursor/mcp.json")),
            Self::LmStudio => Some(home()?.join(".lmstudio/mcp.json")),
            Self::Inspector => Some(PathBuf::from("mcp.json")),
            Self::LlamaCpp | Self::OpenaiAgents => None,
        }
    }

    fn next_step(self, name: &str, connection: &NodeConnection) -> String {
        let step = match self {
            Self::ClaudeDesktop => "restart Claude Desktop".to_owned(),
            Self::ClaudeCode => "start `claude` in this folder and allow the server".to_owned(),
            Self::Vscode => "open this folder in the client and press Start above the entry".to_owned(),
            Self::Cursor => "switch the server on in Settings, MCP".to_owned(),
            Self::LmStudio => "switch the server on in the Program tab".to_owned(),
            Self::Inspector => format!(
                "`npx @modelcontextprotocol/inspector --config mcp.json --server {name}`"
            ),
            Self::LlamaCpp => {
                "start `llama-server --jinja --webui-mcp-proxy` and add the address under Settings, MCP"
                    .to_owned()
            }
            Self::OpenaiAgents => {
                let class = if connection.is_started() {
                    "MCPServerStdio"
                } else {
                    "MCPServerStreamableHttp"
                };
                format!("these are the arguments of `{class}`. `steadyhand tools --format openai` prints the tools for a plain chat endpoint")
            }
        };
        match self.file() {
            Some(file) => format!("copy this into {}, then {step}", file.display()),
            None => step,
        }
    }
}

fn write(client: ClientKind, args: &ClientsArgs, printed: &Value) -> anyhow::Result<ExitStatus> {
    let file = args.file.clone().or_else(|| client.file());
    let path = file.with_context(|| {
        format!(
            "{} does not store its servers in a file. Next: leave --write out and copy the printed text",
            client.word()
        )
    })?;
    let (key, name) = (client.servers_key(), args.name.as_str());
    let entry = printed
        .get(key)
        .and_then(|servers| servers.get(name))
        .cloned()
        .with_context(|| format!("{} has no file for servers", client.word()))?;
    let file = ConfigFile::read(&path)?;
    let (text, change) = file.with_server(key, name, entry)?;
    let question = match change {
        ConfigChange::None => {
            return terminal_output::done(&format!("{} already has this entry", path.display()));
        }
        ConfigChange::Added => format!("add `{name}` to {}?", path.display()),
        ConfigChange::Replaced => format!("replace `{name}` in {}?", path.display()),
    };
    let refusal = format!(
        "a person must confirm at a terminal before {} is changed. Next: run this at a terminal, or add --yes",
        path.display()
    );
    if !args.yes && !questions::confirm(&format!("{question} [y/N]"), &refusal)? {
        return terminal_output::refused("nothing was written");
    }
    file.write(&text)?;
    terminal_output::done(&format!("wrote {}", path.display()))
}
