//! A report as one HTML file, for phones and for paper: no script, nothing fetched.

use std::fmt::Write as _;

use super::{DESCRIPTIONS_TITLE, ExamReport};
use crate::verdict::ShownAnswer;
use base::wording::html_escaped;

/// Longest part of an answer that is shown.
const SHOWN_CHARS_MAX: usize = 400;

const STYLE: &str = "
:root{color-scheme:light dark;--line:#8886}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.2}h2{font-size:1.15rem;margin-top:2rem}
.verdict{border-left:.4rem solid #b3261e;padding:.1rem 1rem}.verdict.passed{border-color:#146c2e}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.3rem .5rem;border-bottom:1px solid var(--line);vertical-align:top}
td.n{text-align:right;white-space:nowrap}.wide{overflow-x:auto}
details{border:1px solid var(--line);border-radius:.4rem;padding:.4rem .7rem;margin:.5rem 0}
summary{cursor:pointer}pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem}
li,dd,td,th{overflow-wrap:anywhere}small{opacity:.75}
@media (max-width:30rem){body{padding:.6rem}table{font-size:.85rem}th,td{padding:.25rem .3rem}}
@media print{body{max-width:none;padding:0;font-size:10.5pt}details,tr{break-inside:avoid}.wide{overflow:visible}
details::details-content{content-visibility:visible;display:block}}
";

/// Renders the report of a run.
pub(crate) fn html(report: &ExamReport) -> String {
    let title = text(&report.title());
    let passed = if report.verdict.passed { " passed" } else { "" };
    let settings = &report.run.settings;
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style></head><body>\n\
         <div class=\"verdict{passed}\"><h1>{title}</h1>\n<p>{} <small>at {}, run {}, steadyhand {}; {}</small></p></div>\n",
        text(&settings.model),
        text(&settings.provider),
        report.run.id,
        text(&report.run.version),
        settings.in_words(),
    );
    for (title, items) in report.leading_lists() {
        list(&mut out, title, &items);
    }
    if let Some(tables) = &report.verdict.descriptions {
        let _ = writeln!(
            out,
            "<h2>{DESCRIPTIONS_TITLE}</h2><pre>{}</pre>",
            text(tables)
        );
    }
    worst(&mut out, report);
    out.push_str("<h2>Figures</h2><table>\n");
    for (name, value) in report.figures() {
        let _ = writeln!(
            out,
            "<tr><th>{name}</th><td class=\"n\">{}</td></tr>",
            text(&value)
        );
    }
    out.push_str("</table>\n");
    for (title, rows) in report.groups() {
        groups(&mut out, title, &rows);
    }
    confusion(&mut out, report);
    let wrong = report.wrong();
    let _ = writeln!(
        out,
        "<h2>Answers that were not right ({} of {})</h2>",
        wrong.len(),
        report.answered().count()
    );
    for outcome in wrong {
        let answer = ShownAnswer::of(outcome, SHOWN_CHARS_MAX);
        let body = details(&answer);
        let _ = writeln!(out, "<details>{body}</details>");
    }
    out.push_str("</body></html>\n");
    out
}

/// Adds the worst answers, open and explained.
fn worst(out: &mut String, report: &ExamReport) {
    let all = &report.verdict.worst;
    if !all.is_empty() {
        let n = report.answered().count();
        let _ = writeln!(out, "<h2>The worst answers ({} of {n})</h2>", all.len());
    }
    for one in all {
        let _ = writeln!(out, "<details open>{}", details(one));
        if !one.advice.is_empty() {
            let advice = text(&one.advice.join("; "));
            let _ = writeln!(out, "<p>What would mend it: {advice}</p>");
        }
        out.push_str("</details>\n");
    }
}

/// Renders one answer: its classification, question, faults, the expected call and the answer.
fn details(one: &ShownAnswer) -> String {
    format!(
        "<summary><b>{}</b> {} <small>{}</small></summary><p>{}</p><p>Expected: {}. Got:</p><pre>{}</pre>",
        text(&one.classification),
        text(&one.query),
        text(&one.case),
        text(&one.why.join("; ")),
        text(&one.expected),
        text(&one.answer),
    )
}

fn list(out: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h2>{title}</h2><ul>");
    for item in items {
        let _ = writeln!(out, "<li>{}</li>", text(item));
    }
    out.push_str("</ul>\n");
}

fn groups(out: &mut String, title: &str, rows: &[[String; 5]]) {
    let _ = writeln!(
        out,
        "<h2>{title}</h2><div class=\"wide\"><table><tr><th></th><th>right</th><th>exact</th><th>unsafe</th></tr>"
    );
    // Each number includes its n; a column for it would push the last one off a phone's screen.
    for [name, _, numbers @ ..] in rows {
        let _ = write!(out, "<tr><th>{}</th>", text(name));
        for number in numbers {
            let _ = write!(out, "<td class=\"n\">{}</td>", text(number));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

fn confusion(out: &mut String, report: &ExamReport) {
    let matrix = report.confusion();
    let _ = write!(
        out,
        "<h2>What was called, where what was right, of {} answers</h2><div class=\"wide\"><table><tr><th>right \\ called</th>",
        matrix.n
    );
    for name in &matrix.columns {
        let _ = write!(out, "<th>{}</th>", text(name));
    }
    out.push_str("<th>n</th></tr>\n");
    for row in &matrix.rows {
        let _ = write!(out, "<tr><th>{}</th>", text(&row.right));
        for cell in &row.called {
            let _ = write!(out, "<td class=\"n\">{cell}</td>");
        }
        let _ = writeln!(out, "<td class=\"n\">{}</td></tr>", row.n);
    }
    out.push_str("</table></div>\n");
}

/// Escapes text so that no browser reads it as markup, regardless of what a model wrote.
fn text(text: &str) -> String {
    let printable = text.replace(|c: char| c.is_control() && c != '\n', " ");
    html_escaped(&printable).replace('\'', "&#39;")
}
