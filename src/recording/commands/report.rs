//! `recording report`: one self-contained HTML file for people, without scripts.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::show::{missing, png, summary};
use super::{output_path, read_recording};
use crate::figures::{OFF_MM, RecordingFigures};
use crate::message::LOG_WARNING;
use crate::recorded_job::RecordedJob;
use base::disk;
use base::terminal as show;
use base::wording::html_escaped;
use node::{ExitStatus, NodeOptions};
use picture::PictureError;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
table{border-collapse:collapse;width:100%}td,th{padding:.25rem .75rem .25rem 0;text-align:left;border-bottom:1px solid #ddd}\
td.n{text-align:right;font-variant-numeric:tabular-nums}img{max-width:100%}";

pub(super) fn run(
    node: &NodeOptions,
    name: &str,
    out: Option<PathBuf>,
) -> anyhow::Result<ExitStatus> {
    let job = read_recording(node, name)?;
    let figures = RecordingFigures::from_job(&job);
    let html = report_html(&job)?;
    let out = output_path(out, node, &job, "html")?;
    disk::put(&out, &html).with_context(|| format!("cannot write {}", out.display()))?;
    for line in summary(&job, &figures) {
        show::line(&line);
    }
    show::line(&format!("report          {}", out.display()));
    Ok(ExitStatus::Done)
}

/// Returns the report of a recorded job.
pub(crate) fn report_html(job: &RecordedJob) -> Result<String, PictureError> {
    let figures = RecordingFigures::from_job(job);
    Ok(html(job, &figures, &png(job, &figures)?))
}

fn html(job: &RecordedJob, figures: &RecordingFigures, png: &[u8]) -> String {
    let title = html_escaped(&job.name());
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>"
    );
    let ended = job.facts.as_ref().map_or_else(
        || "The process ended before the job did.".to_owned(),
        |facts| format!("{}: {}", facts.state, facts.message),
    );
    // Writing to a string cannot fail.
    let _ = write!(
        html,
        "<p>{}</p><p>{} ticks in {:.1} s, {} missing. Ink {:.2} mm from the plan at most, {:.2} mm on average.</p><img alt=\"plan, ink and error over time\" src=\"data:image/png;base64,{}\">",
        html_escaped(&ended),
        job.ticks.len(),
        job.duration_s(),
        missing(job),
        figures.max_mm,
        figures.mean_mm,
        STANDARD.encode(png)
    );
    html.push_str(&error_table(figures));
    let joints = figures.joints.iter().map(|joint| {
        vec![
            joint.name.clone(),
            format!("{:.2}", joint.max_deg),
            format!("{:.2}", joint.rms_deg),
        ]
    });
    html.push_str(&table(
        "Following error",
        &["joint", "most, °", "rms, °"],
        joints,
    ));
    let hottest = figures.hottest_c.iter().zip(1..);
    let hottest = hottest.map(|(hottest, servo): (_, usize)| {
        let hottest = hottest.map_or_else(|| "not read".to_owned(), |c| format!("{c:.0}"));
        vec![servo.to_string(), hottest]
    });
    html.push_str(&table("Temperatures", &["servo", "hottest, °C"], hottest));
    html.push_str(&bus_table(job));
    let log = job.log.iter().map(|line| {
        let is_warning = line.level >= LOG_WARNING;
        let level = if is_warning { "warning" } else { "" };
        vec![level.to_owned(), line.message.clone()]
    });
    html.push_str(&table("Log", &["", "message"], log));
    html.push_str("</html>\n");
    html
}

/// Lists the strokes with ink errors and their causes, largest error first.
fn error_table(figures: &RecordingFigures) -> String {
    let mut strokes = figures.strokes.clone();
    strokes.retain(|stroke| stroke.max_mm > OFF_MM);
    strokes.sort_by(|a, b| b.max_mm.total_cmp(&a.max_mm));
    if strokes.is_empty() {
        return format!("<h2>Where the ink is off</h2><p>Nowhere by more than {OFF_MM} mm.</p>");
    }
    let rows = strokes.into_iter().map(|stroke| {
        let [x, y] = stroke.at_mm;
        vec![
            (stroke.stroke + 1).to_string(),
            format!("{:.2}", stroke.max_mm),
            format!("{x:.1}, {y:.1}"),
            format!("{:.2}", stroke.at_s),
            stroke.cause,
        ]
    });
    table(
        "Where the ink is off",
        &["stroke", "by, mm", "at, mm", "time, s", "why"],
        rows,
    )
}

/// Lists the increase of the bus's counters from their first reading to the last.
fn bus_table(job: &RecordedJob) -> String {
    let Some((first, last)) = job.bus.first().zip(job.bus.last()) else {
        return String::new();
    };
    let counts = [
        ("cycles", first.cycles, last.cycles),
        ("requests", first.transactions, last.transactions),
        ("damaged replies", first.corrupt, last.corrupt),
        ("requests sent again", first.resent, last.resent),
        ("replies without a request", first.foreign, last.foreign),
        ("servos asked again", first.retries, last.retries),
        ("missing readings", first.blind, last.blind),
        (
            "readings that no movement can explain",
            first.jumps,
            last.jumps,
        ),
    ];
    let rows = counts
        .into_iter()
        .map(|(name, first, last)| vec![name.to_owned(), last.saturating_sub(first).to_string()]);
    table("Bus", &["", "count"], rows)
}

fn table(title: &str, headers: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut html = format!("<h2>{title}</h2><table><tr>");
    for header in headers {
        let _ = write!(html, "<th>{header}</th>");
    }
    for row in rows {
        html.push_str("<tr>");
        for cell in row {
            let kind = match cell.parse::<f64>() {
                Ok(_) => " class=\"n\"",
                Err(_) => "",
            };
            let _ = write!(html, "<td{kind}>{}</td>", html_escaped(&cell));
        }
    }
    html.push_str("</table>");
    html
}
