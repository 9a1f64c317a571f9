//! A report as Markdown.

use std::fmt::Write as _;

use super::{DESCRIPTIONS_TITLE, ExamReport};
use crate::run::CaseOutcome;
use crate::verdict::answer_text;
use crate::word::Word;

/// Longest answer that is shown in a table.
const SHOWN_CHARS_MAX: usize = 120;

/// Renders the report of a run.
pub(crate) fn markdown(report: &ExamReport) -> String {
    let mut out = format!("# {}\n\n", report.title());
    let settings = &report.run.settings;
    let _ = writeln!(
        out,
        "Run {} of `{}` at `{}`: {}; steadyhand {}.\n",
        report.run.id,
        settings.model,
        settings.provider,
        settings.in_words(),
        report.run.version
    );
    for (title, items) in report.leading_lists() {
        list(&mut out, title, &items);
    }
    if let Some(tables) = &report.verdict.descriptions {
        let _ = writeln!(out, "## {DESCRIPTIONS_TITLE}\n\n```toml\n{tables}```\n");
    }
    worst(&mut out, report);
    out.push_str("## Figures\n\n| what | value |\n|---|---|\n");
    for (name, value) in report.figures() {
        let _ = writeln!(out, "| {name} | {value} |");
    }
    for (title, rows) in report.groups() {
        let _ = writeln!(
            out,
            "\n## {title}\n\n| | n | right | exact | unsafe |\n|---|--:|--:|--:|--:|"
        );
        for row in rows {
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
    }
    confusion(&mut out, report);
    let wrong = report.wrong();
    let _ = writeln!(
        out,
        "\n## Answers that were not right ({} of {})\n\n| case | asked | expected | got | classification | why |\n|---|---|---|---|---|---|",
        wrong.len(),
        report.answered().count()
    );
    for outcome in wrong {
        row(&mut out, outcome);
    }
    out
}

/// Adds the worst answers, explained.
fn worst(out: &mut String, report: &ExamReport) {
    let all = &report.verdict.worst;
    if all.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "## The worst answers ({} of {})\n",
        all.len(),
        report.answered().count()
    );
    for one in all {
        let _ = writeln!(
            out,
            "### {}: {}\n\n`{}`, expected: {}; got: {}\n",
            one.classification,
            escaped(&one.query),
            one.case,
            escaped(&one.expected),
            escaped(&one.answer)
        );
        list(out, "Why", &one.why);
        list(out, "What would improve it", &one.advice);
    }
}

fn list(out: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "{title}:\n");
    for item in items {
        let _ = writeln!(out, "* {}", escaped(item));
    }
    out.push('\n');
}

fn confusion(out: &mut String, report: &ExamReport) {
    let matrix = report.confusion();
    let _ = writeln!(
        out,
        "\n## What was called (columns) where what was right (rows), of {} answers\n\n| | {} | n |",
        matrix.n,
        matrix.columns.join(" | ")
    );
    let _ = writeln!(out, "|---|{}", "--:|".repeat(matrix.columns.len() + 1));
    for row in &matrix.rows {
        let cells: Vec<String> = row.called.iter().map(usize::to_string).collect();
        let _ = writeln!(out, "| {} | {} | {} |", row.right, cells.join(" | "), row.n);
    }
}

fn row(out: &mut String, outcome: &CaseOutcome) {
    let _ = writeln!(
        out,
        "| {} | {} | {} | {} | {} | {} |",
        outcome.case.name,
        escaped(&outcome.case.query),
        escaped(&outcome.case.expected()),
        escaped(&answer_text(&outcome.raw)),
        outcome.judged.classification.word(),
        escaped(&outcome.judged.reasons.join("; "))
    );
}

/// Escapes text for a cell of a table: one line, truncated, without Markdown or HTML.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(2 * SHOWN_CHARS_MAX) {
        match c {
            '\n' | '\r' => out.push(' '),
            '|' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
