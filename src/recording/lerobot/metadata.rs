//! The JSON files of a data set.

use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::error::RecordingError;
use crate::lerobot::episode::Episode;
use crate::lerobot::feature::DatasetFeatures;
use crate::lerobot::statistics::{FeatureStatistics, INDEX_COLUMNS};
use crate::lerobot::tasks;
use crate::recorded_job::RecordedJob;
use base::disk;

/// Pattern of the data files' paths.
const DATA_PATH: &str = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet";

/// Returns `meta/info.json`.
pub(crate) fn info(
    jobs: &[RecordedJob],
    episodes: &[Episode<'_>],
    features: &DatasetFeatures,
    fps: u32,
) -> Value {
    let mut described = Map::new();
    for feature in &features.features {
        described.insert(
            feature.name.to_owned(),
            json!({ "dtype": "float32", "shape": [feature.names.len()], "names": feature.names }),
        );
    }
    for camera in &features.cameras {
        let [height, width] = camera.size_px;
        described.insert(
            camera.name.clone(),
            json!({
                "dtype": "image",
                "shape": [height, width, 3],
                "names": ["height", "width", "channels"],
            }),
        );
    }
    for name in INDEX_COLUMNS {
        let kind = match name {
            "timestamp" => "float32",
            _ => "int64",
        };
        let description = json!({ "dtype": kind, "shape": [1], "names": null });
        described.insert(name.to_owned(), description);
    }
    let model = jobs.iter().flat_map(|job| &job.plans).next();
    let frames: usize = episodes.iter().map(|episode| episode.frames.len()).sum();
    json!({
        "codebase_version": "v3.0",
        "robot_type": model.map_or("steadyhand", |plan| plan.model.as_str()),
        "total_episodes": episodes.len(),
        "total_frames": frames,
        "total_tasks": tasks(episodes).len(),
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": fps,
        "splits": { "train": format!("0:{}", episodes.len()) },
        "data_path": DATA_PATH,
        "video_path": null,
        "features": described,
    })
}

/// Returns `meta/stats.json`.
pub(crate) fn stats(statistics: &[FeatureStatistics], features: &DatasetFeatures) -> Value {
    let mut stats = Map::new();
    for feature in statistics {
        let mut values = Map::new();
        let mut cameras = features.cameras.iter();
        let is_picture = cameras.any(|camera| camera.name == feature.feature);
        for (name, numbers) in &feature.values {
            let figure = match is_picture {
                // One number for each channel, as an array of 3 by 1 by 1.
                true => numbers.iter().map(|number| json!([[number]])).collect(),
                false => json!(numbers),
            };
            values.insert((*name).to_owned(), figure);
        }
        values.insert("count".to_owned(), json!([feature.count]));
        stats.insert(feature.feature.clone(), Value::Object(values));
    }
    Value::Object(stats)
}

/// Returns `meta/steadyhand.json`: the recordings, plans and scenes of the episodes.
pub(crate) fn origin(jobs: &[RecordedJob], episodes: &[Episode<'_>], fps: u32) -> Value {
    let plans = jobs.iter().flat_map(|job| {
        let with_job = move |plan| (job, plan);
        job.plans.iter().map(with_job)
    });
    let plans = plans.map(|(job, plan)| {
        let mut ticks = job.ticks.iter();
        let first = ticks.find(|tick| tick.motion == plan.motion);
        json!({
            "job": plan.job,
            "motion": plan.motion,
            "began_ns": first.map(|tick| tick.at_ns),
            "plan_hash": plan.plan_hash,
            "scene": plan.scene,
            "overlay": plan.overlay,
            "drawing": plan.drawing,
            "scene_revision": plan.revision,
            "arm": plan.model,
        })
    });
    let origins = episodes.iter().map(|episode| {
        json!({ "job": episode.job, "motion": episode.motion, "stroke": episode.stroke + 1 })
    });
    json!({
        "fps": fps,
        "units": {
            "action": "degrees",
            "observation.state": "degrees",
            "observation.load": "part of the stall torque",
            "observation.temperature": "degrees Celsius",
        },
        "plans": plans.collect::<Vec<_>>(),
        "episodes": origins.collect::<Vec<_>>(),
    })
}

/// Returns whether a stored `meta/steadyhand.json` is of the same recordings, at the same rate. A recording that was torn then may
/// have more episodes now.
pub(crate) fn is_same_origin(stored: &[u8], origin: &Value) -> bool {
    let stored: Value = serde_json::from_slice(stored).unwrap_or_default();
    ["fps", "plans"]
        .iter()
        .all(|key| stored.get(key) == origin.get(key))
}

/// Returns the index columns of a range of episodes: timestamp, frame, episode, index, task.
pub(crate) fn index_columns(episodes: &[Episode<'_>], range: Range<usize>) -> [Vec<f64>; 5] {
    let tasks = tasks(episodes);
    let mut columns = [const { Vec::new() }; 5];
    let mut index = 0_usize;
    for (number, episode) in episodes.iter().enumerate() {
        let task = tasks.iter().position(|task| *task == episode.task);
        for frame in 0..episode.frames.len() {
            if range.contains(&number) {
                let row = [
                    f64::from(f32_of(frame as f64 / episode.fps)),
                    frame as f64,
                    number as f64,
                    index as f64,
                    task.unwrap_or(0) as f64,
                ];
                for (column, value) in columns.iter_mut().zip(row) {
                    column.push(value);
                }
            }
            index += 1;
        }
    }
    columns
}

/// Converts a number to LeRobot's precision.
#[expect(clippy::cast_possible_truncation, reason = "LeRobot keeps float32")]
pub(crate) const fn f32_of(value: f64) -> f32 {
    value as f32
}

/// Writes a JSON file.
pub(crate) fn put_json(path: &Path, value: &Value) -> Result<(), RecordingError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(RecordingError::file(folder))?;
    }
    let text = serde_json::to_string_pretty(value).map_err(RecordingError::json(path, "it"))?;
    disk::put(path, &(text + "\n")).map_err(RecordingError::file(path))
}

/// Writes a description of the data set for people.
pub(crate) fn put_readme(out: &Path, jobs: &[RecordedJob]) -> Result<(), RecordingError> {
    let path = out.join("README.md");
    let names: Vec<String> = jobs.iter().map(RecordedJob::name).collect();
    let text = format!(
        "# Strokes of a drawing arm\n\nA LeRobotDataset v3.0 of {}. Each episode is one stroke with its approach and lift.\n\n\
`action` is the setpoint that was sent and `observation.state` the joints that were read. Both are in **degrees** from the \
arm's own zeros, not in shares of a calibrated range. Lengths are in millimetres on the sheet, from its lower left corner. \
Heights are above the paper. `meta/steadyhand.json` names the plan and scene of each episode.\n",
        names.join(", ")
    );
    disk::put(&path, &text).map_err(RecordingError::file(&path))
}
