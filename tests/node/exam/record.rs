//! Tests what is kept of runs, and what goes when one is deleted.

use serde_json::{Value, json};

use super::{exam, json_of, replayed, right};

#[test]
fn a_run_is_deleted_with_all_that_belongs_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    replayed(path, "observe", right);
    replayed(path, "observe", |_| json!("No."));
    assert!(exam(path, &["runs", "delete", "1"]).status.success());
    let gone = exam(path, &["runs", "delete", "1"]);
    let stderr = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(
        !gone.status.success() && stderr.contains("there is no run"),
        "{stderr}"
    );
    let listed = json_of(&exam(path, &["runs", "list", "--json"]));
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let record = rusqlite::Connection::open(path.join("exam.db")).unwrap();
    let rows = |table: &str, column: &str| -> Vec<i64> {
        let sql = format!("SELECT DISTINCT {column} FROM {table}");
        let mut rows = record.prepare(&sql).unwrap();
        let rows = rows.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    for table in ["tools", "run_cases", "answers"] {
        assert_eq!(rows(table, "run_id"), [2], "{table}");
    }
    assert_eq!(rows("settings", "id"), [2]);
    assert_eq!(rows("results", "answer_id").len(), 152);
}

#[test]
fn a_replay_says_nothing_of_how_it_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (_, verdict) = replayed(path, "observe", right);
    let report = json_of(&exam(path, &["report", "--format", "json"]));
    let settings = report["settings"].as_object().unwrap();
    let mut keys: Vec<&str> = settings.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["model", "provider", "samples"]);
    for place in [0, 1] {
        let text = std::fs::read_to_string(verdict["report"][place].as_str().unwrap()).unwrap();
        assert!(text.contains("their settings are unknown"));
        for unknown in ["temperature", "time limit", "retries", "seed"] {
            assert!(!text.contains(unknown), "{unknown}");
        }
    }
    let record = rusqlite::Connection::open(path.join("exam.db")).unwrap();
    let kept: Option<f64> = record
        .query_row("SELECT temperature FROM settings", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, None);
    assert_eq!(verdict["passed"], Value::Bool(true));
}
