//! Answers of the toolset `recording`.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::RECORDING;
use crate::commands::{self, summary_json};
use crate::figures::{OFF_MM, RecordingFigures};
use crate::recorded_job::RecordedJob;
use base::wording::{count, millimetres, seconds};
use tools::{RecordingLibrary, Refusal};

/// Largest number of recordings in a list.
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

    fn report(&self, job: &str) -> Result<String, Refusal> {
        commands::report_html(&self.read(job)?)
            .map_err(|error| Refusal::new(format!("the report cannot be made: {error}")))
    }
}

impl StoredRecordings {
    /// Returns recorded jobs with their sizes in bytes, newest first.
    fn jobs(&self) -> Vec<(u64, String, u64)> {
        let folders = std::fs::read_dir(self.state.join("jobs")).into_iter();
        let recorded = folders.flatten().flatten().filter_map(|folder| {
            let name = folder.file_name().into_string().ok()?;
            let number: u64 = name.strip_prefix("job-")?.parse().ok()?;
            let metadata = std::fs::metadata(folder.path().join(RECORDING)).ok()?;
            Some((number, name, metadata.len()))
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
        let mut text = count(jobs.len(), "recording");
        if let Some((_, job, _)) = jobs.first() {
            text += &format!(", the newest is {job}");
        }
        (text, fields)
    }

    fn read(&self, job: &str) -> Result<RecordedJob, Refusal> {
        let jobs = self.jobs();
        if !jobs.iter().any(|(_, recorded, _)| recorded == job) {
            let newest = jobs.iter().take(5);
            let newest: Vec<&str> = newest.map(|(_, job, _)| job.as_str()).collect();
            let hint = match newest.as_slice() {
                [] => "there are no recorded jobs (`record = true` in the node file records jobs)"
                    .to_owned(),
                newest => format!("the newest recorded jobs: {}", newest.join(", ")),
            };
            return Err(Refusal::new(format!(
                "{job} is not a recorded job of this node; {hint}"
            )));
        }
        Ok(RecordedJob::read(
            &job::folder(&self.state, job).join(RECORDING),
        )?)
    }

    fn get(&self, job: &str) -> Result<(String, Map<String, Value>), Refusal> {
        let recorded = self.read(job)?;
        let figures = RecordingFigures::from_job(&recorded);
        let mut summary = summary_json(&recorded, &figures);
        if let Some(summary) = summary.as_object_mut() {
            // Callers must not see paths of the node's machine.
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
        let text = format!(
            "{job} took {}; its ink is at most {} from the plan, {} on average",
            seconds(recorded.duration_s()),
            millimetres(figures.max_mm, 2),
            millimetres(figures.mean_mm, 2)
        );
        let mut fields = Map::new();
        fields.insert("off".to_owned(), off.collect());
        fields.insert("recording".to_owned(), summary);
        Ok((text, fields))
    }
}
