//! The same rows through Steadyhand's reader and through others: how many each reads right, refuses, and reads wrong.
//!
//! Rows are `forms.jsonl` and `bfcl.jsonl` of `STEADYHAND_ARGUMENTS`, or of `arguments` in a folder beside the checkout, and our own
//! `tests/arguments/rows.jsonl`. Where a row has no `want`, to refuse it is right.

use serde_json::{Map, Value, json};
use std::{env, error::Error, fs, panic, path::PathBuf};
use steadyhand::args::{Line, Shape, explain_line};

/// A reader, which returns what it made of a text; `None` where it refused.
type Read = fn(&Row) -> Option<Value>;

const READERS: [(&str, Read); 7] = [
    ("steadyhand", steadyhand),
    ("serde_json", |row| serde_json::from_str(&row.text).ok()),
    ("json5", |row| json5::from_str(&row.text).ok()),
    ("llm_json", |row| {
        llm_json::loads(&row.text, &llm_json::RepairOptions::default()).ok()
    }),
    ("jsonfix repair", |row| {
        parsed(jsonfix::repair(&row.text).ok())
    }),
    ("jsonfix repair_extract", |row| {
        parsed(jsonfix::repair_extract(&row.text).ok())
    }),
    // What a client without any reader does.
    ("{} for what is not JSON", |row| {
        Some(serde_json::from_str(&row.text).unwrap_or_else(|_| json!({})))
    }),
];

struct Row {
    text: String,
    want: Option<Value>,
    shape: Shape,
}

fn main() -> Result<(), Box<dyn Error>> {
    // A reader that panics has refused; its message is not for this table.
    panic::set_hook(Box::new(|_| {}));
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let beside = fs::read_dir(root.join(".."))?.flatten();
    let mut corpora = beside.map(|folder| folder.path().join("arguments"));
    let named = env::var_os("STEADYHAND_ARGUMENTS").map(PathBuf::from);
    let folder = named
        .or_else(|| corpora.find(|corpus| corpus.join("forms.jsonl").is_file()))
        .unwrap_or_default();
    let files = [
        folder.join("forms.jsonl"),
        folder.join("bfcl.jsonl"),
        root.join("tests/arguments/rows.jsonl"),
    ];
    for file in files.iter().filter(|file| file.exists()) {
        table(&file.display().to_string(), &rows(file)?);
    }
    Ok(())
}

fn rows(file: &PathBuf) -> Result<Vec<Row>, Box<dyn Error>> {
    let forms = json!({"type": "object", "properties": {"scene": {"type": "string"}, "meta": {"type": "string"},
        "debug": {"type": "boolean"}, "fps": {"type": "integer"}}});
    let row = |line: &str| -> Result<Row, Box<dyn Error>> {
        let case: Value = serde_json::from_str(line)?;
        Ok(Row {
            text: case["s"].as_str().unwrap_or_default().to_owned(),
            want: case.get("want").filter(|want| !want.is_null()).cloned(),
            shape: Shape::from_json_schema(case.get("schema").unwrap_or(&forms))?,
        })
    };
    fs::read_to_string(file)?.lines().map(row).collect()
}

fn table(name: &str, rows: &[Row]) {
    println!(
        "\n{name}, {} rows\n\n| reader | right | refused | wrong |\n|---|--:|--:|--:|",
        rows.len()
    );
    for (reader, read) in READERS {
        let (mut right, mut wrong) = (0, 0);
        for row in rows {
            let object = panic::catch_unwind(|| read(row)).ok().flatten().map(object);
            match (object, &row.want) {
                (Some(object), Some(want)) if same(&object, want) => right += 1,
                (None, None) => right += 1,
                (Some(_), _) => wrong += 1,
                (None, _) => {}
            }
        }
        println!(
            "| {reader} | {right} | {} | {wrong} |",
            rows.len() - right - wrong
        );
    }
}

fn steadyhand(row: &Row) -> Option<Value> {
    match explain_line(&row.shape, &row.text) {
        Line::Understood { understood, .. } => Some(Value::Object(understood)),
        Line::Refused { .. } => None,
    }
}

fn parsed(text: Option<String>) -> Option<Value> {
    serde_json::from_str(&text?).ok()
}

/// An object without nulls. Anything else stays what it is: a text given back as read is no arguments.
fn object(value: Value) -> Value {
    let Value::Object(map) = value else {
        return value;
    };
    let printed: Map<String, Value> = map
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect();
    Value::Object(printed)
}

/// Equal as values: 5 and 5.0 alike.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
