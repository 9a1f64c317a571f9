//! The record keeps what it must and refuses what it must not keep.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::*;
use crate::exam::{Card, Case, Replay, Toolbox};

fn exam() -> Exam {
    let cases = Case::read_lines(
        "{\"query\":\"a\",\"expected_tool\":null}\n{\"query\":\"b\",\"expected_tool\":\"t\"}",
    )
    .unwrap();
    Exam {
        cases,
        tools: Toolbox::new(vec![Card::named("t")]),
        preamble: String::new(),
        asked: None,
        notes: Vec::new(),
    }
}

#[test]
fn an_interrupted_run_is_marked_and_keeps_its_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exam.db");
    let mut record = Record::open(&path).unwrap();
    let (exam, settings) = (exam(), Settings::new("p", "m"));
    let run = record
        .begin(&NewRun {
            exam: &exam,
            settings: &settings,
        })
        .unwrap();
    let tools = exam.tools_for(&exam.cases[0]).unwrap();
    let outcome = Outcome::of(&exam.cases[0], 0, &"no".into(), &tools);
    record.keep(run, &[outcome]).unwrap();
    // While it runs, another look at the record leaves it alone.
    assert_eq!(
        Record::open(&path).unwrap().run(Some(run)).unwrap().status,
        "running"
    );
    drop(record);
    let record = Record::open(&path).unwrap();
    let row = record.run(None).unwrap();
    assert_eq!((row.status.as_str(), row.answers), ("failed", 1));
    assert!(row.error.unwrap().contains("interrupted after 1 answers"));
    assert_eq!(record.outcomes(run).unwrap().len(), 1);
}

#[test]
fn two_exams_at_once_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exam.db");
    let (mut one, mut two) = (Record::open(&path).unwrap(), Record::open(&path).unwrap());
    let (exam, settings) = (exam(), Settings::new("p", "m"));
    one.begin(&NewRun {
        exam: &exam,
        settings: &settings,
    })
    .unwrap();
    assert!(matches!(
        two.begin(&NewRun {
            exam: &exam,
            settings: &settings
        }),
        Err(ExamError::Busy(_))
    ));
}

#[test]
fn what_belongs_to_a_run_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = Record::open(&folder.path().join("exam.db")).unwrap();
    let replay = Replay::read_lines("{\"query\":\"a\",\"output\":\"no\"}").unwrap();
    let (run, _) = exam().replay(&replay, "m", &mut record).unwrap();
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        record
            .connection
            .query_row(&sql, [], |row| row.get(0))
            .unwrap()
    };
    let tables = ["tools", "run_cases", "answers", "results"];
    assert!(tables.iter().all(|table| count(table) > 0));
    record
        .connection
        .execute("DELETE FROM runs WHERE id = ?1", [run])
        .unwrap();
    assert!(tables.iter().all(|table| count(table) == 0));
}

#[test]
fn settings_never_change_and_ranges_are_held() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = Record::open(&folder.path().join("exam.db")).unwrap();
    let (exam, mut settings) = (exam(), Settings::new("p", "m"));
    record
        .begin(&NewRun {
            exam: &exam,
            settings: &settings,
        })
        .unwrap();
    let db = &record.connection;
    assert!(db.execute("UPDATE settings SET seed = 2", []).is_err());
    for wrong in ["time_limit_s = 0", "temperature = 3", "retries = 11"] {
        let column = wrong.split(' ').next().unwrap();
        let sql = format!(
            "INSERT INTO settings SELECT 99, provider, model, {}, {}, {}, seed, samples FROM settings",
            if column == "time_limit_s" { "0" } else { "30" },
            if column == "temperature" {
                "3.0"
            } else {
                "0.4"
            },
            if column == "retries" { "11" } else { "3" },
        );
        assert!(db.execute(&sql, []).is_err(), "{wrong}");
    }
    settings.time_limit_s = 301;
    assert!(settings.check().is_err());
}

#[test]
fn a_newer_record_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exam.db");
    let record = Record::open(&path).unwrap();
    record
        .connection
        .pragma_update(None, "user_version", 99)
        .unwrap();
    drop(record);
    assert!(matches!(
        Record::open(&path),
        Err(ExamError::Newer { found: 99, .. })
    ));
}

#[test]
fn servers_are_unique_by_name_and_address() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = Record::open(&folder.path().join("exam.db")).unwrap();
    record
        .add_server("a", "http://h/mcp", Transport::StreamableHttp)
        .unwrap();
    assert!(
        record
            .add_server("a", "http://i/mcp", Transport::StreamableHttp)
            .is_err()
    );
    assert!(
        record
            .add_server("b", "http://h/mcp", Transport::Sse)
            .is_err()
    );
    record
        .server_found("a", Status::Failed, "nobody there")
        .unwrap();
    assert_eq!(record.servers().unwrap()[0].status, Status::Failed);
    record.remove_server("a").unwrap();
    assert!(record.remove_server("a").is_err());
}
