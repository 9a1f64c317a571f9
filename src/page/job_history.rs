//! Earlier jobs: arguments as received and understood, outcome and pictures, from their journals.

use std::path::{Path, PathBuf};

use job::PastJob;
use serde_json::{Value, json};
use tools::{Node, job_record, plain_fields};

use super::job_thumbnail::JobThumbnail;
use super::page_refusal::PageRefusal;
use base::plain_file;

/// Number of jobs that a page lists; the newest are.
const LISTED_MAX: usize = 40;

/// Returns the newest jobs, the newest first. Reads journals, so call it on a blocking thread.
pub(super) fn jobs(node: &Node) -> Value {
    let ids = node.job_store.recent(LISTED_MAX);
    let unfinished: Vec<String> = node
        .arms
        .iter()
        .filter_map(|seat| Some(node.job_store.unfinished(seat.key())?.id))
        .collect();
    let all = ids.iter().map(|id| {
        let mut record = match node.job_store.past(id) {
            Ok(past) => worded(&past),
            Err(error) => json!({"id": id, "state": "unreadable", "message": error.to_string()}),
        };
        if let Some(record) = record.as_object_mut() {
            record.insert("pictures".to_owned(), json!(pictures(&node.state, id)));
            record.insert(
                "recording".to_owned(),
                json!(has_recording(&node.state, id)),
            );
            record.insert("can_resume".to_owned(), json!(unfinished.contains(id)));
        }
        record
    });
    all.collect()
}

/// Returns a job's record with its call in words, and its thumbnail.
fn worded(past: &PastJob) -> Value {
    let mut record = job_record(past);
    if let Some(record) = record.as_object_mut() {
        for (name, text) in [
            ("received", &past.received),
            ("understood", &past.understood),
            ("repairs", &past.repairs),
        ] {
            record.insert(name.to_owned(), in_words(text).into());
        }
        record.remove("figures");
        record.insert("title".to_owned(), past.scene_title().into());
        record.insert("thumbnail".to_owned(), json!(JobThumbnail::of(past)));
    }
    record
}

/// Returns JSON in words; another text as it is.
pub(super) fn in_words(text: &str) -> String {
    let value: Option<Value> = serde_json::from_str(text).ok();
    value.map_or_else(|| text.to_owned(), |value| plain_fields(&value))
}

/// Returns the plans that wait for a person, with their text and pictures.
pub(super) fn pending(node: &Node) -> Value {
    let plans = node.pending().into_iter().map(|pending| {
        // The last lines name picture files on this machine; the page shows the pictures instead.
        let text = pending
            .words
            .split("\npicture: ")
            .next()
            .unwrap_or_default();
        let pictures = pictures(&node.state, &pending.job);
        let past = job::past(&node.state, &pending.job).ok();
        json!({
            "job": pending.job,
            "plan": pending.plan,
            "words": text,
            "received": past.as_ref().map(|past| in_words(&past.received)),
            "caller": past.as_ref().map(|past| &past.caller),
            "pictures": pictures,
        })
    });
    plans.collect()
}

/// Returns the names of the pictures in a job's folder.
fn pictures(state: &Path, id: &str) -> Vec<String> {
    let entries = std::fs::read_dir(job::folder(state, id));
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "png"))
        .collect();
    names.sort();
    names
}

/// Name of a job's recording in its folder, where the node records.
const RECORDING: &str = "job.mcap";

/// Largest recording that is sent: it is read whole.
const RECORDING_BYTES_MAX: u64 = 256 << 20;

fn has_recording(state: &Path, id: &str) -> bool {
    job::folder(state, id).join(RECORDING).is_file()
}

/// Reads a job's recording.
pub(super) fn recording(node: &Node, id: &str) -> Result<Vec<u8>, PageRefusal> {
    let missing = || PageRefusal::Missing(format!("recording of job {id:?}"));
    let is_job = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_job || !has_recording(&node.state, id) {
        return Err(missing());
    }
    let path = job::folder(&node.state, id).join(RECORDING);
    let length = std::fs::metadata(&path).map_err(|_| missing())?.len();
    if length > RECORDING_BYTES_MAX {
        let mib = length >> 20;
        return Err(PageRefusal::Broken(format!(
            "the recording has {mib} MiB, which is too much for the page. Next: `steadyhand recording export {id}`"
        )));
    }
    plain_file::read_at_most(path, RECORDING_BYTES_MAX).map_err(|_| missing())
}

/// Makes the report of a recorded job.
pub(super) fn report(node: &Node, id: &str) -> Result<String, PageRefusal> {
    let missing = || PageRefusal::Missing(format!("report of job {id:?}"));
    let recordings = node.recordings.as_ref().ok_or_else(missing)?;
    recordings
        .report(id)
        .map_err(|refused| PageRefusal::Broken(refused.to_string()))
}

/// Reads a picture of a job. Opens only names that the job's folder lists.
pub(super) fn picture(node: &Node, id: &str, name: &str) -> Result<Vec<u8>, PageRefusal> {
    let missing = || PageRefusal::Missing(format!("picture {name:?} of a job {id:?}"));
    let is_job = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let is_listed = is_job && pictures(&node.state, id).iter().any(|known| known == name);
    if !is_listed {
        return Err(missing());
    }
    let path: PathBuf = job::folder(&node.state, id).join(name);
    plain_file::read(path).map_err(|_| missing())
}
