//! The operator's own cases.

use rusqlite::params;
use serde::Serialize;

use super::{ExamRecord, now_ms};
use crate::word::Word;
use crate::{ExamCase, ExamError};

/// A case of the operator's own, with its times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct OwnCase {
    /// The case.
    #[serde(flatten)]
    pub(crate) case: ExamCase,
    /// Time of its addition, in milliseconds since 1970.
    pub(crate) created_at: i64,
    /// Time of its last change.
    pub(crate) updated_at: Option<i64>,
}

impl ExamRecord {
    /// Adds cases, all or none; one of the same name is replaced.
    ///
    /// # Errors
    /// Fails if the record cannot be written.
    pub(crate) fn add_cases(&mut self, cases: &[ExamCase]) -> Result<(), ExamError> {
        self.in_transaction(|tx| {
            for case in cases {
                tx.execute(
                    "INSERT INTO cases (name, query, expected_tool, class, hazard, body, added_ms, updated_ms) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) \
                     ON CONFLICT (name) DO UPDATE SET query = excluded.query, expected_tool = excluded.expected_tool, \
                     class = excluded.class, hazard = excluded.hazard, body = excluded.body, updated_ms = excluded.updated_ms",
                    params![
                        case.name,
                        case.query,
                        case.expected_tool,
                        case.class.word(),
                        case.hazard.map(|hazard| hazard.word()),
                        case.line(),
                        now_ms()
                    ],
                )?;
                tx.execute(
                    "DELETE FROM case_servers WHERE case_id = (SELECT id FROM cases WHERE name = ?1)",
                    [&case.name],
                )?;
                for server in case.named_servers() {
                    tx.execute(
                        "INSERT OR IGNORE INTO case_servers (case_id, server_id) \
                         SELECT c.id, s.id FROM cases c, servers s WHERE c.name = ?1 AND s.name = ?2",
                        params![case.name, server],
                    )?;
                }
            }
            Ok(())
        })
    }

    /// Checks that the servers of these cases are recorded: a case for an unknown server would never be asked.
    ///
    /// # Errors
    /// Fails if a server is not recorded or the record cannot be read.
    pub(crate) fn check_servers_known(&self, cases: &[ExamCase]) -> Result<(), ExamError> {
        let known = self.servers()?;
        let is_known = |name: &str| known.iter().any(|server| server.name == name);
        for case in cases {
            if let Some(server) = case.named_servers().find(|name| !is_known(name)) {
                return Err(ExamError::Request(format!(
                    "case {} is for the server {server:?}, which does not exist. Next: `steadyhand exam servers add`",
                    case.name
                )));
            }
        }
        Ok(())
    }

    /// Returns the operator's own cases, in the order in which they were added.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub(crate) fn cases(&self) -> Result<Vec<ExamCase>, ExamError> {
        self.case_lines("SELECT body FROM cases ORDER BY id", [])
    }

    /// Returns the operator's own cases with their times, in the order in which they were added.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub(crate) fn own_cases(&self) -> Result<Vec<OwnCase>, ExamError> {
        let sql = "SELECT added_ms, updated_ms FROM cases ORDER BY id";
        let times: Vec<(i64, Option<i64>)> =
            self.rows(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let own_case = |(case, (created_at, updated_at))| OwnCase {
            case,
            created_at,
            updated_at,
        };
        Ok(self.cases()?.into_iter().zip(times).map(own_case).collect())
    }

    /// Removes a case.
    ///
    /// # Errors
    /// Fails if no case has this name.
    pub(crate) fn remove_case(&mut self, name: &str) -> Result<(), ExamError> {
        match self.execute("DELETE FROM cases WHERE name = ?1", [name])? {
            0 => Err(ExamError::Unknown {
                what: "case of your own",
                name: name.to_owned(),
                hint: "`steadyhand exam cases list` shows them (shipped cases cannot be removed)"
                    .to_owned(),
            }),
            _ => Ok(()),
        }
    }
}
