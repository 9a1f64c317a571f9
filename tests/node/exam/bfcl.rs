//! Questions of a leaderboard, answered right and wrong on purpose: each answer is classified as the leaderboard's own
//! answers have it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadyhand::exam::{
    AnswerClassification, ExamCase, ExamToolbox, JudgedAnswer, PlannerAnswer, judge,
};

/// The folder of question files, and what their names begin with.
fn folder() -> (PathBuf, &'static str) {
    match std::env::var_os("STEADYHAND_BFCL") {
        Some(folder) => (PathBuf::from(folder), "BFCL_v4_"),
        None => (
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exam/bfcl"),
            "",
        ),
    }
}

fn cases(name: &str, is_answered: bool) -> Vec<ExamCase> {
    let (folder, prefix) = folder();
    let file = format!("{prefix}{name}.json");
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let questions = read(folder.join(&file));
    assert!(ExamCase::is_bfcl(&questions));
    let answers = is_answered.then(|| read(folder.join("possible_answer").join(&file)));
    ExamCase::read_bfcl(&questions, answers.as_deref()).unwrap()
}

fn judged(case: &ExamCase, output: &Value) -> JudgedAnswer {
    let tools = ExamToolbox::default().for_case(case).unwrap();
    judge(case, &PlannerAnswer::of(output, &tools), &tools)
}

fn message(tool: &str, arguments: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": tool, "arguments": arguments.to_string()}}]})
}

fn check(case: &ExamCase, output: &Value, classification: AnswerClassification, exact: bool) {
    let found = judged(case, output);
    assert_eq!(
        (found.classification, found.exact),
        (classification, exact),
        "{}: {output}: {found:?}",
        case.name
    );
}

/// A value of the same type that no question asks for. Of the two booleans one may well be asked for: they are tried apart.
fn other(value: &Value) -> Option<Value> {
    Some(match value {
        Value::String(_) => json!("something else entirely"),
        Value::Number(_) => json!(987_654_321),
        Value::Array(_) => json!(["something else entirely"]),
        Value::Object(_) => json!({"something": "else"}),
        Value::Bool(_) | Value::Null => return None,
    })
}

/// The values of an expected parameter that may be sent.
fn options(expected: &Value) -> &[Value] {
    match expected {
        Value::Array(all) => all,
        one => std::slice::from_ref(one),
    }
}

/// Sends each boolean that a question knows as either, also where it may be left out: right is what the answers list.
fn check_booleans(case: &ExamCase, tool: &str, gold: &Value) -> usize {
    let mut tried = 0;
    for (name, expected) in &case.expected_params {
        if !options(expected).iter().any(Value::is_boolean) {
            continue;
        }
        for value in [json!(true), json!(false)] {
            let is_right = options(expected).contains(&value);
            let mut sent = gold.clone();
            sent[name] = value;
            let sent = message(tool, &sent);
            check(case, &sent, AnswerClassification::TruePositive, is_right);
            tried += 1;
        }
    }
    tried
}

/// Checks answers to a case and returns how many booleans were tried.
fn check_answered(case: &ExamCase) -> usize {
    let tool = case.expected_tool.as_deref().unwrap();
    let gold = case.right_arguments();
    check(
        case,
        &message(tool, &gold),
        AnswerClassification::TruePositive,
        true,
    );
    let call = json!({"name": tool, "arguments": gold});
    check(
        case,
        &json!(format!("<tool_call>{call}</tool_call>")),
        AnswerClassification::TruePositive,
        true,
    );
    check(
        case,
        &message("no_such_function", &gold),
        AnswerClassification::WrongTool,
        false,
    );
    check(
        case,
        &json!("I cannot do that."),
        AnswerClassification::Missed,
        false,
    );
    let mut more = gold.clone();
    more["not_a_parameter_of_it"] = json!(1);
    check(
        case,
        &message(tool, &more),
        AnswerClassification::TruePositive,
        false,
    );
    for (name, value) in gold.as_object().unwrap() {
        let mut less = gold.clone();
        less.as_object_mut().unwrap().remove(name);
        check(
            case,
            &message(tool, &less),
            AnswerClassification::TruePositive,
            false,
        );
        if let Some(other) = other(value) {
            let mut wrong = gold.clone();
            wrong[name] = other;
            check(
                case,
                &message(tool, &wrong),
                AnswerClassification::TruePositive,
                false,
            );
        }
    }
    check_booleans(case, tool, &gold)
}

#[test]
fn bfcl_answers_are_classified_as_the_leaderboard_has_them() {
    let (mut rows, mut booleans) = (0, 0);
    for name in ["simple_python", "multiple"] {
        for case in cases(name, true) {
            booleans += check_answered(&case);
            rows += 1;
        }
    }
    for case in cases("irrelevance", false) {
        check(
            &case,
            &json!("None of these functions helps."),
            AnswerClassification::TrueNegative,
            true,
        );
        let function = case.functions[0]["name"].as_str().unwrap();
        check(
            &case,
            &message(function, &json!({})),
            AnswerClassification::FalsePositive,
            false,
        );
        rows += 1;
    }
    assert!(rows >= 80);
    assert!(booleans >= 14, "{booleans}");
}

#[test]
fn question_files_are_imported_whole_despite_incomplete_answers() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path();
    let (questions, gold) = (path.join("questions.json"), path.join("gold.json"));
    let question = json!({"id": "odd_1", "question": [[{"role": "user", "content": "Factors of 450?"}]], "function": [{
        "name": "factors", "description": "Find factors", "parameters": {"type": "dict", "required": ["number", "formatted"],
        "properties": {"number": {"type": "integer", "description": "n"}, "formatted": {"type": "boolean", "description": "f"}}}}]});
    let answer = json!({"id": "odd_1", "ground_truth": [{"factors": {"number": [450], "formatted": ["", true]}}]});
    std::fs::write(&questions, question.to_string()).unwrap();
    std::fs::write(&gold, answer.to_string()).unwrap();
    let (folder, prefix) = folder();
    let file = |name: &str| folder.join(format!("{prefix}{name}.json"));
    let answers = |name: &str| {
        folder
            .join("possible_answer")
            .join(format!("{prefix}{name}.json"))
    };
    let mut all = 0;
    for (questions, gold) in [
        (questions, Some(gold)),
        (file("simple_python"), Some(answers("simple_python"))),
        (file("multiple"), Some(answers("multiple"))),
        (file("irrelevance"), None),
    ] {
        let text = std::fs::read_to_string(&questions).unwrap();
        all += text.lines().filter(|line| !line.trim().is_empty()).count();
        let mut import = vec!["cases", "import", questions.to_str().unwrap()];
        if let Some(gold) = &gold {
            import.extend(["--answers", gold.to_str().unwrap()]);
        }
        let imported = super::exam(path, &import);
        let stderr = String::from_utf8_lossy(&imported.stderr).into_owned();
        assert!(imported.status.success(), "{stderr}");
    }
    let own = super::exam(path, &["cases", "export", "--own"]);
    let own = ExamCase::read_lines(&String::from_utf8_lossy(&own.stdout)).unwrap();
    assert_eq!(own.len(), all);
}

#[test]
fn a_stand_in_value_is_right_where_the_question_says_so() {
    let line = r#"{"query": "Train it on your_dataset_name", "expected_tool": "train", "expected_params": {"dataset": ["your_dataset_name"]},
        "functions": [{"name": "train", "description": "Train", "parameters": {"type": "object", "required": ["dataset"],
        "properties": {"dataset": {"type": "string", "description": "which"}}}}]}"#;
    let case = ExamCase::read_lines(&line.replace('\n', " "))
        .unwrap()
        .remove(0);
    let sent = |value: &str| message("train", &json!({"dataset": value}));
    let right = AnswerClassification::TruePositive;
    check(&case, &sent("your_dataset_name"), right, true);
    check(&case, &sent("your_other_name"), right, false);
}
