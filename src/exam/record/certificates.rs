//! Stores signed certificates.

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
    /// Time of its revocation, in milliseconds since 1970.
    pub(crate) revoked_ms: Option<i64>,
}

const CERTIFICATE: &str = "SELECT id, body, signature, revoked_ms FROM certificates";

impl ExamRecord {
    /// Stores a signed certificate and returns its name.
    ///
    /// # Errors
    /// Fails if the record cannot be written.
    pub(crate) fn certify(
        &mut self,
        certificate: &PlannerCertificate,
        signature: &str,
    ) -> Result<String, ExamError> {
        let id = certificate.id();
        self.execute(
            "INSERT OR IGNORE INTO certificates (id, run_id, level, body, signature) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![id, certificate.run, certificate.level.word(), certificate.text(), signature],
        )?;
        Ok(id)
    }

    /// Returns all certificates, the oldest first.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub(crate) fn certificates(&self) -> Result<Vec<StoredCertificate>, ExamError> {
        self.rows(
            &format!("{CERTIFICATE} ORDER BY run_id, rowid"),
            [],
            certificate_row,
        )
    }

    /// Returns one certificate.
    ///
    /// # Errors
    /// Fails if no certificate has this name.
    pub(crate) fn certificate(&self, id: &str) -> Result<StoredCertificate, ExamError> {
        let sql = format!("{CERTIFICATE} WHERE id = ?1");
        let found =
            self.with_connection(|db| db.query_row(&sql, [id], certificate_row).optional())?;
        found.ok_or_else(|| unknown(id))
    }

    /// Returns the objection to a certificate of this level that the run that earned it raises: missing answers, or a
    /// different verdict since.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub(crate) fn against_run(&self, run: i64, level: Level) -> Result<Option<String>, ExamError> {
        let row = self.run(Some(run))?;
        let failed = self.failed_answers(run)?;
        if failed > 0 {
            return Ok(Some(format!(
                "{failed} answers of its run {run} are missing"
            )));
        }
        let reached = row.verdict().and_then(|verdict| verdict.reached);
        let holds = row.is_completed() && reached >= Some(level);
        Ok((!holds).then(|| {
            format!(
                "by today's rules its run {run} does not reach {}",
                level.word()
            )
        }))
    }

    /// Revokes a certificate for good.
    ///
    /// # Errors
    /// Fails if no certificate has this name.
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
        hint: "`steadyhand exam certificate show` lists them".to_owned(),
    }
}

fn certificate_row(row: &Row<'_>) -> rusqlite::Result<StoredCertificate> {
    Ok(StoredCertificate {
        id: row.get(0)?,
        text: row.get(1)?,
        signature: row.get(2)?,
        revoked_ms: row.get(3)?,
    })
}
