//! Servers whose tools may be examined together with the node's own.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::{ExamRecord, now_ms};
use crate::word::Word;
use crate::{AddressKind, ExamError};

/// Transport by which a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ServerTransport {
    /// A program on its standard input and output.
    #[value(help = None)]
    Stdio,
    /// HTTP.
    #[value(help = None)]
    StreamableHttp,
    /// The older SSE transport; recorded, but not supported.
    #[value(help = None)]
    Sse,
}

impl ServerTransport {
    /// Guesses the transport from an address or command line: a scheme or a port makes an address.
    pub(crate) fn of(url: &str) -> Self {
        let is_one_word = !url.contains(char::is_whitespace);
        if is_one_word && url.contains(':') && !url.starts_with('/') {
            Self::StreamableHttp
        } else {
            Self::Stdio
        }
    }
}

/// Result of the last check whether a server could be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerStatus {
    /// Not checked yet.
    Inactive,
    /// It could be reached.
    Active,
    /// It could not be reached.
    Failed,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RecordedServer {
    /// Its name, unique.
    pub(crate) name: String,
    /// Its address or its command, unique.
    pub(crate) url: String,
    /// Transport of the server.
    pub(crate) transport: ServerTransport,
    /// Status at the last check.
    pub(crate) status: ServerStatus,
    /// Time of that check, in milliseconds since 1970.
    pub(crate) checked_ms: Option<i64>,
    /// Result of that check.
    pub(crate) told: String,
    /// The environment variable that holds its key, if it needs one. The key itself is never stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_env: Option<String>,
    /// Time of its addition, in milliseconds since 1970; unknown for those of earlier versions.
    pub(crate) created_at: Option<i64>,
    /// Time of its last edit.
    pub(crate) updated_at: Option<i64>,
    /// Time of its last answer.
    pub(crate) last_connected: Option<i64>,
}

/// Changes to a server; absent values stay.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct ServerChange {
    /// Another name
    #[arg(long = "rename", id = "rename", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Another address or command line
    #[arg(long)]
    pub(crate) url: Option<String>,
    // Derived from the address if only that changes.
    /// stdio, streamable-http or sse
    #[arg(long, value_enum)]
    pub(crate) transport: Option<ServerTransport>,
    /// Another variable that holds its key; empty if it needs none
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key_env: Option<String>,
}

impl ExamRecord {
    /// Adds a server without contacting it.
    ///
    /// # Errors
    /// Fails if its name or address is taken or the address contains a key.
    pub(crate) fn add_server(
        &mut self,
        name: &str,
        url: &str,
        transport: ServerTransport,
        key_env: Option<&str>,
    ) -> Result<(), ExamError> {
        self.check_server(None, name, url, transport, key_env)?;
        self.execute(
            "INSERT INTO servers (name, url, transport, key_env, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
            params![name, url, transport.word(), key_env, now_ms()],
        )?;
        Ok(())
    }

    /// Changes a server. A new address or transport clears the result of the last check.
    ///
    /// # Errors
    /// Fails if no server has this name or [`ExamRecord::add_server`] would refuse the result.
    pub(crate) fn edit_server(
        &mut self,
        name: &str,
        change: ServerChange,
    ) -> Result<(), ExamError> {
        let all = self.servers()?;
        let Some(old) = all.into_iter().find(|server| server.name == name) else {
            return check_found(0, name);
        };
        let is_moved = change.url.is_some() || change.transport.is_some();
        let of_url = change.url.as_deref().map(ServerTransport::of);
        let transport = change.transport.or(of_url).unwrap_or(old.transport);
        let new_name = change.name.unwrap_or(old.name);
        let url = change.url.unwrap_or(old.url);
        let key_env = change.key_env.or(old.key_env).filter(|one| !one.is_empty());
        self.check_server(Some(name), &new_name, &url, transport, key_env.as_deref())?;
        self.execute(
            "UPDATE servers SET name = ?2, url = ?3, transport = ?4, key_env = ?5, updated_ms = ?6, \
             status = iif(?7, 'inactive', status), told = iif(?7, '', told) WHERE name = ?1",
            params![name, new_name, url, transport.word(), key_env, now_ms(), is_moved],
        )?;
        Ok(())
    }

    /// Refuses a server whose lengths or address are wrong, or whose name or address a server other than `own` has.
    fn check_server(
        &self,
        own: Option<&str>,
        name: &str,
        url: &str,
        transport: ServerTransport,
        key_env: Option<&str>,
    ) -> Result<(), ExamError> {
        for (what, text, most) in [
            ("the server's name", name, 100),
            ("the server's address", url, 2_000),
            ("the variable", key_env.unwrap_or("x"), 100),
        ] {
            let length = text.chars().count();
            if !(1..=most).contains(&length) {
                return Err(ExamError::Setting {
                    name: what,
                    value: format!("{length} characters long"),
                    range: format!("1 to {most} characters"),
                });
            }
        }
        if key_env.is_some() && transport == ServerTransport::Stdio {
            return Err(ExamError::Request(
                "--key-env is only for an address: a program inherits the environment. Next: leave --key-env out"
                    .to_owned(),
            ));
        }
        let kind = match transport {
            ServerTransport::Stdio => AddressKind::Command,
            ServerTransport::StreamableHttp | ServerTransport::Sse => AddressKind::Server,
        };
        kind.check(url)?;
        let all = self.servers()?;
        let mut others = all.iter().filter(|one| Some(one.name.as_str()) != own);
        match others.find(|server| server.name == name || server.url == url) {
            Some(other) => Err(ExamError::Request(format!(
                "there is already a server {} at {}",
                other.name, other.url
            ))),
            None => Ok(()),
        }
    }

    /// Returns all servers, by name.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub(crate) fn servers(&self) -> Result<Vec<RecordedServer>, ExamError> {
        self.rows(
            "SELECT name, url, transport, status, checked_ms, told, key_env, created_ms, updated_ms, connected_ms FROM servers ORDER BY name",
            [],
            server,
        )
    }

    /// Records the result of checking a server.
    ///
    /// # Errors
    /// Fails if no server has this name.
    pub(crate) fn set_server_status(
        &mut self,
        name: &str,
        status: ServerStatus,
        told: &str,
    ) -> Result<(), ExamError> {
        let changed = self.execute(
            "UPDATE servers SET status = ?2, told = ?3, checked_ms = ?4, \
             connected_ms = iif(?2 = 'active', ?4, connected_ms) WHERE name = ?1",
            params![name, status.word(), told, now_ms()],
        )?;
        check_found(changed, name)
    }

    /// Removes a server, and the links from cases to it.
    ///
    /// # Errors
    /// Fails if no server has this name.
    pub(crate) fn remove_server(&mut self, name: &str) -> Result<(), ExamError> {
        check_found(
            self.execute("DELETE FROM servers WHERE name = ?1", [name])?,
            name,
        )
    }
}

fn check_found(changed: usize, name: &str) -> Result<(), ExamError> {
    match changed {
        0 => Err(ExamError::Unknown {
            what: "server",
            name: name.to_owned(),
            hint: "`steadyhand exam servers list` shows them".to_owned(),
        }),
        _ => Ok(()),
    }
}

fn server(row: &rusqlite::Row<'_>) -> rusqlite::Result<RecordedServer> {
    Ok(RecordedServer {
        name: row.get(0)?,
        url: row.get(1)?,
        transport: super::word_at(row, 2)?,
        status: super::word_at(row, 3)?,
        checked_ms: row.get(4)?,
        told: row.get(5)?,
        key_env: row.get(6)?,
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
        last_connected: row.get(9)?,
    })
}
