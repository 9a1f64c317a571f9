//! Exports recordings as a `LeRobotDataset` v3.0, an episode a stroke with its approach and lift.
//!
//! Files are put into their places one by one and `meta/info.json` last: an export that was cut short has none, so that no
//! loader takes it for whole, and the same command goes on from nothing and ends with the same files.

mod camera_feature;
mod compact_thrift;
mod episode;
mod feature;
mod metadata;
mod parquet_file;
mod parquet_page;
mod parquet_table;
mod statistics;

use std::path::Path;

use crate::error::RecordingError;
use crate::recorded_job::RecordedJob;
use base::wording::count;
use episode::Episode;
use feature::DatasetFeatures;

/// File that says what a data set is made of; LeRobot's loader ignores it.
const OWN_FILE: &str = "meta/steadyhand.json";

/// File with which LeRobot begins to read.
const INFO_FILE: &str = "meta/info.json";

/// Writes the data set; returns what to tell.
pub(crate) fn export(
    jobs: &[RecordedJob],
    out: &Path,
    fps: u32,
) -> Result<Vec<String>, RecordingError> {
    let (episodes, mut told) = episode::episodes(jobs, fps);
    if episodes.is_empty() {
        let why = "no stroke was finished in these recordings, so there is no episode to export";
        return Err(RecordingError::unusable(out, why));
    }
    let features = DatasetFeatures::of(jobs, &episodes, out)?;
    told.extend(
        features
            .left_out()
            .iter()
            .map(|name| format!("{name} is left out: it was not read on every frame")),
    );
    refuse_foreign(out)?;
    let info = out.join(INFO_FILE);
    if info.exists() {
        std::fs::remove_file(&info).map_err(RecordingError::file(&info))?;
    }
    // Before the data: what a cut export left is ours to write over.
    let own = metadata::own(jobs, &episodes, fps);
    metadata::put_json(&out.join(OWN_FILE), &own)?;
    let places = parquet_file::write_data(&episodes, &features, out)?;
    let mut all = statistics::of_dataset(&episodes, &features);
    for camera in &features.cameras {
        all.push(camera.statistics(&episodes, out)?);
    }
    parquet_file::write_episodes(&episodes, &features, &places, out)?;
    parquet_file::write_tasks(&tasks(&episodes), out)?;
    metadata::put_json(
        &out.join("meta/stats.json"),
        &metadata::stats(&all, &features),
    )?;
    metadata::put_readme(out, jobs)?;
    metadata::put_json(&info, &metadata::info(jobs, &episodes, &features, fps))?;
    let frames = episodes.iter().map(|episode| episode.frames.len()).sum();
    told.push(format!(
        "{}: {}, {}",
        out.display(),
        count(episodes.len(), "episode"),
        count(frames, "frame")
    ));
    Ok(told)
}

/// The task texts, each once, in the order of their first episode.
fn tasks(episodes: &[Episode]) -> Vec<String> {
    let mut tasks: Vec<String> = Vec::new();
    for episode in episodes {
        if !tasks.contains(&episode.task) {
            tasks.push(episode.task.clone());
        }
    }
    tasks
}

/// Refuses a folder that holds anything but an export.
fn refuse_foreign(out: &Path) -> Result<(), RecordingError> {
    let mut entries = std::fs::read_dir(out).map_err(RecordingError::file(out))?;
    if entries.next().is_none() || out.join(OWN_FILE).exists() {
        return Ok(());
    }
    let why = "this folder holds something else: name an empty or a new one, or an earlier export";
    Err(RecordingError::unusable(out, why))
}
