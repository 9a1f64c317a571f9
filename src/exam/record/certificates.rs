//! Certificates, as they were signed.

use rusqlite::{OptionalExtension as _, Row, params};

use super::{ExamRecord, now_ms};
use crate::{ExamError, Level, PlannerCertificate};

/// Certificate in the record. Its user must first check the signature over `text`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredCertificate {
    /// Its name.
    pub(crate) id: String,
    /// Signed text.
    pub(crate) text: String,
    /// The signature, as hexadecimal digits.
    pub(crate) signature: String,
    /// Milliseconds since 1970 from which on it counts no more.
    pub(crate) revoked_ms: Option<i64>,
}

const HELD: &str = "SELECT id, body, signature, revoked_ms FROM certificates";

impl ExamRecord {
    /// Keeps a signed certificate.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) fn certify(
        &mut self,
        one: &PlannerCertificate,
        signature: &str,
    ) -> Result<String, ExamError> {
        let id = one.id();
        self.execute(
            "INSERT OR IGNORE INTO certificates (id, run_id, level, body, signature) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![id, one.run, one.level.word(), one.text(), signature],
        )?;
        Ok(id)
    }

    /// All certificates, the oldest first.
    ///
    /// # Errors
    /// The record cannot be read.
    pub(crate) fn certificates(&self) -> Result<Vec<StoredCertificate>, ExamError> {
        self.rows(&format!("{HELD} ORDER BY run_id, rowid"), [], held)
    }

    /// Returns one certificate.
    ///
    /// # Errors
    /// No certificate has this name.
    pub(crate) fn certificate(&self, id: &str) -> Result<StoredCertificate, ExamError> {
        let one = format!("{HELD} WHERE id = ?1");
        let found = self.tried(|db| db.query_row(&one, [id], held).optional())?;
        found.ok_or_else(|| unknown(id))
    }

    /// Returns what stands against a certificate of this level in the run that earned it: answers that never came, or another
    /// verdict since.
    ///
    /// # Errors
    /// The record cannot be read.
    pub(crate) fn against_run(&self, run: i64, level: Level) -> Result<Option<String>, ExamError> {
        let row = self.run(Some(run))?;
        let failed = self.failed_answers(run)?;
        if failed > 0 {
            return Ok(Some(format!(
                "{failed} answers of its run {run} never came"
            )));
        }
        let reached = row.verdict().and_then(|verdict| verdict.reached);
        let holds = row.is_completed() && reached >= Some(level);
        Ok((!holds).then(|| format!("its run {run} does not reach {} any more", level.word())))
    }

    /// Revokes a certificate for good.
    ///
    /// # Errors
    /// No certificate has this name.
    pub(crate) fn revoke(&mut self, id: &str) -> Result<(), ExamError> {
        let sql = "UPDATE certificates SET revoked_ms = coalesce(revoked_ms, ?2) WHERE id = ?1";
        match self.execute(sql, params![id, now_ms()])? {
            0 => Err(unknown(id)),
            _ => Ok(()),
        }
    }
}

fn unknown(id: &str) -> ExamError {
    ExamError::Unknown {
        what: "certificate",
        name: id.to_owned(),
        hint: "`exam certificate show` lists them".to_owned(),
    }
}

fn held(row: &Row<'_>) -> rusqlite::Result<StoredCertificate> {
    Ok(StoredCertificate {
        id: row.get(0)?,
        text: row.get(1)?,
        signature: row.get(2)?,
        revoked_ms: row.get(3)?,
    })
}
