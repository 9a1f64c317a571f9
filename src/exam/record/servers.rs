//! Servers whose tools may be examined together with the node's own.

use rusqlite::params;
use serde::Serialize;

use super::{Record, now_ms};
use crate::{AddressOf, ExamError};

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A program on its standard input and output.
    Stdio,
    /// HTTP.
    StreamableHttp,
    /// What came before it; recorded, and not spoken.
    Sse,
}

impl Transport {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "streamable-http",
            Self::Sse => "sse",
        }
    }
}

/// Whether a server could be reached when it was last looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nobody has looked.
    Inactive,
    /// It could.
    Active,
    /// It could not.
    Failed,
}

impl Status {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Active => "active",
            Self::Failed => "failed",
        }
    }
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Server {
    /// Its name, unique.
    pub name: String,
    /// Its address or its command, unique.
    pub url: String,
    /// How it is reached.
    pub transport: Transport,
    /// As it was last looked for.
    pub status: Status,
    /// When that was, in milliseconds since 1970.
    pub checked_ms: Option<i64>,
    /// What was found.
    pub told: String,
    /// The environment variable that its key is in, where it wants one. The key itself is never kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
}

impl Record {
    /// Adds a server. Nothing is asked of it.
    ///
    /// # Errors
    /// Its name or address is taken, or the address holds a key.
    pub fn add_server(
        &mut self,
        name: &str,
        url: &str,
        transport: Transport,
        key_env: Option<&str>,
    ) -> Result<(), ExamError> {
        let kind = match transport {
            Transport::Stdio => AddressOf::Command,
            Transport::StreamableHttp | Transport::Sse => AddressOf::Server,
        };
        kind.check(url)?;
        let taken = self.servers()?;
        if let Some(other) = taken.iter().find(|one| one.name == name || one.url == url) {
            return Err(ExamError::Request(format!(
                "there is a server {} at {} already; names and addresses are unique",
                other.name, other.url
            )));
        }
        self.tried(|db| {
            db.execute(
                "INSERT INTO servers (name, url, transport, key_env) VALUES (?1, ?2, ?3, ?4)",
                params![name, url, transport.word(), key_env],
            )
        })?;
        Ok(())
    }

    /// All servers, by name.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn servers(&self) -> Result<Vec<Server>, ExamError> {
        self.tried(|db| {
            let mut rows = db.prepare(
                "SELECT name, url, transport, status, checked_ms, told, key_env FROM servers ORDER BY name",
            )?;
            rows.query_map([], server)?.collect()
        })
    }

    /// Notes what a look for a server found.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn server_found(
        &mut self,
        name: &str,
        status: Status,
        told: &str,
    ) -> Result<(), ExamError> {
        let changed = self.tried(|db| {
            db.execute(
                "UPDATE servers SET status = ?2, told = ?3, checked_ms = ?4 WHERE name = ?1",
                params![name, status.word(), told, now_ms()],
            )
        })?;
        known(changed, name)
    }

    /// Takes a server out, and with it which cases were for it.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn remove_server(&mut self, name: &str) -> Result<(), ExamError> {
        let changed = self.tried(|db| db.execute("DELETE FROM servers WHERE name = ?1", [name]))?;
        known(changed, name)
    }
}

fn known(changed: usize, name: &str) -> Result<(), ExamError> {
    match changed {
        0 => Err(ExamError::Unknown {
            what: "server",
            name: name.to_owned(),
            hint: "`exam servers list` shows them".to_owned(),
        }),
        _ => Ok(()),
    }
}

fn server(row: &rusqlite::Row<'_>) -> rusqlite::Result<Server> {
    let (transport, status): (String, String) = (row.get(2)?, row.get(3)?);
    Ok(Server {
        name: row.get(0)?,
        url: row.get(1)?,
        transport: match transport.as_str() {
            "stdio" => Transport::Stdio,
            "sse" => Transport::Sse,
            _ => Transport::StreamableHttp,
        },
        status: match status.as_str() {
            "active" => Status::Active,
            "failed" => Status::Failed,
            _ => Status::Inactive,
        },
        checked_ms: row.get(4)?,
        told: row.get(5)?,
        key_env: row.get(6)?,
    })
}
