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

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use super::run::{CaseOutcome, PlannerExam};
use super::{ExamError, ExamVerdict, PlannerSettings};
use base::disk;

pub use cases::OwnCase;
pub use certificates::StoredCertificate;
pub use servers::{RecordedServer, ServerChange, ServerStatus, ServerTransport};

/// Longest wait of one process for the write of another.
const BUSY: Duration = Duration::from_secs(5);

/// The record of exams.
#[derive(Debug)]
pub struct ExamRecord {
    connection: Connection,
    path: PathBuf,
    /// Lock held while an exam is written. If it is free, no exam is running.
    lock: Option<File>,
}

/// An exam that begins.
pub(super) struct NewRun<'a> {
    pub(super) exam: &'a PlannerExam,
    pub(super) settings: &'a PlannerSettings,
}

/// A run, as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// Its number.
    pub id: i64,
    /// pending, running, completed or failed.
    pub status: String,
    /// Settings for asking the planner.
    pub settings: PlannerSettings,
    /// The level that was asked for.
    pub level: Option<String>,
    /// The program's version.
    pub version: String,
    /// Of the words before every question.
    pub prompt_hash: String,
    /// Of the list of tools.
    pub tools_hash: String,
    /// Milliseconds since 1970.
    pub began_ms: i64,
    /// Milliseconds since 1970.
    pub ended_ms: Option<i64>,
    /// Reason why the run failed.
    pub error: Option<String>,
    /// The verdict, as JSON.
    pub verdict: Option<String>,
    /// Number of answers.
    pub answers: i64,
}

impl RunRow {
    /// Returns whether the run came to its end with a verdict that says something of the planner.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.status == "completed"
    }

    /// Returns the verdict, where there is one that can be read.
    pub(super) fn verdict(&self) -> Option<Value> {
        serde_json::from_str(self.verdict.as_deref()?).ok()
    }
}

const RUN: &str = "SELECT r.id, r.status, r.level, r.version, r.prompt_hash, r.tools_hash, r.began_ms, r.ended_ms, r.error, \
    r.verdict, s.provider, s.model, s.time_limit_s, s.temperature, s.retries, s.seed, s.samples, s.model_file, s.budget, \
    s.top_p, s.max_tokens, s.model_path, s.max_failed, (SELECT count(*) FROM answers a WHERE a.run_id = r.id) \
    FROM runs r JOIN settings s ON s.id = r.settings_id";

impl ExamRecord {
    /// Opens the record, or makes it. An exam that was interrupted is marked as failed, and keeps its answers.
    ///
    /// # Errors
    /// The file cannot be used, or is of a newer program.
    pub fn open(path: &Path) -> Result<Self, ExamError> {
        let failed = |why: String| ExamError::Store {
            path: path.to_owned(),
            why,
        };
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            disk::folder(folder).map_err(|error| failed(error.to_string()))?;
        }
        if !path.exists() {
            // What the database makes beside it becomes whose it is.
            disk::touch(path).map_err(|error| failed(error.to_string()))?;
        }
        let connection = Connection::open(path).map_err(|error| failed(error.to_string()))?;
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
        self.tried(|db| {
            db.busy_timeout(BUSY)?;
            db.pragma_update(None, "journal_mode", "WAL")?;
            // While tables are made anew.
            db.pragma_update(None, "foreign_keys", false)?;
            db.pragma_update(None, "synchronous", "NORMAL")
        })?;
        self.migrate()?;
        self.tried(|db| db.pragma_update(None, "foreign_keys", true))
    }

    fn migrate(&mut self) -> Result<(), ExamError> {
        let found: i64 =
            self.tried(|db| db.pragma_query_value(None, "user_version", |row| row.get(0)))?;
        let known = i64::try_from(schema::MIGRATIONS.len()).unwrap_or(i64::MAX);
        if found > known {
            let path = self.path.clone();
            return Err(ExamError::Newer { path, found, known });
        }
        for (sql, version) in schema::MIGRATIONS
            .iter()
            .zip(1_i64..)
            .skip(usize::try_from(found).unwrap_or(0))
        {
            self.tried_mut(|db| {
                let all = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                let now: i64 = all.pragma_query_value(None, "user_version", |row| row.get(0))?;
                // Another process may have been faster.
                if now < version {
                    all.execute_batch(sql)?;
                    all.pragma_update(None, "user_version", version)?;
                }
                all.commit()
            })?;
        }
        Ok(())
    }

    /// Ends runs whose process is gone.
    fn end_orphans(&mut self) -> Result<(), ExamError> {
        // Whoever only looks does not stand in the way of an exam that begins.
        let open = "SELECT count(*) FROM runs WHERE status IN ('pending', 'running')";
        let open: i64 = self.tried(|db| db.query_row(open, [], |row| row.get(0)))?;
        if open == 0 {
            return Ok(());
        }
        let Ok(_lock) = self.take_lock() else {
            return Ok(());
        };
        let now = now_ms();
        self.tried(|db| {
            db.execute(
                "UPDATE runs SET status = 'failed', ended_ms = ?1, error = 'interrupted after ' || \
                 (SELECT count(*) FROM answers WHERE run_id = runs.id) || ' answers; `exam run --resume ' || id || '` goes on' \
                 WHERE status IN ('pending', 'running')",
                [now],
            )
        })?;
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

    fn failed(&self, why: &impl ToString) -> ExamError {
        ExamError::Store {
            path: self.path.clone(),
            why: why.to_string(),
        }
    }

    fn tried<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, ExamError> {
        work(&self.connection).map_err(|error| self.failed(&error))
    }

    fn tried_mut<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, ExamError> {
        work(&mut self.connection).map_err(|error| ExamError::Store {
            path: self.path.clone(),
            why: error.to_string(),
        })
    }

    /// Begins a run: its settings, its tools as they are now, its cases. Its number.
    pub(super) fn begin(&mut self, new: &NewRun<'_>) -> Result<i64, ExamError> {
        new.settings.check()?;
        if self.lock.is_none() {
            self.lock = Some(self.take_lock()?);
        }
        let run = self.insert_run(new)?;
        if let Err(error) = self.insert_snapshot(run, new.exam) {
            self.fail(run, &error.to_string())?;
            return Err(error);
        }
        self.tried(|db| db.execute("UPDATE runs SET status = 'running' WHERE id = ?1", [run]))?;
        Ok(run)
    }

    fn insert_run(&mut self, new: &NewRun<'_>) -> Result<i64, ExamError> {
        let level = new.exam.asked.map(super::Level::word);
        let (prompt, tools) = (new.exam.prompt_hash(), new.exam.tools_hash());
        self.tried_mut(|db| {
            let all = db.transaction()?;
            insert_settings(&all, new.settings)?;
            all.execute(
                "INSERT INTO runs (settings_id, status, level, version, prompt_hash, tools_hash, began_ms) \
                 VALUES (?1, 'pending', ?2, ?3, ?4, ?5, ?6)",
                params![all.last_insert_rowid(), level, env!("CARGO_PKG_VERSION"), prompt, tools, now_ms()],
            )?;
            let run = all.last_insert_rowid();
            all.commit()?;
            Ok(run)
        })
    }

    fn insert_snapshot(&mut self, run: i64, exam: &PlannerExam) -> Result<(), ExamError> {
        self.tried_mut(|db| {
            let all = db.transaction()?;
            for card in exam.tools.cards() {
                all.execute(
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
            insert_cases(&all, run, (0, 0), &exam.cases)?;
            all.commit()
        })
    }

    /// Notes a run that ends before its first question, and why.
    pub(super) fn refuse(&mut self, new: &NewRun<'_>, why: &str) -> Result<i64, ExamError> {
        new.settings.check()?;
        let run = self.insert_run(new)?;
        self.fail(run, why)?;
        Ok(run)
    }

    /// Adds the cases of another round to a run, after the first `place` of them.
    pub(super) fn extend(
        &mut self,
        run: i64,
        place: usize,
        cases: &[super::ExamCase],
    ) -> Result<(), ExamError> {
        self.tried_mut(|db| {
            let all = db.transaction()?;
            let last = "SELECT max(round) FROM run_cases WHERE run_id = ?1";
            let last: Option<i64> = all.query_row(last, [run], |row| row.get(0))?;
            let round = last.map_or(0, |last| last + 1);
            let place = i64::try_from(place).unwrap_or(i64::MAX);
            insert_cases(&all, run, (place, round), cases)?;
            all.commit()
        })
    }

    /// Keeps judged answers, all or none; those that are there already are replaced.
    pub(super) fn keep(&mut self, run: i64, outcomes: &[CaseOutcome]) -> Result<(), ExamError> {
        self.tried_mut(|db| {
            let all = db.transaction()?;
            for outcome in outcomes {
                answer_rows::insert(&all, run, outcome)?;
            }
            all.commit()
        })
    }

    /// The judged answers of a run.
    pub(super) fn outcomes(&self, run: i64) -> Result<Vec<CaseOutcome>, ExamError> {
        self.tried(|db| answer_rows::all(db, run))
    }

    /// Returns how many answers of a run never came.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn failed_answers(&self, run: i64) -> Result<i64, ExamError> {
        let sql = "SELECT count(*) FROM answers WHERE run_id = ?1 AND error IS NOT NULL";
        self.tried(|db| db.query_row(sql, [run], |row| row.get(0)))
    }

    /// The cases of a run, as they were when it began.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn cases_of(&self, run: i64) -> Result<Vec<super::ExamCase>, ExamError> {
        let lines: Vec<String> = self.tried(|db| {
            let mut rows =
                db.prepare("SELECT body FROM run_cases WHERE run_id = ?1 ORDER BY place")?;
            rows.query_map([run], |row| row.get(0))?.collect()
        })?;
        super::ExamCase::read_lines(&lines.join("\n"))
    }

    /// Ends a run with its verdict: completed, or failed where the verdict says so.
    pub(super) fn complete(&mut self, run: i64, verdict: &ExamVerdict) -> Result<(), ExamError> {
        let text = serde_json::to_string(verdict).unwrap_or_default();
        self.tried(|db| {
            db.execute(
                "UPDATE runs SET status = iif(?4 IS NULL, 'completed', 'failed'), ended_ms = ?2, error = ?4, verdict = ?3 \
                 WHERE id = ?1",
                params![run, now_ms(), text, verdict.failed],
            )
        })?;
        self.lock = None;
        Ok(())
    }

    /// Ends a run that could not be carried out.
    pub(super) fn fail(&mut self, run: i64, why: &str) -> Result<(), ExamError> {
        self.tried(|db| {
            db.execute(
                "UPDATE runs SET status = 'failed', ended_ms = ?2, error = ?3 WHERE id = ?1",
                params![run, now_ms(), why],
            )
        })?;
        self.lock = None;
        Ok(())
    }

    /// Goes on with a run that was interrupted or lacks answers; its verdict is void.
    pub(super) fn reopen(&mut self, run: i64) -> Result<(), ExamError> {
        if self.lock.is_none() {
            self.lock = Some(self.take_lock()?);
        }
        self.tried(|db| {
            db.execute(
                "UPDATE runs SET status = 'running', ended_ms = NULL, error = NULL, verdict = NULL WHERE id = ?1",
                [run],
            )
        })?;
        Ok(())
    }

    /// All runs, the oldest first.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn runs(&self) -> Result<Vec<RunRow>, ExamError> {
        self.tried(|db| {
            let mut rows = db.prepare(&format!("{RUN} ORDER BY r.id"))?;
            rows.query_map([], run_row)?.collect()
        })
    }

    /// Returns one run: by its number, or the newest.
    ///
    /// # Errors
    /// There is no such run.
    pub fn run(&self, id: Option<i64>) -> Result<RunRow, ExamError> {
        let found = self.tried(|db| match id {
            Some(id) => db
                .query_row(&format!("{RUN} WHERE r.id = ?1"), [id], run_row)
                .optional(),
            None => db
                .query_row(&format!("{RUN} ORDER BY r.id DESC LIMIT 1"), [], run_row)
                .optional(),
        })?;
        found.ok_or_else(|| ExamError::Unknown {
            what: "run",
            name: id.map_or_else(|| "newest".to_owned(), |id| id.to_string()),
            hint: "`exam summary` lists them".to_owned(),
        })
    }
}

/// Of recorded answers it is not known how they were asked for, and so it is not kept.
fn insert_settings(
    all: &rusqlite::Transaction<'_>,
    settings: &PlannerSettings,
) -> rusqlite::Result<usize> {
    let asked = (!settings.is_replay()).then_some(settings);
    all.execute(
        "INSERT INTO settings (provider, model, time_limit_s, temperature, top_p, max_tokens, retries, seed, samples, \
         model_file, model_path, budget, max_failed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            settings.provider,
            settings.model,
            asked.map(|one| one.time_limit_s),
            asked.map(|one| one.temperature),
            asked.and_then(|one| one.top_p),
            asked.map(|one| one.max_tokens),
            asked.map(|one| one.retries),
            asked.map(|one| one.seed.cast_signed()),
            settings.samples,
            settings.model_file,
            settings.model_path,
            settings.budget,
            asked.map(|one| one.max_failed)
        ],
    )
}

fn insert_cases(
    all: &rusqlite::Transaction<'_>,
    run: i64,
    (first, round): (i64, i64),
    cases: &[super::ExamCase],
) -> rusqlite::Result<()> {
    for (case, place) in cases.iter().zip(first..) {
        all.execute(
            "INSERT INTO run_cases (run_id, place, round, body) VALUES (?1, ?2, ?3, ?4)",
            params![run, place, round, case.line()],
        )?;
    }
    Ok(())
}

fn run_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<RunRow> {
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
fn settings_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<PlannerSettings> {
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

/// Milliseconds since 1970, for lists that people read.
pub(super) fn now_ms() -> i64 {
    i64::try_from(base::clock::calendar_ms()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
