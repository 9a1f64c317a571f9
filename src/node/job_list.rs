//! The list of jobs that a state folder holds, and the card of one of them.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::operator_verb::VerbReply;
use base::calendar;
use base::wording::{cut, millimetres, seconds};
use job::{JournalError, PastJob};
use tools::job_record;

/// Facts of a result that have a line of their own, each with its label.
const FACTS: [(&str, &str); 8] = [
    ("arm", "arm"),
    ("stroke_count", "strokes"),
    ("pen_down_mm", "pen-down length"),
    ("arm_time_s", "arm time"),
    ("deviation_mm_p95", "deviation, 95 %"),
    ("deviation_mm_max", "largest deviation"),
    ("tracking_error_mm_max", "largest tracking error"),
    ("stopped_after_ms", "stopped after"),
];

/// Decimals of lengths in facts.
const FACT_DECIMALS: usize = 3;

/// Returns the facts of a result, each with its label and its value as people write it.
pub fn facts(result: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let fact = |(field, label): &(&'static str, &'static str)| {
        let words = match result.get(*field)? {
            Value::String(text) => text.clone(),
            value @ Value::Number(number) => {
                let number = number.as_f64()?;
                match *field {
                    "arm_time_s" => seconds(number),
                    "stopped_after_ms" => seconds(number / 1e3),
                    "stroke_count" => value.to_string(),
                    _ => millimetres(number, FACT_DECIMALS),
                }
            }
            _ => return None,
        };
        Some((*label, words))
    };
    FACTS.iter().filter_map(fact).collect()
}

/// Jobs that a list shows, the newest.
const LISTED_MAX: usize = 40;

/// Describes one job of a state folder, or the last ones.
pub fn jobs_reply(state: &Path, id: Option<&str>, json: bool) -> VerbReply {
    let Some(id) = id else {
        return list(state, json);
    };
    match job::past(state, id) {
        Ok(past) if json => VerbReply::done(pretty(&job_record(&past))),
        Ok(past) => VerbReply::done(card(state, &past)),
        Err(error) => VerbReply::failed(unread(state, id, &error)),
    }
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Says that a job cannot be read, and why.
pub fn unread(state: &Path, id: &str, error: &JournalError) -> String {
    match error {
        JournalError::File { error: cause, .. } if cause.kind() != io::ErrorKind::NotFound => {
            format!("{id} cannot be read: {error}")
        }
        JournalError::NoJob(_) | JournalError::File { .. } => format!(
            "there is no job {id:?} in {}; `steadyhand jobs` lists the jobs of the node that runs here; --state DIR or --config FILE names another node",
            state.display()
        ),
        other => format!("{id} cannot be read: {other}"),
    }
}

fn list(state: &Path, json: bool) -> VerbReply {
    let at = state.display();
    let pasts = match job::past_jobs(state) {
        Ok(pasts) => pasts,
        Err(error) if error.kind() == io::ErrorKind::NotFound && state.is_dir() => Vec::new(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return VerbReply::failed(format!(
                "there is no folder {at}: no node has kept jobs there; --state DIR or --config FILE names a node's"
            ));
        }
        Err(error) => return VerbReply::failed(format!("no jobs in {at}: {error}")),
    };
    let newest = pasts.iter().rev().take(LISTED_MAX);
    let text = if json {
        pretty(&newest.flatten().map(job_record).collect::<Vec<_>>())
    } else {
        newest.map(job_line).collect::<Vec<_>>().join("\n")
    };
    VerbReply::done(if text.is_empty() {
        "no jobs yet".to_owned()
    } else {
        text
    })
}

fn job_line(past: &Result<PastJob, JournalError>) -> String {
    match past {
        Err(error) => format!("unreadable: {error}"),
        Ok(past) => format!(
            "{:<9} {}  {:<7} {:<16} {:<8} {}",
            past.id,
            calendar::second(past.accepted_ms),
            past.tool,
            past.scene_title(),
            past.state,
            past.message
        ),
    }
}

fn card(state: &Path, past: &PastJob) -> String {
    let folder = state.join("jobs").join(&past.id);
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let files = files.map(|entry| entry.path());
    let pictures = files.filter(|path| path.extension().is_some_and(|end| end == "png"));
    let mut pictures: Vec<String> = pictures.map(|path| path.display().to_string()).collect();
    pictures.sort();
    let (scene, revision) = (past.scene_title(), cut(&past.revision, 12));
    let ended = match past.ended_ms {
        0 if past.is_over() => "not written".to_owned(),
        0 => "not yet".to_owned(),
        ended_ms => calendar::second(ended_ms),
    };
    let drawn = match past.strokes.is_empty() {
        true => String::new(),
        false => past.summary(),
    };
    let approved = past.approved.iter();
    let approved = approved.map(|plan| format!("plan {plan} by a person"));
    let rows = [
        ("job", past.id.clone()),
        ("state", past.state.clone()),
        ("outcome", past.message.clone()),
        ("tool", past.tool.clone()),
        ("arm", past.arm.clone()),
        ("scene", format!("{scene} (revision {revision})")),
        ("caller", past.caller.clone()),
        ("received", past.received.clone()),
        ("understood", past.understood.clone()),
        ("notes", notes(&past.repairs)),
        ("accepted", calendar::second(past.accepted_ms)),
        ("ended", ended),
        ("plan", past.plan_hash.clone()),
        ("drawn", drawn),
        ("goes on with", past.resumes.clone()),
        (takeover_text(state, past), past.settled.clone()),
        ("approved", approved.collect::<Vec<_>>().join(", ")),
        ("pens", past.pens_confirmed.join(", ")),
        ("pen lengths", past.pens_measured.join(", ")),
        ("pictures", pictures.join(", ")),
        ("bytes", traffic_text(&folder)),
        ("figures", figures(&past.figures)),
    ];
    let said = rows
        .iter()
        .filter(|(_, value)| !matches!(value.as_str(), "" | "[]"));
    let lines = said.map(|(name, value)| format!("{name:<14}{value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Describes the treatment of this job's remainder by a later job, as far as that is known.
fn takeover_text(state: &Path, past: &PastJob) -> &'static str {
    let Ok(later) = job::past(state, &past.settled) else {
        return "followed by";
    };
    if later.resumes == past.id {
        "taken over by"
    } else if !past.has_remainder() {
        "followed by"
    } else if later.draws_same(past) {
        "drawn anew by"
    } else {
        "given up for"
    }
}

/// Repairs to the arguments, one after the other, for people.
fn notes(repairs: &str) -> String {
    let all: Vec<Map<String, Value>> = serde_json::from_str(repairs).unwrap_or_default();
    let words = |repair: &Map<String, Value>| {
        let said = ["field", "got", "used", "why"].map(|name| plain(repair.get(name)));
        let [field, got, used, why] = said;
        format!("{field}: {got} read as {used}: {why}")
    };
    all.iter().map(words).collect::<Vec<_>>().join("; ")
}

/// A value without the marks of JSON around it.
fn plain(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The numbers of a job's answer, with the names and units that a call shows them with.
fn figures(answer: &str) -> String {
    let answer: Map<String, Value> = serde_json::from_str(answer).unwrap_or_default();
    let known = facts(&answer).into_iter();
    let known = known.filter(|(label, _)| *label != "arm");
    let known = known.map(|(label, words)| format!("{label} {words}"));
    known.collect::<Vec<_>>().join(", ")
}

/// Returns the path and size of the job's recorded bytes, if kept.
fn traffic_text(folder: &Path) -> String {
    let path = folder.join(job::BYTES);
    let size = std::fs::metadata(&path).map(|about| about.len());
    size.map_or_else(
        |_| String::new(),
        |size| format!("{} ({size} bytes)", path.display()),
    )
}
