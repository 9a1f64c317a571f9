//! The reader against corpora of what was really sent. They lie in `arguments` of a folder beside the checkout; another one is named by `STEADYHAND_ARGUMENTS`.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use steadyhand::args::{
    ArgumentShape, DeclaredUnit, ForgivenessProfile, LineReading, ParameterShape, ReaderPolicy,
    ReceivedArguments, ToolEffect, ValueKind, Verdict, explain_line, judged,
};

fn rows(file: &str) -> Vec<Value> {
    let beside = || {
        let folders = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
        let mut corpora = folders.map(|folder| folder.unwrap().path().join("arguments"));
        corpora.find(|corpus| corpus.join(file).is_file())
    };
    let named = std::env::var_os("STEADYHAND_ARGUMENTS").map(PathBuf::from);
    let folder = named.or_else(beside).unwrap_or_default();
    let Ok(text) = fs::read_to_string(folder.join(file)) else {
        return Vec::new();
    };
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn names<const N: usize>(names: [&str; N]) -> ValueKind {
    ValueKind::name(names)
}

fn stroke() -> ArgumentShape {
    ArgumentShape::new(vec![
        ParameterShape::new(
            "scene",
            names([
                "default",
                "koi",
                "star",
                "tiger",
                "hand",
                "practice_skin",
                "wow",
                "flower",
                "zorya",
            ]),
        )
        .default("default")
        .selects_motion(),
        ParameterShape::new("meta", names(["tatbotlogo", "koi"])),
        ParameterShape::new("debug", ValueKind::Bool).default(false),
        ParameterShape::new("fps", ValueKind::integer(1, 120)).default(10),
        ParameterShape::new("resume", ValueKind::Bool).default(false),
        ParameterShape::new("enable_joystick", ValueKind::Bool).default(false),
        ParameterShape::new("enable_realsense", ValueKind::Bool).default(false),
    ])
    .with_other_tools(["align", "reset", "sense", "list_nodes", "stop"])
    .with_tool_names(["stroke"])
    .needing_choice()
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

#[derive(Default, Debug)]
struct Score {
    rows: usize,
    exact: usize,
    wrong: usize,
    refused: usize,
    /// Rows that were not read exactly, for the message of a failing test.
    misses: Vec<String>,
}

fn score(rows: &[Value], shape: impl Fn(&Value) -> ArgumentShape) -> Score {
    let mut score = Score {
        rows: rows.len(),
        ..Score::default()
    };
    for row in rows {
        let want = row.get("want").filter(|want| !want.is_null());
        match (explain_line(&shape(row), row["s"].as_str().unwrap()), want) {
            (LineReading::Understood { understood, .. }, Some(want))
                if same(&Value::Object(understood.clone()), want) =>
            {
                score.exact += 1;
            }
            (LineReading::Refused { .. }, None) => score.exact += 1,
            (LineReading::Understood { understood, .. }, want) => {
                score.wrong += 1;
                score.misses.push(format!(
                    "wrong {}: {} -> {} want {:?}",
                    row["cls"],
                    row["s"],
                    Value::Object(understood),
                    want.map(Value::to_string)
                ));
            }
            (LineReading::Refused { refused, .. }, Some(_)) => {
                score.refused += 1;
                score
                    .misses
                    .push(format!("refused {}: {} -> {refused}", row["cls"], row["s"]));
            }
        }
    }
    score
}

#[test]
fn handmade_forms_are_read_exactly() {
    let shape = forms_shape();
    let score = score(&rows("forms.jsonl"), |_| shape.clone());
    assert_eq!(score.exact, score.rows, "{score:#?}");
}

/// Our own rows, which need no external corpus.
fn own_rows() -> Vec<Value> {
    let text = include_str!("../arguments/rows.jsonl");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn forms_shape() -> ArgumentShape {
    let schema = json!({"type": "object", "properties": {"scene": {"type": "string"}, "meta": {"type": "string"},
        "debug": {"type": "boolean"}, "fps": {"type": "integer"}}});
    ArgumentShape::from_json_schema(&schema).unwrap()
}

#[test]
fn our_own_rows_are_read_exactly() {
    let rows = own_rows();
    let shape = forms_shape();
    let score = score(&rows, |_| shape.clone());
    assert!(rows.len() > 1000);
    assert_eq!(score.exact, score.rows, "{:#?}", score.misses);
}

#[test]
fn our_own_rows_cut_at_any_byte_say_all_or_nothing() {
    let shape = forms_shape();
    let mut partly = Vec::new();
    for row in own_rows() {
        let text = row["s"].as_str().unwrap();
        // A list of tags has no end of its own: what came before the cut is whole.
        if row["cls"] != "whole" || text.starts_with("<scene>") {
            continue;
        }
        for (at, _) in text.char_indices().skip(1) {
            if let LineReading::Understood { understood, .. } = explain_line(&shape, &text[..at])
                && !same(&Value::Object(understood.clone()), &row["want"])
            {
                partly.push(format!("{} -> {}", &text[..at], Value::Object(understood)));
            }
        }
    }
    assert!(partly.is_empty(), "{partly:#?}");
}

#[test]
fn malformed_renderings_are_read_exactly() {
    let score = score(&rows("bfcl.jsonl"), |row| {
        ArgumentShape::from_json_schema(&row["schema"]).unwrap()
    });
    assert!(score.wrong <= 3, "{score:#?}");
    assert!(score.exact * 1000 >= score.rows * 995, "{score:#?}");
}

/// Returns what a text says: letters and digits in lower case, so that form does not matter.
fn normalize(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[test]
fn nothing_moves_with_a_value_that_was_not_emitted() {
    let shape = stroke();
    for row in rows("models.jsonl") {
        let text = row["args_raw"].as_str().unwrap_or_default();
        for profile in [ForgivenessProfile::Lenient, ForgivenessProfile::Guarded] {
            let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
            let verdict = judged(&shape, &policy, ReceivedArguments::Text(text.into()));
            let Verdict::Understood(understood) = verdict else {
                continue;
            };
            for (name, value) in &understood.reading().understood {
                let default = shape
                    .params
                    .iter()
                    .find(|param| param.name == *name)
                    .and_then(|param| param.default.as_ref());
                let word = normalize(value.as_str().unwrap_or(&value.to_string()));
                assert!(
                    default == Some(value) || normalize(text).contains(&word),
                    "{name}={value} from {text}"
                );
            }
        }
    }
}

#[test]
fn nothing_moves_after_text_that_cannot_be_trusted() {
    let shape = stroke();
    let bad = ["not_json", "truncated", "schema_echo", "template_echo"];
    let mut ran = Vec::new();
    for row in rows("models.jsonl") {
        let labels: Vec<&str> = row["labels"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let Some(text) = row["args_raw"].as_str() else {
            continue;
        };
        if !labels.iter().any(|label| bad.contains(label)) {
            continue;
        }
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        if let Verdict::Understood(understood) =
            judged(&shape, &policy, ReceivedArguments::Text(text.into()))
        {
            let reading = understood.reading();
            ran.push(format!(
                "{labels:?}: {text} -> {}",
                Value::Object(reading.understood.clone())
            ));
        }
    }
    assert!(ran.is_empty(), "{ran:#?}");
}

#[test]
fn a_schema_echoed_back_is_never_a_call() {
    let mut accepted = Vec::new();
    for row in rows("bfcl.jsonl").iter().step_by(7) {
        let shape = ArgumentShape::from_json_schema(&row["schema"]).unwrap();
        if shape.params.is_empty() {
            continue;
        }
        for echo in [&row["schema"], &row["schema"]["properties"]] {
            if let LineReading::Understood { understood, .. } =
                explain_line(&shape, &echo.to_string())
            {
                accepted.push(format!("{echo} -> {}", Value::Object(understood)));
            }
        }
    }
    assert!(accepted.is_empty(), "{accepted:#?}");
}

#[test]
fn a_call_cut_anywhere_is_never_a_call() {
    let mut accepted = Vec::new();
    let rows = rows("bfcl.jsonl");
    let closed = [
        "strict",
        "pretty",
        "pyliteral",
        "trailing",
        "unquoted",
        "smart",
        "comment",
        "double",
    ];
    for row in rows
        .iter()
        .filter(|row| closed.contains(&row["cls"].as_str().unwrap()))
        .step_by(9)
    {
        let shape = ArgumentShape::from_json_schema(&row["schema"]).unwrap();
        let text = row["s"].as_str().unwrap();
        for (at, _) in text.char_indices().skip(1) {
            if let LineReading::Understood { understood, .. } = explain_line(&shape, &text[..at]) {
                accepted.push(format!("{} -> {}", &text[..at], Value::Object(understood)));
            }
        }
    }
    assert!(accepted.is_empty(), "{accepted:#?}");
}

/// The blocks of `docs/arguments.md` that are marked with `language`, line by line.
fn documented(language: &str) -> Vec<String> {
    let (mut lines, mut fence) = (Vec::new(), None);
    for line in include_str!("../../docs/arguments.md").lines() {
        let ticks = line.chars().take_while(|c| *c == '`').count();
        match fence {
            None if ticks >= 3 => fence = Some((ticks, &line[ticks..])),
            Some((open, _)) if ticks == open && line.len() == ticks => fence = None,
            Some((_, marked)) if marked == language => lines.push(line.to_owned()),
            _ => {}
        }
    }
    lines
}

/// Checks what a documented line says of a text: the arguments, `preview` with the arguments, or the code of a complaint.
fn check_documented(line: &str, judge: impl Fn(&str) -> Result<Value, Vec<&'static str>>) {
    let (text, want) = line.rsplit_once(" => ").unwrap();
    let text = text.replace('⏎', "\n");
    match (judge(&text), want.strip_prefix("refused ")) {
        (Ok(understood), None) => {
            let want: Value = serde_json::from_str(want).unwrap();
            assert!(same(&understood, &want), "{text} -> {understood}");
        }
        (Err(codes), Some(code)) => assert!(codes.contains(&code), "{text} -> {codes:?}"),
        (got, _) => panic!("{text} -> {got:?}, documented {want}"),
    }
}

/// The tool that the page describes.
fn documented_tool() -> ArgumentShape {
    let number = |name: &str, min, max, unit| {
        ParameterShape::new(name, ValueKind::number(min, max, DeclaredUnit::named(unit)))
    };
    ArgumentShape::new(vec![
        ParameterShape::new("scene", names(["default", "koi", "star", "practice_skin"]))
            .default("default")
            .selects_motion(),
        ParameterShape::new("overlay", names(["crosses", "leaf"])).alias("meta"),
        ParameterShape::new("debug", ValueKind::Bool).default(false),
        ParameterShape::new("dry_run", ValueKind::Bool)
            .default(false)
            .cautious(true),
        ParameterShape::new("fps", ValueKind::integer(1, 120)).default(10),
        number("lift", 0.001, 0.6, "m"),
        number("angle", 0.0, 3.2, "rad"),
        number("wait", 0.0, 60.0, "s"),
        number("speed", 0.0, 0.5, "m/s"),
        number("rate", 0.0, 1000.0, "hz"),
        ParameterShape::new("note", ValueKind::Text),
        ParameterShape::new("tags", ValueKind::list(ValueKind::Text)),
    ])
    .with_other_tools(["align", "reset", "sense", "stop"])
    .with_known_names(["default", "koi", "star", "practice_skin", "crosses", "leaf"])
    .with_tool_names(["stroke", "draw"])
    .needing_choice()
}

#[test]
fn every_example_of_the_page_is_true() {
    let shape = documented_tool();
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let lines = documented("arguments");
    assert!(lines.len() > 60, "{}", lines.len());
    for line in lines {
        check_documented(&line, |text| {
            match judged(&shape, &policy, ReceivedArguments::Text(text.into())) {
                Verdict::Understood(understood) => {
                    Ok(Value::Object(understood.reading().given.clone()))
                }
                Verdict::Preview(reading) => Ok(json!({"preview": reading.given})),
                Verdict::Refused(refusal) => {
                    Err(refusal.complaints.iter().map(|c| c.code).collect())
                }
            }
        });
    }
}

/// Neither too much nor too little: the calls that models make in whole JSON move a guarded arm, and so does every form of a
/// wanted call that only its parameters are in; with a comment or prose it is shown first.
#[test]
fn wanted_calls_move_a_guarded_arm() {
    let shape = stroke();
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let outcome = |text: &str| match judged(&shape, &policy, ReceivedArguments::Text(text.into())) {
        Verdict::Understood(_) => "moves",
        Verdict::Preview(_) => "preview",
        Verdict::Refused(_) => "refused",
    };
    for row in rows("forms.jsonl") {
        let text = row["s"].as_str().unwrap();
        let has_scene = row["want"]["scene"] == "koi" || row["want"] == json!({});
        let want = match row["cls"].as_str().unwrap() {
            "prose" | "comment" => "preview",
            _ if has_scene => "moves",
            _ => continue,
        };
        assert_eq!(outcome(text), want, "{text}");
    }
    let rows = rows("models.jsonl");
    let motions = rows.iter().filter(|row| {
        let tool = row["tool_raw"].as_str().unwrap_or_default();
        ["stroke", "align", "reset"]
            .iter()
            .any(|one| tool.contains(one))
    });
    let texts = motions.filter_map(|row| row["args_raw"].as_str());
    let moving = texts.filter(|text| outcome(text) == "moves").count();
    assert!(rows.is_empty() || moving >= 17, "{moving}");
}

#[test]
fn every_example_of_a_foreign_schema_is_true() {
    let schema: Value = serde_json::from_str(&documented("schema").join("\n")).unwrap();
    let shape = ArgumentShape::from_json_schema(&schema).unwrap();
    let lines = documented("cases");
    assert!(lines.len() >= 7);
    for line in lines {
        check_documented(&line, |text| match explain_line(&shape, text) {
            LineReading::Understood { understood, .. } => Ok(Value::Object(understood)),
            LineReading::Refused {
                complaints,
                corrected,
                ..
            } => {
                let again =
                    corrected.map(|call| explain_line(&shape, &Value::Object(call).to_string()));
                assert!(
                    matches!(again, None | Some(LineReading::Understood { .. })),
                    "the correction of {text} is refused"
                );
                Err(complaints.iter().map(|c| c.code).collect())
            }
        });
    }
}
