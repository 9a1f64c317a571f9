//! The record of exams: one SQLite file, the only place that knows SQL.

mod answer_rows;
mod cases;
mod certificates;
mod delete_run;
mod schema;
mod servers;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{FromSql, Type};
use rusqlite::{
    Connection, ErrorCode, OptionalExtension as _, Params, Row, Transaction, TransactionBehavior,
    params,
};
use serde::de::DeserializeOwned;

use super::run::{CaseOutcome, PlannerExam, prompt_hash, tools_hash};
use super::word::{Word, of_word};
use super::{ExamCase, ExamError, ExamVerdict, PlannerSettings};
use base::disk;

pub(crate) use certificates::StoredCertificate;
pub(crate) use servers::{RecordedServer, ServerChange, ServerStatus, ServerTransport};

/// Longest wait of one process for the write of another.
const BUSY: Duration = Duration::from_secs(5);

/// Remedy for a damaged record.
const DAMAGED: &str = "the file is damaged. Next: move it away with its -wal and -shm files, and restore a copy. Without a copy, a new record begins and certificates must be earned again";

/// Returns the error of a record's file.
fn store_error(path: &Path, error: &dyn std::fmt::Display) -> ExamError {
    ExamError::Store {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// The record of exams.
#[derive(Debug)]
pub(crate) struct ExamRecord {
    connection: Connection,
    path: PathBuf,
    /// Lock held while an exam is written. If it is free, no exam is running.
    lock: Option<File>,
}

/// A run, as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunRow {
    /// Its number.
    pub(crate) id: i64,
    /// pending, running, completed or failed.
    pub(crate) status: String,
    /// Settings for asking the planner.
    pub(crate) settings: PlannerSettings,
    /// The requested level.
    pub(crate) level: Option<String>,
    /// The program's version.
    pub(crate) version: String,
    /// Hash of the text before every question.
    pub(crate) prompt_hash: String,
    /// Hash of the list of tools.
    pub(crate) tools_hash: String,
    /// Milliseconds since 1970.
    pub(crate) began_ms: i64,
    /// Milliseconds since 1970.
    pub(crate) ended_ms: Option<i64>,
    /// Reason why the run failed.
    pub(crate) error: Option<String>,
    /// The verdict, as JSON.
    pub(crate) verdict: Option<String>,
    /// Number of answers.
    pub(crate) answers: i64,
}

impl RunRow {
    /// Returns whether the run ended with a verdict on the planner.
    pub(crate) fn is_completed(&self) -> bool {
        self.status == "completed"
    }

    /// Returns the verdict, if there is one that can be read.
    pub(super) fn verdict(&self) -> Option<ExamVerdict> {
        ExamVerdict::read(self.verdict.as_deref()?)
    }
}

const RUN: &str = "SELECT r.id, r.status, r.level, r.version, r.prompt_hash, r.tools_hash, r.began_ms, r.ended_ms, r.error, \
    r.verdict, s.provider, s.model, s.time_limit_s, s.temperature, s.retries, s.seed, s.samples, s.model_file, s.budget, \
    s.top_p, s.max_tokens, s.model_path, s.max_failed, (SELECT count(*) FROM answers a WHERE a.run_id = r.id) \
    FROM runs r JOIN settings s ON s.id = r.settings_id";

impl ExamRecord {
    /// Opens or creates the record. An interrupted exam is marked as failed, and keeps its answers.
    ///
    /// # Errors
    /// Fails if the file cannot be used or was written by a newer program.
    pub(crate) fn open(path: &Path) -> Result<Self, ExamError> {
        let failed = |error: &dyn std::fmt::Display| store_error(path, error);
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            disk::folder(folder).map_err(|error| failed(&error))?;
        }
        if !path.exists() {
            // SQLite gives its side files the owner and mode of this one.
            disk::touch(path).map_err(|error| failed(&error))?;
        }
        let connection = Connection::open(path).map_err(|error| failed(&error))?;
        let mut record = Self {
            connection,
            path: path.to_owned(),
            lock: None,
        };
        record.prepare()?;
        record.end_orphans()?;
        Ok(record)
    }

    fn prepare(&mut self) -> Result<(), ExamError> {
        self.with_connection(|db| {
            db.busy_timeout(BUSY)?;
            db.pragma_update(None, "journal_mode", "WAL")?;
            // Off while tables are rebuilt.
            db.pragma_update(None, "foreign_keys", false)?;
            db.pragma_update(None, "synchronous", "NORMAL")
        })?;
        self.migrate()?;
        self.with_connection(|db| db.pragma_update(None, "foreign_keys", true))
    }

    fn migrate(&mut self) -> Result<(), ExamError> {
        let found: i64 = self
            .with_connection(|db| db.pragma_query_value(None, "user_version", |row| row.get(0)))?;
        let known = i64::try_from(schema::MIGRATIONS.len()).unwrap_or(i64::MAX);
        if found > known {
            let path = self.path.clone();
            return Err(ExamError::Newer { path, found, known });
        }
        let all = schema::MIGRATIONS.iter().zip(1_i64..);
        for (sql, version) in all.skip(usize::try_from(found).unwrap_or(0)) {
            self.with_connection(|db| {
                let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
                let now: i64 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
                // Another process may have been faster.
                if now < version {
                    tx.execute_batch(sql)?;
                    tx.pragma_update(None, "user_version", version)?;
                }
                tx.commit()
            })?;
        }
        Ok(())
    }

    /// Ends runs whose process is gone.
    fn end_orphans(&mut self) -> Result<(), ExamError> {
        // A process that only reads must not block an exam that begins.
        let open = "SELECT count(*) FROM runs WHERE status IN ('pending', 'running')";
        if self.value::<i64>(open, [])? == 0 {
            return Ok(());
        }
        let Ok(_lock) = self.take_lock() else {
            return Ok(());
        };
        self.execute(
            "UPDATE runs SET status = 'failed', ended_ms = ?1, error = 'interrupted after ' || (SELECT count(*) FROM answers WHERE run_id = runs.id) || ' answers; `steadyhand exam run --resume ' || id || '` continues it' WHERE status IN ('pending', 'running')",
            [now_ms()],
        )?;
        Ok(())
    }

    /// Takes the lock of the one exam that may be written, unless it is held already.
    fn hold_lock(&mut self) -> Result<(), ExamError> {
        if self.lock.is_none() {
            self.lock = Some(self.take_lock()?);
        }
        Ok(())
    }

    fn take_lock(&self) -> Result<File, ExamError> {
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        let busy = || ExamError::Busy(self.path.clone());
        let file = disk::touch(Path::new(&path)).map_err(|error| self.failed(&error))?;
        file.try_lock().map_err(|_| busy())?;
        Ok(file)
    }

    fn failed(&self, error: &impl std::fmt::Display) -> ExamError {
        store_error(&self.path, error)
    }

    fn with_connection<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, ExamError> {
        work(&self.connection).map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                self.failed(&format!("{error}; {DAMAGED}"))
            }
            _ => self.failed(&error),
        })
    }

    /// Runs one statement; returns how many rows it changed.
    fn execute(&self, sql: &str, values: impl Params) -> Result<usize, ExamError> {
        self.with_connection(|db| db.execute(sql, values))
    }

    /// Returns the only value that a query finds.
    fn value<T: FromSql>(&self, sql: &str, values: impl Params) -> Result<T, ExamError> {
        self.with_connection(|db| db.query_row(sql, values, |row| row.get(0)))
    }

    /// Returns all rows that a query finds.
    fn rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, ExamError> {
        self.with_connection(|db| db.prepare(sql)?.query_map(values, read)?.collect())
    }

    /// Runs some work in a transaction: all of it takes effect or none.
    fn in_transaction<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, ExamError> {
        self.with_connection(|db| {
            let tx = db.unchecked_transaction()?;
            let value = work(&tx)?;
            tx.commit()?;
            Ok(value)
        })
    }

    /// Begins a run with its settings, tools and cases, and returns its number.
    pub(super) fn begin(
        &mut self,
        exam: &PlannerExam,
        settings: &PlannerSettings,
    ) -> Result<i64, ExamError> {
        settings.check()?;
        self.hold_lock()?;
        let run = self.insert_run(exam, settings)?;
        if let Err(error) = self.insert_snapshot(run, exam) {
            self.fail(run, &error.to_string())?;
            return Err(error);
        }
        self.execute("UPDATE runs SET status = 'running' WHERE id = ?1", [run])?;
        Ok(run)
    }

    fn insert_run(
        &mut self,
        exam: &PlannerExam,
        settings: &PlannerSettings,
    ) -> Result<i64, ExamError> {
        let level = exam.requested.map(super::Level::word);
        let (prompt, tools) = (prompt_hash(&exam.preamble), tools_hash(&exam.tools));
        self.in_transaction(|tx| {
            insert_settings(tx, settings)?;
            tx.execute(
                "INSERT INTO runs (settings_id, status, level, version, prompt_hash, tools_hash, began_ms) \
                 VALUES (?1, 'pending', ?2, ?3, ?4, ?5, ?6)",
                params![tx.last_insert_rowid(), level, env!("CARGO_PKG_VERSION"), prompt, tools, now_ms()],
            )?;
            Ok(tx.last_insert_rowid())
        })
    }

    fn insert_snapshot(&mut self, run: i64, exam: &PlannerExam) -> Result<(), ExamError> {
        self.in_transaction(|tx| {
            for card in exam.tools.cards() {
                tx.execute(
                    "INSERT INTO tools (run_id, server, name, description, input_schema, output_schema, does, own_name) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                    params![
                        run,
                        card.server,
                        card.name,
                        card.description,
                        card.input_schema.to_string(),
                        card.output_schema.as_ref().map(ToString::to_string),
                        card.does.word(),
                        card.own_name
                    ],
                )?;
            }
            insert_cases(tx, run, (0, 0), &exam.cases)
        })
    }

    /// Records a run that fails before its first question, with the reason.
    pub(super) fn refuse(
        &mut self,
        exam: &PlannerExam,
        settings: &PlannerSettings,
        reason: &str,
    ) -> Result<i64, ExamError> {
        settings.check()?;
        let run = self.insert_run(exam, settings)?;
        self.fail(run, reason)?;
        Ok(run)
    }

    /// Adds the cases of another round to a run, numbered from `first` on.
    pub(super) fn extend(
        &mut self,
        run: i64,
        first: usize,
        cases: &[ExamCase],
    ) -> Result<(), ExamError> {
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        self.in_transaction(|tx| {
            let last = "SELECT max(round) FROM run_cases WHERE run_id = ?1";
            let last: Option<i64> = tx.query_row(last, [run], |row| row.get(0))?;
            let round = last.map_or(0, |last| last + 1);
            insert_cases(tx, run, (first, round), cases)
        })
    }

    /// Stores judged answers, all or none; existing ones are replaced.
    pub(super) fn keep(&mut self, run: i64, outcomes: &[CaseOutcome]) -> Result<(), ExamError> {
        self.in_transaction(|tx| {
            for outcome in outcomes {
                answer_rows::insert(tx, run, outcome)?;
            }
            Ok(())
        })
    }

    /// Returns how many answers of a run never came.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub(crate) fn failed_answers(&self, run: i64) -> Result<i64, ExamError> {
        let sql = "SELECT count(*) FROM answers WHERE run_id = ?1 AND error IS NOT NULL";
        self.value(sql, [run])
    }

    /// Returns the cases of a run, as they were when it began.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub(crate) fn cases_of(&self, run: i64) -> Result<Vec<ExamCase>, ExamError> {
        self.case_lines(
            "SELECT body FROM run_cases WHERE run_id = ?1 ORDER BY place",
            [run],
        )
    }

    /// Reads the cases that a query finds.
    fn case_lines(&self, sql: &str, values: impl Params) -> Result<Vec<ExamCase>, ExamError> {
        let lines: Vec<String> = self.rows(sql, values, |row| row.get(0))?;
        ExamCase::read_lines(&lines.join("\n"))
    }

    /// Ends a run with its verdict: as completed, or as failed if the verdict says so.
    pub(super) fn complete(&mut self, run: i64, verdict: &ExamVerdict) -> Result<(), ExamError> {
        let text = serde_json::to_string(verdict).unwrap_or_default();
        self.execute(
            "UPDATE runs SET status = iif(?4 IS NULL, 'completed', 'failed'), ended_ms = ?2, error = ?4, verdict = ?3 \
             WHERE id = ?1",
            params![run, now_ms(), text, verdict.failed],
        )?;
        self.lock = None;
        Ok(())
    }

    /// Ends a run that could not be carried out.
    pub(super) fn fail(&mut self, run: i64, reason: &str) -> Result<(), ExamError> {
        self.execute(
            "UPDATE runs SET status = 'failed', ended_ms = ?2, error = ?3 WHERE id = ?1",
            params![run, now_ms(), reason],
        )?;
        self.lock = None;
        Ok(())
    }

    /// Goes on with a run that was interrupted or lacks answers; its verdict is void.
    pub(super) fn reopen(&mut self, run: i64) -> Result<(), ExamError> {
        self.hold_lock()?;
        self.execute(
            "UPDATE runs SET status = 'running', ended_ms = NULL, error = NULL, verdict = NULL WHERE id = ?1",
            [run],
        )?;
        Ok(())
    }

    /// Returns all runs, the oldest first.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub(crate) fn runs(&self) -> Result<Vec<RunRow>, ExamError> {
        self.rows(&format!("{RUN} ORDER BY r.id"), [], run_row)
    }

    /// Returns one run: by its number, or the newest.
    ///
    /// # Errors
    /// Fails if there is no such run.
    pub(crate) fn run(&self, id: Option<i64>) -> Result<RunRow, ExamError> {
        let one = format!("{RUN} WHERE ?1 IS NULL OR r.id = ?1 ORDER BY r.id DESC LIMIT 1");
        let found = self.with_connection(|db| db.query_row(&one, [id], run_row).optional())?;
        found.ok_or_else(|| ExamError::Unknown {
            what: "run",
            name: id.map_or_else(|| "newest".to_owned(), |id| id.to_string()),
            hint: "`steadyhand exam summary` lists them".to_owned(),
        })
    }
}

/// Stores the settings. For recorded answers those of the questions are unknown and are left out.
fn insert_settings(tx: &Transaction<'_>, settings: &PlannerSettings) -> rusqlite::Result<usize> {
    let known = (!settings.is_replay()).then_some(settings);
    tx.execute(
        "INSERT INTO settings (provider, model, time_limit_s, temperature, top_p, max_tokens, retries, seed, samples, \
         model_file, model_path, budget, max_failed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            settings.provider,
            settings.model,
            known.map(|known| known.time_limit_s),
            known.map(|known| known.temperature),
            known.and_then(|known| known.top_p),
            known.map(|known| known.max_tokens),
            known.map(|known| known.retries),
            known.map(|known| known.seed.cast_signed()),
            settings.samples,
            settings.model_file,
            settings.model_path,
            settings.budget,
            known.map(|known| known.max_failed)
        ],
    )
}

fn insert_cases(
    tx: &Transaction<'_>,
    run: i64,
    (first, round): (i64, i64),
    cases: &[ExamCase],
) -> rusqlite::Result<()> {
    for (case, place) in cases.iter().zip(first..) {
        tx.execute(
            "INSERT INTO run_cases (run_id, place, round, body) VALUES (?1, ?2, ?3, ?4)",
            params![run, place, round, case.line()],
        )?;
    }
    Ok(())
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: row.get(0)?,
        status: row.get(1)?,
        level: row.get(2)?,
        version: row.get(3)?,
        prompt_hash: row.get(4)?,
        tools_hash: row.get(5)?,
        began_ms: row.get(6)?,
        ended_ms: row.get(7)?,
        error: row.get(8)?,
        verdict: row.get(9)?,
        settings: settings_of(row)?,
        answers: row.get(23)?,
    })
}

/// Reads the settings. Those that were not stored, as for recorded answers, get their defaults and are not shown.
fn settings_of(row: &Row<'_>) -> rusqlite::Result<PlannerSettings> {
    let (provider, model): (String, String) = (row.get(10)?, row.get(11)?);
    let shipped = PlannerSettings::new(&provider, &model);
    let seed: Option<i64> = row.get(15)?;
    Ok(PlannerSettings {
        time_limit_s: row.get::<_, Option<_>>(12)?.unwrap_or(shipped.time_limit_s),
        temperature: row.get::<_, Option<_>>(13)?.unwrap_or(shipped.temperature),
        retries: row.get::<_, Option<_>>(14)?.unwrap_or(shipped.retries),
        seed: seed.map_or(shipped.seed, i64::cast_unsigned),
        samples: row.get(16)?,
        model_file: row.get(17)?,
        budget: row.get(18)?,
        top_p: row.get(19)?,
        max_tokens: row.get::<_, Option<_>>(20)?.unwrap_or(shipped.max_tokens),
        model_path: row.get(21)?,
        max_failed: row.get::<_, Option<_>>(22)?.unwrap_or(shipped.max_failed),
        ..shipped
    })
}

/// Returns the value of a column that holds JSON.
fn json_at<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| unreadable(column, error))
}

/// Returns the value of a column that holds a word.
fn word_at<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let word: String = row.get(column)?;
    of_word(&word).map_err(|error| unreadable(column, error))
}

fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

/// Milliseconds since 1970, for lists that people read.
pub(super) fn now_ms() -> i64 {
    i64::try_from(base::clock::calendar_ms()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
