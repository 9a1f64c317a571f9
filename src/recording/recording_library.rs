//! The answers of the toolset `recording`.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::RECORDING;
use crate::commands::summary_json;
use crate::figures::{OFF_MM, RecordingFigures};
use crate::recorded_job::RecordedJob;
use base::wording::{count, millimetres, seconds};
use tools::{RecordingLibrary, Refusal};

/// Recordings that are listed.
const LISTED_MAX: usize = 50;

/// The recordings in a node's state folder.
pub(crate) struct StoredRecordings {
    pub(crate) state: PathBuf,
}

impl RecordingLibrary for StoredRecordings {
    fn answer(
        &self,
        tool: &str,
        given: &Map<String, Value>,
    ) -> Result<(String, Map<String, Value>), Refusal> {
        match given.get("job").and_then(Value::as_str) {
            Some(job) if tool == "get_recording" => self.get(job),
            _ => Ok(self.list()),
        }
    }
}

impl StoredRecordings {
    /// Recorded jobs with their sizes, the newest first.
    fn jobs(&self) -> Vec<(u64, String, u64)> {
        let folders = std::fs::read_dir(self.state.join("jobs"));
        let folders = folders.into_iter().flatten().flatten();
        let recorded = folders.filter_map(|folder| {
            let name = folder.file_name().into_string().ok()?;
            let number: u64 = name.strip_prefix("job-")?.parse().ok()?;
            let about = std::fs::metadata(folder.path().join(RECORDING)).ok()?;
            Some((number, name, about.len()))
        });
        let mut jobs: Vec<(u64, String, u64)> = recorded.collect();
        jobs.sort_by(|one, other| other.cmp(one));
        jobs
    }

    fn list(&self) -> (String, Map<String, Value>) {
        let jobs = self.jobs();
        let newest = jobs.iter().take(LISTED_MAX);
        let listed = newest.map(|(_, job, bytes)| json!({ "job": job, "bytes": bytes }));
        let mut fields = Map::new();
        fields.insert("recordings".to_owned(), listed.collect());
        fields.insert("n".to_owned(), json!(jobs.len()));
        let mut told = count(jobs.len(), "recording");
        if let Some((_, job, _)) = jobs.first() {
            told += &format!(", the newest is {job}");
        }
        (told, fields)
    }

    fn get(&self, job: &str) -> Result<(String, Map<String, Value>), Refusal> {
        let jobs = self.jobs();
        if !jobs.iter().any(|(_, known, _)| known == job) {
            let newest = jobs.iter().take(5);
            let known: Vec<&str> = newest.map(|(_, job, _)| job.as_str()).collect();
            let known = match known.as_slice() {
                [] => "none is; `record = true` in the node file records them".to_owned(),
                known => format!("the newest that are: {}", known.join(", ")),
            };
            return Err(Refusal::new(format!(
                "{job} is no recorded job of this node; {known}"
            )));
        }
        let path = job::folder(&self.state, job).join(RECORDING);
        let recorded = RecordedJob::read(&path)?;
        let figures = RecordingFigures::of(&recorded);
        let mut summary = summary_json(&recorded, &figures);
        if let Some(summary) = summary.as_object_mut() {
            // Paths of the node's machine are not for callers.
            summary.remove("file");
        }
        let strokes = figures.strokes.iter();
        let off = strokes
            .filter(|stroke| stroke.max_mm > OFF_MM)
            .map(|stroke| {
                json!({
                    "stroke": stroke.stroke + 1,
                    "by_mm": stroke.max_mm,
                    "at_mm": stroke.at_mm,
                    "at_s": stroke.at_s,
                    "why": stroke.cause,
                })
            });
        let told = format!(
            "{job} took {}; its ink is {} from the plan at most, {} on average",
            seconds(recorded.duration_s()),
            millimetres(figures.max_mm, 2),
            millimetres(figures.mean_mm, 2)
        );
        let mut fields = Map::new();
        fields.insert("off".to_owned(), off.collect());
        fields.insert("recording".to_owned(), summary);
        Ok((told, fields))
    }
}
