//! Stores judged answers as rows.

use rusqlite::types::ValueRef;
use rusqlite::{Row, Transaction, params};
use serde_json::Value;

use super::{ExamRecord, json_at, word_at};
use crate::ExamError;
use crate::run::CaseOutcome;
use crate::word::Word;

pub(super) fn insert(
    db: &Transaction<'_>,
    run: i64,
    outcome: &CaseOutcome,
) -> rusqlite::Result<()> {
    let judged = &outcome.judged;
    db.execute(
        "DELETE FROM answers WHERE run_id = ?1 AND case_name = ?2 AND sample = ?3",
        params![run, outcome.case.name, outcome.sample],
    )?;
    db.execute(
        "INSERT INTO answers (run_id, case_name, sample, raw, selected_tool, parameters, probability, milliseconds, error, \
         answered_ms, retries) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            run,
            outcome.case.name,
            outcome.sample,
            outcome.raw,
            judged.selected_tool,
            Value::Object(judged.parameters.clone()).to_string(),
            outcome.probability,
            outcome.milliseconds.map(u64::cast_signed),
            outcome.error,
            outcome.answered_ms,
            outcome.retries
        ],
    )?;
    let answer = db.last_insert_rowid();
    db.execute(
        "INSERT INTO results (answer_id, classification, hazard, unsafe_action, lost_stop, exact, completeness, correctness, \
         type_conformance, repair_cost, confidence, reasons, judged, recommendations) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        params![
            answer,
            judged.classification.word(),
            outcome.hazard.word(),
            judged.unsafe_action,
            judged.lost_stop,
            judged.exact,
            judged.completeness,
            judged.correctness,
            judged.type_conformance,
            judged.repair_cost,
            outcome.confidence.map(|class| class.word()),
            text(&judged.reasons),
            text(judged),
            text(&judged.recommendations)
        ],
    )?;
    Ok(())
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl ExamRecord {
    /// Returns the judged answers of a run, in the order of its cases.
    pub(crate) fn outcomes(&self, run: i64) -> Result<Vec<CaseOutcome>, ExamError> {
        self.rows(
            "SELECT c.body, a.sample, a.raw, r.judged, r.hazard, a.milliseconds, a.error, a.probability, r.confidence, \
             a.answered_ms, a.retries FROM answers a JOIN results r ON r.answer_id = a.id \
             JOIN run_cases c ON c.run_id = a.run_id AND json_extract(c.body, '$.name') = a.case_name \
             WHERE a.run_id = ?1 ORDER BY c.place, a.sample",
            [run],
            outcome,
        )
    }
}

fn outcome(row: &Row<'_>) -> rusqlite::Result<CaseOutcome> {
    Ok(CaseOutcome {
        case: json_at(row, 0)?,
        sample: row.get(1)?,
        raw: row.get(2)?,
        judged: json_at(row, 3)?,
        hazard: word_at(row, 4)?,
        milliseconds: row.get::<_, Option<i64>>(5)?.map(i64::cast_unsigned),
        error: row.get(6)?,
        probability: row.get(7)?,
        confidence: match row.get_ref(8)? {
            ValueRef::Null => None,
            _ => Some(word_at(row, 8)?),
        },
        answered_ms: row.get(9)?,
        retries: row.get(10)?,
    })
}
