//! Deletes runs with everything that belongs to them, and names the tools of the remaining ones.

use std::collections::HashMap;

use super::ExamRecord;
use crate::ExamError;
use crate::tool_similarity::label;

impl ExamRecord {
    /// Deletes a run and what belongs to it: its settings, tools, cases, answers, results, and certificates that were revoked.
    ///
    /// # Errors
    /// Fails if there is no such run, it is still running, or a certificate that it earned is not revoked.
    pub(crate) fn delete_run(&mut self, run: i64) -> Result<(), ExamError> {
        let row = self.run(Some(run))?;
        if !matches!(row.status.as_str(), "completed" | "failed") {
            return Err(ExamError::Request(format!(
                "run {run} is {}; only an ended run can be deleted",
                row.status
            )));
        }
        let earned = "SELECT min(id) FROM certificates WHERE run_id = ?1 AND revoked_ms IS NULL";
        let earned: Option<String> = self.value(earned, [run])?;
        if let Some(id) = earned {
            return Err(ExamError::Request(format!(
                "deleting run {run} would delete its certificate {id}. Next: `steadyhand exam certificate revoke {id}`"
            )));
        }
        self.execute("DELETE FROM runs WHERE id = ?1", [run])?;
        Ok(())
    }

    /// Returns the labels of a run's tools, by the names under which the run showed them: `SERVER/TOOL` with the server's
    /// present name, and the plain name for the node's own.
    pub(crate) fn labels(&self, run: i64) -> Result<HashMap<String, String>, ExamError> {
        let labels: Vec<(String, String)> = self.rows(
            "SELECT t.name, coalesce(s.name, t.server), coalesce(t.own_name, t.name) FROM tools t \
             LEFT JOIN servers s ON s.url = t.server WHERE t.run_id = ?1",
            [run],
            |row| {
                let (server, own): (String, String) = (row.get(1)?, row.get(2)?);
                Ok((row.get(0)?, label(&server, &own)))
            },
        )?;
        Ok(labels.into_iter().collect())
    }
}
