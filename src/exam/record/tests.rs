//! Tests that the record keeps what it must and refuses what it must not keep.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::*;
use crate::{
    AnswerReplay, ExamCase, ExamConditions, ExamToolCard, ExamToolbox, Level, PlannerCertificate,
};

fn exam() -> PlannerExam {
    let cases = ExamCase::read_lines(
        "{\"query\":\"a\",\"expected_tool\":null}\n{\"query\":\"b\",\"expected_tool\":\"t\"}",
    )
    .unwrap();
    PlannerExam {
        cases,
        tools: ExamToolbox::new(vec![ExamToolCard::named("t")]),
        preamble: String::new(),
        requested: None,
        notes: Vec::new(),
    }
}

#[test]
fn an_interrupted_run_is_marked_and_keeps_its_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exam.db");
    let mut record = ExamRecord::open(&path).unwrap();
    let (exam, settings) = (exam(), PlannerSettings::new("http://p/v1", "m"));
    let run = record.begin(&exam, &settings).unwrap();
    let tools = exam.tools.for_case(&exam.cases[0]).unwrap();
    let outcome = CaseOutcome::of(&exam.cases[0], 0, &"no".into(), &tools);
    record.keep(run, &[outcome]).unwrap();
    // While it runs, another look at the record leaves it alone.
    assert_eq!(
        ExamRecord::open(&path)
            .unwrap()
            .run(Some(run))
            .unwrap()
            .status,
        "running"
    );
    drop(record);
    let record = ExamRecord::open(&path).unwrap();
    let row = record.run(None).unwrap();
    assert_eq!((row.status.as_str(), row.answers), ("failed", 1));
    assert!(row.error.unwrap().contains("interrupted after 1 answers"));
    assert_eq!(record.outcomes(run).unwrap().len(), 1);
}

#[test]
fn a_damaged_record_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exam.db");
    drop(ExamRecord::open(&path).unwrap());
    let mut damaged = std::fs::read(&path).unwrap();
    damaged[20..].fill(0x5a);
    for bytes in [damaged, b"no database at all, but text".repeat(100)] {
        std::fs::write(&path, bytes).unwrap();
        let error = ExamRecord::open(&path).unwrap_err().to_string();
        assert!(error.contains("move it away"), "{error}");
    }
}

#[test]
fn two_exams_at_once_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exam.db");
    let (mut one, mut two) = (
        ExamRecord::open(&path).unwrap(),
        ExamRecord::open(&path).unwrap(),
    );
    let (exam, settings) = (exam(), PlannerSettings::new("http://p/v1", "m"));
    one.begin(&exam, &settings).unwrap();
    assert!(matches!(
        two.begin(&exam, &settings),
        Err(ExamError::Busy(_))
    ));
}

#[test]
fn what_belongs_to_a_run_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = ExamRecord::open(&folder.path().join("exam.db")).unwrap();
    let replay = AnswerReplay::read_lines("{\"query\":\"a\",\"output\":\"no\"}").unwrap();
    let (run, _) = exam().replay(&replay, "m", &mut record).unwrap();
    let count = |record: &ExamRecord, table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        record
            .connection
            .query_row(&sql, [], |row| row.get(0))
            .unwrap()
    };
    let tables = [
        "runs",
        "settings",
        "tools",
        "run_cases",
        "answers",
        "results",
    ];
    assert!(tables.iter().all(|table| count(&record, table) > 0));
    record.delete_run(run).unwrap();
    assert!(tables.iter().all(|table| count(&record, table) == 0));
    assert!(record.delete_run(run).is_err(), "it is gone");
}

/// A record as the first three migrations made it.
fn old_record(path: &Path) -> Connection {
    let db = Connection::open(path).unwrap();
    for sql in schema::MIGRATIONS.iter().take(3) {
        db.execute_batch(sql).unwrap();
    }
    db.pragma_update(None, "user_version", 3).unwrap();
    db
}

#[test]
fn a_record_of_before_keeps_its_runs_and_loses_what_was_never_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exam.db");
    let db = old_record(&path);
    db.execute_batch(
        "INSERT INTO settings (id, provider, model, time_limit_s, temperature, retries, seed, samples) VALUES \
         (1, 'http://h/v1', 'm', 30, 0.7, 3, 5, 1), (2, 'replay', 'm', 30, 0.4, 3, 1, 1), (3, 'replay', 'gone', 30, 0.4, 3, 1, 1); \
         INSERT INTO runs (id, settings_id, status, version, prompt_hash, tools_hash, began_ms, ended_ms) VALUES \
         (1, 1, 'completed', '0', 'p', 't', 1, 2), (2, 2, 'completed', '0', 'p', 't', 1, 2); \
         INSERT INTO tools (run_id, server, name, description, input_schema, does) VALUES (1, 'me', 'sense', '', '{}', 'reads');",
    )
    .unwrap();
    drop(db);
    let record = ExamRecord::open(&path).unwrap();
    let (asked, replayed) = (record.run(Some(1)).unwrap(), record.run(Some(2)).unwrap());
    assert_eq!(
        (asked.settings.temperature, asked.settings.max_tokens),
        (0.7, 1024)
    );
    assert_eq!(
        replayed.settings.known_json(),
        serde_json::json!({"provider": "replay", "model": "m", "samples": 1})
    );
    assert_eq!(record.labels(1).unwrap()["sense"], "me/sense");
    let db = &record.connection;
    let broken: Option<String> = db
        .query_row("PRAGMA foreign_key_check", [], |row| row.get(0))
        .optional()
        .unwrap();
    assert_eq!(broken, None);
    let settings: i64 = db
        .query_row("SELECT count(*) FROM settings", [], |row| row.get(0))
        .unwrap();
    assert_eq!(settings, 2, "settings without a run are gone");
    let keys: bool = db
        .pragma_query_value(None, "foreign_keys", |row| row.get(0))
        .unwrap();
    assert!(keys);
}

/// Every table that the first version had, with a row in it, and each word that was renamed since.
#[test]
fn a_record_of_the_first_version_is_migrated_and_nothing_in_it_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exam.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(schema::MIGRATIONS[0]).unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    db.execute_batch(
        r#"INSERT INTO servers (id, name, url, transport, status, checked_ms, told) VALUES (4, 'up', 'http://h/mcp', 'streamable-http', 'active', 70, ''), (5, 'down', 'http://i/mcp', 'sse', 'failed', 80, 'gone');
        INSERT INTO cases (id, name, query, expected_tool, class, hazard, body, added_ms) VALUES (6, 'mine', 'q', NULL, 'chat', 'motion', '{"name":"mine","query":"q","expected_tool":null}', 90);
        INSERT INTO case_servers VALUES (6, 4);
        INSERT INTO settings VALUES (1, 'http://h/v1', 'm', 20, 0.5, 2, 7, 3);
        INSERT INTO runs VALUES (1, 1, 'completed', 'stroke', '0', 'p', 't', 10, 20, NULL, '{"tally":{"confidence":{"robust":4,"lucky":3,"misleading":2,"needs_clarity":1}}}');
        INSERT INTO tools VALUES (1, 'me', 'sense', 'd', '{}', NULL, 'reads');
        INSERT INTO run_cases VALUES (1, 0, '{"name":"mine","query":"q","expected_tool":null}');
        INSERT INTO answers (id, run_id, case_name, sample, raw, selected_tool, parameters, probability, milliseconds, error) VALUES (1, 1, 'mine', 0, 'r0', NULL, '{}', 0.5, 11, NULL), (2, 1, 'mine', 1, 'r1', 'sense', '{}', NULL, NULL, 'late');
        INSERT INTO results VALUES (1, 'TN', 'motion', 0, 0, 1, NULL, NULL, NULL, 0, 'lucky', '[]', '{}'), (2, 'FP', 'motion', 1, 0, 0, 1.0, 0.5, 1.0, 3, 'needs_clarity', '["w"]', '{}');"#,
    )
    .unwrap();
    drop(db);
    let record = ExamRecord::open(&path).unwrap();
    let rows = |sql: &str| -> Vec<String> {
        let mut statement = record.connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    for (sql, kept) in [
        (
            "SELECT name || ' ' || url || ' ' || transport || ' ' || status || ' ' || checked_ms || ' ' || coalesce(connected_ms, '-') FROM servers ORDER BY id",
            vec![
                "up http://h/mcp streamable-http active 70 70",
                "down http://i/mcp sse failed 80 -",
            ],
        ),
        (
            "SELECT name || ' ' || hazard || ' ' || added_ms || ' ' || updated_ms || ' ' || server_id FROM cases JOIN case_servers ON case_id = id",
            vec!["mine motion 90 90 4"],
        ),
        (
            "SELECT model || ' ' || time_limit_s || ' ' || temperature || ' ' || max_tokens || ' ' || retries || ' ' || seed || ' ' || samples FROM settings",
            vec!["m 20 0.5 1024 2 7 3"],
        ),
        (
            "SELECT status || ' ' || level || ' ' || began_ms || ' ' || ended_ms || ' ' || json_extract(verdict, '$.tally.confidence') FROM runs",
            vec![
                r#"completed stroke 10 20 {"robust":4,"needs_clarity":3,"misleading":2,"uncertain":1}"#,
            ],
        ),
        (
            "SELECT server || ' ' || name || ' ' || does FROM tools",
            vec!["me sense reads"],
        ),
        ("SELECT round || ' ' || place FROM run_cases", vec!["0 0"]),
        (
            "SELECT raw || ' ' || sample || ' ' || retries || ' ' || coalesce(error, '-') || ' ' || classification || ' ' || unsafe_action || ' ' || repair_cost || ' ' || confidence || ' ' || reasons FROM answers JOIN results ON answer_id = id ORDER BY id",
            vec![
                r#"r0 0 0 - TN 0 0 needs_clarity []"#,
                r#"r1 1 0 late FP 1 3 uncertain ["w"]"#,
            ],
        ),
        ("SELECT \"table\" FROM pragma_foreign_key_check", vec![]),
    ] {
        assert_eq!(rows(sql), kept, "{sql}");
    }
    let version: i64 = record
        .connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(usize::try_from(version).unwrap(), schema::MIGRATIONS.len());
    // It works like a new record: deleting a run deletes everything that belongs to it.
    let mut record = record;
    record.delete_run(1).unwrap();
    let left: i64 = record
        .connection
        .query_row(
            "SELECT (SELECT count(*) FROM results) + (SELECT count(*) FROM settings)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_run_that_goes_on_or_has_a_certificate_is_not_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = ExamRecord::open(&folder.path().join("exam.db")).unwrap();
    let (exam, settings) = (exam(), PlannerSettings::new("http://p/v1", "m"));
    let run = record.begin(&exam, &settings).unwrap();
    assert!(
        record
            .delete_run(run)
            .unwrap_err()
            .to_string()
            .contains("running")
    );
    record.fail(run, "enough").unwrap();
    let now = ExamConditions {
        prompt_hash: String::new(),
        tools_hash: String::new(),
        cases_hash: String::new(),
    };
    let one = PlannerCertificate::of(run, &now, &settings, Level::Observe, 1);
    let id = record.certify(&one, &"0".repeat(128)).unwrap();
    let refused = record.delete_run(run).unwrap_err().to_string();
    assert!(
        refused.contains(&format!("certificate revoke {id}")),
        "{refused}"
    );
    record.revoke(&id).unwrap();
    record.delete_run(run).unwrap();
    assert!(record.certificates().unwrap().is_empty());
}

#[test]
fn settings_never_change_and_ranges_are_held() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = ExamRecord::open(&folder.path().join("exam.db")).unwrap();
    let (exam, mut settings) = (exam(), PlannerSettings::new("http://p/v1", "m"));
    record.begin(&exam, &settings).unwrap();
    let db = &record.connection;
    assert!(db.execute("UPDATE settings SET seed = 2", []).is_err());
    let columns = "provider, model, time_limit_s, temperature, max_tokens, retries, seed, samples";
    let insert = |values: &str| {
        let sql = format!("INSERT INTO settings ({columns}) VALUES {values}");
        db.execute(&sql, [])
    };
    assert!(insert("('http://h', 'm', 30, 0.4, 1024, 3, 1, 1)").is_ok());
    assert!(insert("('replay', 'm', NULL, NULL, NULL, NULL, NULL, 1)").is_ok());
    for wrong in [
        "('http://h', 'm', 0, 0.4, 1024, 3, 1, 1)",
        "('http://h', 'm', 30, 3.0, 1024, 3, 1, 1)",
        "('http://h', 'm', 30, 0.4, 0, 3, 1, 1)",
        "('http://h', 'm', 30, 0.4, 1024, 11, 1, 1)",
        "('http://h', 'm', 30, 0.4, 1024, 3, 1, 0)",
        "('http://h', 'm', NULL, 0.4, 1024, 3, 1, 1)",
        "('replay', 'm', NULL, 0.4, NULL, NULL, NULL, 1)",
    ] {
        assert!(insert(wrong).is_err(), "{wrong}");
    }
    settings.time_limit_s = 301;
    assert!(settings.check().is_err());
}

#[test]
fn a_newer_record_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exam.db");
    let record = ExamRecord::open(&path).unwrap();
    record
        .connection
        .pragma_update(None, "user_version", 99)
        .unwrap();
    drop(record);
    assert!(matches!(
        ExamRecord::open(&path),
        Err(ExamError::Newer { found: 99, .. })
    ));
}

#[test]
fn servers_are_unique_by_name_and_address() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = ExamRecord::open(&folder.path().join("exam.db")).unwrap();
    record
        .add_server("a", "http://h/mcp", ServerTransport::StreamableHttp, None)
        .unwrap();
    assert!(
        record
            .add_server("a", "http://i/mcp", ServerTransport::StreamableHttp, None)
            .is_err()
    );
    assert!(
        record
            .add_server("b", "http://h/mcp", ServerTransport::Sse, None)
            .is_err()
    );
    record
        .set_server_status("a", ServerStatus::Failed, "nobody there")
        .unwrap();
    assert_eq!(record.servers().unwrap()[0].status, ServerStatus::Failed);
    record.remove_server("a").unwrap();
    assert!(record.remove_server("a").is_err());
}
