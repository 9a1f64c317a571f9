//! Runs deleted with all that belongs to them, and the names of tools in those that are kept.

use std::collections::HashMap;

use super::ExamRecord;
use crate::ExamError;
use crate::tool_similarity::label;

impl ExamRecord {
    /// Deletes a run and what belongs to it: its settings, tools, cases, answers, results, and certificates that were revoked.
    ///
    /// # Errors
    /// There is no such run, it is still going on, or a certificate that it earned is not revoked.
    pub(crate) fn delete_run(&mut self, run: i64) -> Result<(), ExamError> {
        let row = self.run(Some(run))?;
        if !matches!(row.status.as_str(), "completed" | "failed") {
            return Err(ExamError::Request(format!(
                "run {run} is {}; it can be deleted when it has ended",
                row.status
            )));
        }
        let earned = "SELECT min(id) FROM certificates WHERE run_id = ?1 AND revoked_ms IS NULL";
        let earned: Option<String> = self.value(earned, [run])?;
        if let Some(id) = earned {
            return Err(ExamError::Request(format!(
                "run {run} has earned certificate {id}, which would go with it; `exam certificate revoke {id}` first"
            )));
        }
        self.execute("DELETE FROM runs WHERE id = ?1", [run])?;
        Ok(())
    }

    /// By the name under which a run showed a tool its name beside other servers' tools: `SERVER/TOOL` as the server is called
    /// now, the node's own by their names.
    pub(crate) fn labels(&self, run: i64) -> Result<HashMap<String, String>, ExamError> {
        let named: Vec<(String, String)> = self.rows(
            "SELECT t.name, coalesce(s.name, t.server), coalesce(t.own_name, t.name) FROM tools t \
             LEFT JOIN servers s ON s.url = t.server WHERE t.run_id = ?1",
            [run],
            |row| {
                let (server, own): (String, String) = (row.get(1)?, row.get(2)?);
                Ok((row.get(0)?, label(&server, &own)))
            },
        )?;
        Ok(named.into_iter().collect())
    }
}
