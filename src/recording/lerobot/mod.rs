//! Exports recordings as a `LeRobotDataset` v3.0, one episode for each stroke with its approach and lift.
//!
//! Files are written one by one and `meta/info.json` last: an interrupted export does not have it, so that no
//! loader takes it for complete, and the same command starts again and ends with the same files.

mod camera_feature;
mod episode;
mod feature;
mod metadata;
mod other_exports;
mod parquet_file;
mod parquet_table;
mod statistics;

use std::path::Path;

use crate::error::RecordingError;
use crate::recorded_job::RecordedJob;
use base::plain_file;
use base::wording::count;
use serde_json::Value;

use episode::Episode;
use feature::{DatasetFeatures, LeftOut};

/// File with the origin of a data set; LeRobot's loader ignores it.
const ORIGIN_FILE: &str = "meta/steadyhand.json";

/// File that LeRobot reads first.
const INFO_FILE: &str = "meta/info.json";

/// Writes the data set; returns lines for the user.
pub(crate) fn export(
    jobs: &[RecordedJob],
    out: &Path,
    fps: u32,
) -> Result<Vec<String>, RecordingError> {
    episode::refuse_rate(jobs, fps)?;
    let (episodes, mut lines) = episode::episodes(jobs, fps);
    if episodes.is_empty() {
        let why = "no stroke was finished in these recordings, so there is no episode to export";
        return Err(RecordingError::unusable(out, why));
    }
    let features = DatasetFeatures::select(jobs, &episodes, out)?;
    lines.extend(features.left_out().iter().map(LeftOut::line));
    let origin = metadata::origin(jobs, &episodes, fps);
    refuse_foreign(out, &origin)?;
    let described = metadata::info(jobs, &episodes, &features, fps);
    let others = other_exports::find(out);
    let info = out.join(INFO_FILE);
    if info.exists() {
        std::fs::remove_file(&info).map_err(RecordingError::file(&info))?;
    }
    // Written before the data, so that a later export may overwrite an interrupted one.
    metadata::put_json(&out.join(ORIGIN_FILE), &origin)?;
    let places = parquet_file::write_data(&episodes, &features, out)?;
    let mut statistics = statistics::of_dataset(&episodes, &features);
    for camera in &features.cameras {
        statistics.push(camera.statistics(&episodes, out)?);
    }
    parquet_file::write_episodes(&episodes, &features, &places, out)?;
    parquet_file::write_tasks(&tasks(&episodes), out)?;
    metadata::put_json(
        &out.join("meta/stats.json"),
        &metadata::stats(&statistics, &features),
    )?;
    metadata::put_readme(out, jobs)?;
    metadata::put_json(&info, &described)?;
    let frames = episodes.iter().map(|episode| episode.frames.len()).sum();
    lines.push(format!(
        "{}: {}, {}",
        out.display(),
        count(episodes.len(), "episode"),
        count(frames, "frame")
    ));
    lines.push(format!(
        "{fps} frames a second: {}",
        features.names().join(", ")
    ));
    lines.extend(
        others
            .iter()
            .filter_map(|other| other.difference(&described)),
    );
    Ok(lines)
}

/// Returns the distinct task texts in the order of their first episode.
fn tasks(episodes: &[Episode]) -> Vec<String> {
    let mut tasks: Vec<String> = Vec::new();
    for episode in episodes {
        if !tasks.contains(&episode.task) {
            tasks.push(episode.task.clone());
        }
    }
    tasks
}

/// Refuses a folder that holds anything but an export of these recordings.
fn refuse_foreign(out: &Path, origin: &Value) -> Result<(), RecordingError> {
    let mut entries = std::fs::read_dir(out).map_err(RecordingError::file(out))?;
    if entries.next().is_none() {
        return Ok(());
    }
    let why = match plain_file::read(out.join(ORIGIN_FILE)) {
        Ok(stored) if metadata::is_same_origin(&stored, origin) => return Ok(()),
        Ok(_) => "this folder has a different data set. Next: name an empty or a new folder",
        Err(_) => {
            "this folder has other files. Next: name an empty or a new folder, or an earlier export of the same recordings"
        }
    };
    Err(RecordingError::unusable(out, why))
}
