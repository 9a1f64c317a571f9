//! Likeness predicts and confusion proves: the matrices of `exam similar`, also of another server's tools.

use serde_json::{Value, json};

use super::support::Bench;
use super::{exam, json_of, replayed, right, write};

fn cell(found: &Value, right: &str, called: &str) -> (u64, u64) {
    let confusion = &found["confusion"];
    let columns = confusion["columns"].as_array().unwrap();
    let column = columns.iter().position(|name| name == called).unwrap();
    let rows = confusion["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["right"] == right).unwrap();
    (
        row["called"][column].as_u64().unwrap(),
        row["n"].as_u64().unwrap(),
    )
}

#[test]
fn both_matrices_have_headings_and_the_confusion_its_n() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shown = || {
        let shown = exam(path, &["similar", "--tools"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    assert!(shown().contains("no finished run"), "{}", shown());
    replayed(path, "observe", |case| match &case.expected_tool {
        Some(tool) if tool == "align" => json!("stroke()"),
        _ => right(case),
    });
    let found = json_of(&exam(path, &["similar", "--tools", "--json"]));
    let (wrong, n) = cell(&found, "align", "stroke");
    assert!(wrong == n && n > 0, "{found}");
    assert_eq!(found["confusion"]["n"], 152);
    let reply = shown();
    let lines: Vec<&str> = reply.lines().collect();
    let at = |start: &str| {
        let found = lines.iter().position(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{start}: {reply}"))
    };
    let text_of = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
    let alike = text_of(at("similarity, from 0 to 1") + 1);
    assert_eq!(alike.len(), 6, "{reply}");
    let headings = text_of(at("confusion in run 1 (152 answers)") + 1);
    assert_eq!((headings[0], headings.last()), ("(none)", Some(&"n")));
    let row = lines
        .iter()
        .skip(at("confusion"))
        .find(|line| line.trim_start().starts_with("align "));
    let cells: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!(cells.len(), headings.len() + 1, "{reply}");
    assert_eq!(cells.last(), Some(&n.to_string().as_str()));
    // A confused pair is reported, however unlike its tools are.
    assert!(reply.contains("mixed them up in"), "{reply}");
}

#[test]
fn another_servers_tools_are_confused_under_the_names_shown() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let url = format!("http://{}/mcp", served.host());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert!(exam(path, &["servers", "add", "me", &url]).status.success());
    let (cases, answers) = (path.join("cases.jsonl"), path.join("answers.jsonl"));
    let look = json!({"query": "Look there", "expected_tool": "sense", "expected_server": "me"});
    write(&cases, std::iter::once(look));
    write(
        &answers,
        std::iter::once(json!({"query": "Look there", "output": "me__list_nodes()"})),
    );
    for more in [&[][..], &["--only-servers"][..]] {
        let expected = if more.is_empty() {
            "me__list_nodes()"
        } else {
            "list_nodes()"
        };
        write(
            &answers,
            std::iter::once(json!({"query": "Look there", "output": expected})),
        );
        let mut run = vec![
            "run",
            "--replay",
            answers.to_str().unwrap(),
            "--cases",
            cases.to_str().unwrap(),
            "--servers",
            "me",
            "--json",
        ];
        run.extend(more);
        json_of(&exam(path, &run));
        let found = json_of(&exam(path, &["similar", "--servers", "me", "--json"]));
        assert_eq!(cell(&found, "me/sense", "me/list_nodes"), (1, 1), "{found}");
        let pairs = found["pairs"].as_array().unwrap();
        let is_it = |pair: &&Value| pair["confused"] == json!([1, 1]);
        let pair = pairs.iter().find(is_it).unwrap();
        let mut names = [pair["a"].as_str().unwrap(), pair["b"].as_str().unwrap()];
        names.sort_unstable();
        assert_eq!(names, ["me/list_nodes", "me/sense"]);
        assert_eq!(pair["recommendations"][0]["priority"], "high");
    }
}
