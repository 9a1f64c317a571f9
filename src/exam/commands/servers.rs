//! `exam servers`: lists servers and checks whether they answer.

use std::time::Duration;

use clap::Subcommand;

use super::foreign_servers::{self, ServerKey};
use super::{ExitStatus, print_json, show};
use crate::word::Word;
use crate::{ExamRecord, RecordedServer, ServerChange, ServerStatus, ServerTransport};
use mcp::client;

/// Time limit for checking a server: a check, including the start of this program, must end within two seconds.
const CHECK_MAX: Duration = Duration::from_millis(1_500);

#[derive(Debug, Subcommand)]
pub(super) enum ServersCommand {
    /// Record a server without contacting it
    Add {
        /// Its name
        name: String,
        /// Its address, such as http://127.0.0.1:9000/mcp, or the command line of a program that speaks stdio. It
        /// must contain no key: use --key-env
        url: String,
        /// stdio, streamable-http or sse [default: streamable-http for an address, stdio for a command line]
        #[arg(long, value_enum)]
        transport: Option<ServerTransport>,
        /// The environment variable that holds its key when it is asked; the key itself is never stored
        #[arg(long, value_name = "VARIABLE")]
        key_env: Option<String>,
    },
    /// Change a server; other values stay
    Edit {
        /// Its name
        name: String,
        #[command(flatten)]
        change: ServerChange,
    },
    /// Check whether servers answer: all, or one
    Check {
        /// Its name
        name: Option<String>,
    },
    /// List names, addresses and the result of the last check
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a server
    Remove {
        /// Its name
        name: String,
    },
}

pub(super) async fn run(
    what: ServersCommand,
    record: &mut ExamRecord,
) -> anyhow::Result<ExitStatus> {
    match what {
        ServersCommand::Add {
            name,
            url,
            transport,
            key_env,
        } => {
            let transport = transport.unwrap_or_else(|| ServerTransport::of(&url));
            record.add_server(&name, &url, transport, key_env.as_deref())?;
        }
        ServersCommand::Edit { name, change } => record.edit_server(&name, change)?,
        ServersCommand::Check { name } => return check(name.as_deref(), record).await,
        ServersCommand::List { json } => {
            let servers = record.servers()?;
            if json {
                print_json(&servers)?;
            } else {
                servers.iter().for_each(|server| show::line(&line(server)));
            }
        }
        ServersCommand::Remove { name } => record.remove_server(&name)?,
    }
    Ok(ExitStatus::Done)
}

fn line(server: &RecordedServer) -> String {
    format!(
        "{:<20} {:<9} {:<16} {} {}",
        server.name,
        server.status.word(),
        server.transport.word(),
        server.url,
        server.told
    )
}

/// Checks servers concurrently, so that many take no longer than one.
async fn check(name: Option<&str>, record: &mut ExamRecord) -> anyhow::Result<ExitStatus> {
    let mut servers = record.servers()?;
    servers.retain(|server| name.is_none_or(|name| server.name == name));
    let results = futures::future::join_all(servers.iter().map(probe)).await;
    let mut all_active = true;
    for (server, (status, result)) in servers.iter().zip(results) {
        record.set_server_status(&server.name, status, &result)?;
        all_active &= status == ServerStatus::Active;
        show::line(&format!(
            "{:<20} {:<9} {result}",
            server.name,
            status.word()
        ));
    }
    if let (Some(name), true) = (name, servers.is_empty()) {
        record.set_server_status(name, ServerStatus::Failed, "")?;
    }
    Ok(ExitStatus::of(all_active))
}

/// Checks whether a server opens the protocol in time.
async fn probe(server: &RecordedServer) -> (ServerStatus, String) {
    let greeting = async {
        match server.transport {
            ServerTransport::Sse => Err(foreign_servers::NO_SSE.to_owned()),
            ServerTransport::StreamableHttp => {
                let key =
                    ServerKey::of(server.key_env.as_deref()).map_err(|error| error.to_string())?;
                match client::connect_as(&server.url, key.0.clone()).await {
                    Ok(client) => Ok(key.redact(&client.server().unwrap_or_default())),
                    Err(_) if foreign_servers::speaks_sse_alone(&server.url, &key).await => {
                        Err(foreign_servers::NO_SSE.to_owned())
                    }
                    Err(error) => Err(key.redact(&error.to_string())),
                }
            }
            ServerTransport::Stdio => node::remote_tools::greet(&server.url)
                .await
                .map_err(String::from),
        }
    };
    match tokio::time::timeout(CHECK_MAX, greeting).await {
        Ok(Ok(result)) => (ServerStatus::Active, result),
        Ok(Err(result)) => (ServerStatus::Failed, result),
        Err(_) => (
            ServerStatus::Failed,
            format!("it did not answer within {} ms", CHECK_MAX.as_millis()),
        ),
    }
}
