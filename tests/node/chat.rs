//! A client asks for a cat: it previews a drawing of its own, draws what it was shown, and the picture in the README is its
//! session, with the ink of the simulated pen. `REWRITE_SNAPSHOTS=1` paints the picture anew.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use steadyhand::mcp::client::{self, McpClient};
use steadyhand::mcp::{CallWatch, ReceivedArguments, ToolAnswer};
use support::Bench;
use tokio_util::sync::CancellationToken;

const CAT: &str = include_str!("chat/cat.svg");

async fn stroke(client: &McpClient, arguments: &Value) -> ToolAnswer {
    let watch = CallWatch {
        cancelled: CancellationToken::new(),
        progress: None,
    };
    let arguments = ReceivedArguments::Value(arguments.clone());
    client.call("stroke", arguments, watch).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_previews_a_cat_and_draws_what_it_was_shown() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let served = bench.serve(&["--state", &state, "--record"]);
    let client = client::connect(&served.url).await.unwrap();
    let shown = stroke(&client, &json!({"svg": CAT, "dry_run": true})).await;
    let plan = shown.structured["plan_hash"].as_str().unwrap();
    let plan = &plan[..8];
    let drawn = stroke(&client, &json!({ "plan": plan })).await;
    assert_eq!(drawn.structured["success"], true, "{}", drawn.text);
    client.close().await;
    drop(served);
    let ink = bench.path("ink").display().to_string();
    let words = ["recording", "export", "svg", "job-1", "--state", &state];
    let exported = bench.run(&[&words[..], &["--out", &ink]].concat());
    assert!(exported.status.success(), "{exported:?}");
    let ink = std::fs::read_to_string(bench.path("ink/job-1.svg")).unwrap();
    let calls = [
        r#"stroke {"svg": "<svg …>", "dry_run": true}"#.to_owned(),
        format!(r#"stroke {{"plan": "{plan}"}}"#),
    ];
    keep(&picture(&calls, [&shown.text, &drawn.text], &ink));
}

/// Keeps the picture if that is asked for; otherwise checks that the one that is kept shows such a session.
fn keep(picture: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/chat.svg");
    if std::env::var_os("REWRITE_SNAPSHOTS").is_some_and(|set| set == "1") {
        std::fs::write(path, picture).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap();
    for part in ["<polyline", "<text", "dry_run", "&quot;plan&quot;"] {
        let counts = [&kept, picture].map(|text| text.matches(part).count());
        assert!(
            counts[0] > 0 && (part == "<text" || counts[0] == counts[1]),
            "{part}: {counts:?}"
        );
    }
}

/// Characters of a line of the chat.
const LINE: usize = 50;

/// The words of an answer that fit into the chat: its first sentences.
fn beginning(answer: &str) -> String {
    let line = answer.lines().next().unwrap();
    let mut kept = String::new();
    for part in line.split_inclusive("; ") {
        if kept.len() + part.len() > 3 * LINE {
            return format!("{}…", kept.trim_end_matches("; "));
        }
        kept.push_str(part);
    }
    kept
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().unwrap();
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > LINE {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// Paints one message of the chat at a height. Returns the height of the next one.
fn bubble(svg: &mut String, y: usize, who: &str, text: &str) -> usize {
    let lines = wrapped(text);
    let (x, fill, font) = match who {
        "you" => (150, "#d7e8ff", "sans-serif"),
        "the model calls" => (60, "#ececf1", "monospace"),
        _ => (20, "#e4f3e4", "sans-serif"),
    };
    let height = 22 + 18 * lines.len();
    let _ = writeln!(
        svg,
        r##"<text x="{}" y="{}" font-size="11" fill="#666" font-family="sans-serif">{who}</text>
<rect x="{x}" y="{}" width="370" height="{}" rx="9" fill="{fill}"/>"##,
        x + 4,
        y + 10,
        y + 15,
        height - 8,
    );
    for (number, line) in lines.iter().enumerate() {
        let _ = writeln!(
            svg,
            r##"<text x="{}" y="{}" font-size="13" fill="#1a1a2e" font-family="{font}">{}</text>"##,
            x + 12,
            y + 33 + 18 * number,
            escaped(line)
        );
    }
    y + height + 16
}

fn picture(calls: &[String; 2], answers: [&str; 2], ink: &str) -> String {
    let mut chat = String::new();
    let mut y = bubble(&mut chat, 20, "you", "Draw me a cat.");
    for (call, answer) in calls.iter().zip(answers) {
        y = bubble(&mut chat, y, "the model calls", call);
        y = bubble(&mut chat, y, "the arm's node answers", &beginning(answer));
    }
    // Room for the sheet and its caption beside the chat.
    let y = y.max(400);
    let lines: String = ink
        .lines()
        .filter(|line| line.contains("<polyline"))
        .map(thinned)
        .collect();
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="920" height="{y}" viewBox="0 0 920 {y}">
<title>A chat that asks for a cat, and the ink of the simulated pen</title>
<rect width="920" height="{y}" rx="12" fill="#fafafa"/>
{chat}<rect x="560" y="24" width="340" height="340" fill="#fff" stroke="#ccc"/>
<svg x="560" y="24" width="340" height="340" viewBox="18 39 70 70">
{lines}</svg>
<text x="560" y="384" font-size="11" fill="#666" font-family="sans-serif">the ink, as the simulated arm drew it</text>
</svg>
"##
    )
}

/// One line of ink with its points to a tenth of a millimetre, those left out that stand where the one before does.
fn thinned(line: &str) -> String {
    let (before, rest) = line.trim().split_once("points=\"").unwrap();
    let (points, after) = rest.split_once('"').unwrap();
    let mut kept: Vec<String> = points
        .split_whitespace()
        .filter_map(|point| point.split_once(','))
        .map(|(x, y)| {
            let [x, y] = [x, y].map(|number| number.parse::<f64>().unwrap());
            format!("{x:.1},{y:.1}")
        })
        .collect();
    kept.dedup();
    format!("{before}points=\"{}\"{after}\n", kept.join(" "))
}
