//! The list of jobs that a state folder holds, and the card of one of them.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::open;
use super::operator_verb::VerbReply;
use base::calendar;
use base::wording::{cut, millimetres, seconds};
use job::{JobStore, JournalError, PastJob};
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

/// Returns the facts of a result, each with its label and its value as text for people.
pub fn facts(result: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let fact = |(field, label): &(&'static str, &'static str)| {
        let text = match result.get(*field)? {
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
        Some((*label, text))
    };
    FACTS.iter().filter_map(fact).collect()
}

/// Number of jobs in a list; the newest are shown.
const LISTED_MAX: usize = 40;

/// Describes one job of a state folder, or the last ones. `store` is that of the node that has the folder, if this process is it.
pub fn jobs_reply(
    state: &Path,
    store: Option<&JobStore>,
    id: Option<&str>,
    json: bool,
) -> VerbReply {
    let past_jobs = || store.map_or_else(|| job::past_jobs(state), JobStore::past_jobs);
    let Some(id) = id else {
        return list_reply(state, past_jobs(), json);
    };
    match store.map_or_else(|| job::past(state, id), |store| store.past(id)) {
        Ok(past) if json => VerbReply::done(pretty_json(&job_record(&past))),
        Ok(past) => {
            let past_jobs = past_jobs().unwrap_or_default();
            let is_pen_down = job::pens_left_down(&past_jobs).contains(&id);
            VerbReply::done(job_card(state, &past, is_pen_down))
        }
        Err(error) => VerbReply::failed(describe_unread(state, id, &error)),
    }
}

fn pretty_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Said in place of this process's own folder, in which nothing is kept before a node runs.
const NO_JOBS_OF_ITS_OWN: &str = "no node runs here, so there are no jobs to show. Next: start the node that has the jobs, or name it with --config FILE or --state DIR";

/// Returns whether a folder is the one that a node for practice in this process would have.
fn is_own_unmade(state: &Path) -> bool {
    !state.is_dir() && open::own_temporary().is_ok_and(|own| state.starts_with(own))
}

/// Explains why a job cannot be read.
pub fn describe_unread(state: &Path, id: &str, error: &JournalError) -> String {
    match error {
        _ if is_own_unmade(state) => NO_JOBS_OF_ITS_OWN.to_owned(),
        JournalError::File { error: cause, .. } if cause.kind() != io::ErrorKind::NotFound => {
            format!("{id} cannot be read: {error}")
        }
        JournalError::NoJob(_) | JournalError::File { .. } => format!(
            "there is no job {id:?} in {}. Next: `steadyhand jobs` lists them, or name another node with --state DIR or --config FILE",
            state.display()
        ),
        other => format!("{id} cannot be read: {other}"),
    }
}

fn list_reply(
    state: &Path,
    past_jobs: io::Result<Vec<Result<PastJob, JournalError>>>,
    json: bool,
) -> VerbReply {
    let folder = state.display();
    let past_jobs = match past_jobs {
        Ok(past_jobs) => past_jobs,
        Err(error) if error.kind() == io::ErrorKind::NotFound && state.is_dir() => {
            return VerbReply::done(match json {
                true => "[]".to_owned(),
                false => format!(
                    "there are no jobs in {folder} yet. Next: name another node's folder with --state DIR or --config FILE"
                ),
            });
        }
        Err(_) if is_own_unmade(state) => return VerbReply::failed(NO_JOBS_OF_ITS_OWN.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return VerbReply::failed(format!(
                "there is no folder {folder}. Next: name a node's folder with --state DIR or --config FILE"
            ));
        }
        Err(error) => {
            return VerbReply::failed(format!("cannot read the jobs in {folder}: {error}"));
        }
    };
    let newest = past_jobs.iter().rev().take(LISTED_MAX);
    let pens_down = job::pens_left_down(&past_jobs);
    let text = if json {
        pretty_json(&newest.flatten().map(job_record).collect::<Vec<_>>())
    } else {
        let arms: BTreeSet<&str> = newest.clone().flatten().map(|past| &*past.arm).collect();
        let lines = newest.map(|past| job_line(past, &pens_down, arms.len() > 1));
        lines.collect::<Vec<_>>().join("\n")
    };
    VerbReply::done(if text.is_empty() {
        "no jobs yet".to_owned()
    } else {
        text
    })
}

/// Said of the job after which the pen of its arm may be in the paper.
const PEN_DOWN: &str = "its pen may still stand on the paper. Next: `steadyhand status`";

/// Writes a time as all logs and files of a node do.
fn utc(ms: impl TryInto<i64>) -> String {
    format!("{} UTC", calendar::second(ms))
}

/// Describes a job in one line, with its arm where the list has jobs of several.
fn job_line(past: &Result<PastJob, JournalError>, pens_down: &[&str], names_arm: bool) -> String {
    match past {
        Err(error) => format!("unreadable: {error}"),
        Ok(past) => format!(
            "{:<9} {}  {:<7} {}{:<16} {:<11} {}{}",
            past.id,
            utc(past.accepted_ms),
            past.tool,
            match names_arm {
                true => format!("{:<8} ", past.arm),
                false => String::new(),
            },
            past.scene_title(),
            past.reported_state(),
            past.message,
            match pens_down.contains(&past.id.as_str()) {
                true => format!("; {PEN_DOWN}"),
                false => String::new(),
            }
        ),
    }
}

fn job_card(state: &Path, past: &PastJob, is_pen_down: bool) -> String {
    let folder = state.join("jobs").join(&past.id);
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut pictures: Vec<String> = files
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "png"))
        .map(|path| path.display().to_string())
        .collect();
    pictures.sort();
    let (scene, revision) = (past.scene_title(), cut(&past.revision, 12));
    let ended = match past.ended_ms {
        0 if past.is_over() => "not written".to_owned(),
        0 => "not yet".to_owned(),
        ended_ms => utc(ended_ms),
    };
    let drawn = match past.strokes.is_empty() {
        true => String::new(),
        false => past.summary(),
    };
    let pen = if is_pen_down { PEN_DOWN } else { "" };
    let approved = past.approved.iter();
    let approved = approved.map(|plan| format!("plan {plan} by a person"));
    let rows = [
        ("job", past.id.clone()),
        ("state", past.reported_state().to_owned()),
        ("outcome", past.message.clone()),
        ("tool", past.tool.clone()),
        ("arm", past.arm.clone()),
        ("scene", format!("{scene} (revision {revision})")),
        ("caller", past.caller.clone()),
        ("received", past.received.clone()),
        ("understood", past.understood.clone()),
        ("notes", repairs_text(&past.repairs)),
        ("accepted", utc(past.accepted_ms)),
        ("ended", ended),
        ("plan", past.plan_hash.clone()),
        ("drawn", drawn),
        ("pen", pen.to_owned()),
        ("resumes", past.resumes.clone()),
        (takeover_text(state, past), past.settled.clone()),
        ("approved", approved.collect::<Vec<_>>().join(", ")),
        ("pens", past.pens_confirmed.join(", ")),
        ("pen lengths", past.pens_measured.join(", ")),
        ("pen depth changed by", past.depth_trims.join(", ")),
        ("pictures", pictures.join(", ")),
        ("bytes", traffic_text(&folder)),
        ("figures", figures_text(&past.figures)),
    ];
    let filled = rows
        .iter()
        .filter(|(_, value)| !matches!(value.as_str(), "" | "[]"));
    let lines = filled.map(|(name, value)| format!("{name:<14}{value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Describes what the later job did with this job's remainder, as far as that is known.
fn takeover_text(state: &Path, past: &PastJob) -> &'static str {
    let Ok(later) = job::past(state, &past.settled) else {
        return "followed by";
    };
    if later.resumes == past.id {
        "resumed by"
    } else if !past.has_remainder() {
        "followed by"
    } else if later.draws_same(past) {
        "drawn again by"
    } else {
        "replaced by"
    }
}

/// Describes the repairs to the arguments, in order, for people.
fn repairs_text(repairs: &str) -> String {
    let parsed: Vec<Map<String, Value>> = serde_json::from_str(repairs).unwrap_or_default();
    let describe = |repair: &Map<String, Value>| {
        let [field, got, used, reason] =
            ["field", "got", "used", "why"].map(|key| unquoted(repair.get(key)));
        format!("{field}: {got} was read as {used} ({reason})")
    };
    parsed.iter().map(describe).collect::<Vec<_>>().join("; ")
}

/// Returns a value as text, a string without its quotes.
fn unquoted(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Returns the figures of a job's answer, with the labels and units that a call shows.
fn figures_text(answer: &str) -> String {
    let answer: Map<String, Value> = serde_json::from_str(answer).unwrap_or_default();
    let figures = facts(&answer).into_iter();
    let figures = figures.filter(|(label, _)| *label != "arm");
    let figures = figures.map(|(label, value)| format!("{label} {value}"));
    figures.collect::<Vec<_>>().join(", ")
}

/// Returns the path and size of the job's recorded bytes, if kept.
fn traffic_text(folder: &Path) -> String {
    let path = folder.join(job::BYTES);
    let size = std::fs::metadata(&path).map(|metadata| metadata.len());
    size.map_or_else(
        |_| String::new(),
        |size| format!("{} ({size} bytes)", path.display()),
    )
}
