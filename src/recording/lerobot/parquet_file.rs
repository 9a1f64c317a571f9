//! Parquet files of a data set: frames, episodes and tasks.

use std::path::Path;

use serde_json::json;

use crate::error::RecordingError;
use crate::lerobot::episode::Episode;
use crate::lerobot::feature::{DatasetFeature, DatasetFeatures};
use crate::lerobot::metadata::{f32_of, index_columns};
use crate::lerobot::parquet_table::{ColumnData, TableColumn, TableFile};
use crate::lerobot::statistics::{self, INDEX_COLUMNS};

/// Size at which a file of frames is followed by another.
const FILE_BYTES_MAX: usize = 100 << 20;

/// Largest number of files in a folder.
const CHUNK_FILES: usize = 1000;

/// Place of an episode's frames.
pub(super) struct EpisodePlace {
    chunk: usize,
    file: usize,
    first_index: usize,
}

/// Writes the frames, one row group for each episode.
pub(super) fn write_data(
    episodes: &[Episode<'_>],
    features: &DatasetFeatures,
    out: &Path,
) -> Result<Vec<EpisodePlace>, RecordingError> {
    let (mut places, mut first_index, mut number) = (Vec::new(), 0, 0);
    let mut table = TableFile::new(&data_path(out, number));
    for (index, episode) in episodes.iter().enumerate() {
        if table.bytes() > FILE_BYTES_MAX {
            number += 1;
            std::mem::replace(&mut table, TableFile::new(&data_path(out, number))).finish()?;
        }
        table.append(&frames(episodes, index, features))?;
        places.push(EpisodePlace {
            chunk: number / CHUNK_FILES,
            file: number % CHUNK_FILES,
            first_index,
        });
        first_index += episode.frames.len();
    }
    table.finish()?;
    Ok(places)
}

fn data_path(out: &Path, number: usize) -> std::path::PathBuf {
    let (chunk, file) = (number / CHUNK_FILES, number % CHUNK_FILES);
    out.join(format!("data/chunk-{chunk:03}/file-{file:03}.parquet"))
}

fn frames(episodes: &[Episode<'_>], index: usize, features: &DatasetFeatures) -> Vec<TableColumn> {
    let ticks = episodes.get(index).map(|episode| episode.frames.as_slice());
    let ticks = ticks.unwrap_or_default();
    let column = |feature: &DatasetFeature| {
        let rows: Vec<Vec<f32>> = ticks.iter().map(|tick| feature.values(tick)).collect();
        let data = if feature.names.len() == 1 {
            ColumnData::Float(rows.concat())
        } else {
            ColumnData::FloatLists(rows)
        };
        TableColumn::new(feature.name, data)
    };
    let mut columns: Vec<TableColumn> = features.features.iter().map(column).collect();
    if let Some(episode) = episodes.get(index) {
        columns.extend(features.cameras.iter().map(|camera| {
            let pictures = camera.pictures(episode).into_iter();
            let cells = pictures.map(|(file, name)| (file.to_vec(), name));
            TableColumn::new(&camera.name, ColumnData::Pictures(cells.collect()))
        }));
    }
    let index_columns = index_columns(episodes, index..index + 1);
    for (name, cells) in INDEX_COLUMNS.into_iter().zip(index_columns) {
        let data = match name {
            "timestamp" => ColumnData::Float(cells.into_iter().map(f32_of).collect()),
            _ => ColumnData::Int(cells.into_iter().map(to_int).collect()),
        };
        columns.push(TableColumn::new(name, data));
    }
    columns
}

/// Writes one row for each episode, with its statistics.
pub(super) fn write_episodes(
    episodes: &[Episode<'_>],
    features: &DatasetFeatures,
    places: &[EpisodePlace],
    out: &Path,
) -> Result<(), RecordingError> {
    let mut columns = episode_columns(episodes, places);
    let rows: Vec<_> = (0..episodes.len())
        .map(|index| statistics::of_frames(episodes, index..index + 1, features))
        .collect();
    let names = rows.first().map(Vec::as_slice).unwrap_or_default();
    for (index, feature) in names.iter().enumerate() {
        let feature_of = |row: &Vec<statistics::FeatureStatistics>| row.get(index).cloned();
        for (which, (name, _)) in feature.values.iter().enumerate() {
            let cells = rows.iter().map(|row| {
                let values = feature_of(row).and_then(|feature| feature.values.get(which).cloned());
                values.map(|(_, values)| values).unwrap_or_default()
            });
            columns.push(TableColumn::new(
                &format!("stats/{}/{name}", feature.feature),
                ColumnData::DoubleLists(cells.collect()),
            ));
        }
        let counts = rows
            .iter()
            .map(|row| vec![int(feature_of(row).map_or(0, |feature| feature.count))]);
        columns.push(TableColumn::new(
            &format!("stats/{}/count", feature.feature),
            ColumnData::IntLists(counts.collect()),
        ));
    }
    for name in ["meta/episodes/chunk_index", "meta/episodes/file_index"] {
        columns.push(TableColumn::new(
            name,
            ColumnData::Int(vec![0; episodes.len()]),
        ));
    }
    let mut table = TableFile::new(&out.join("meta/episodes/chunk-000/file-000.parquet"));
    table.append(&columns)?;
    table.finish()
}

fn episode_columns(episodes: &[Episode<'_>], places: &[EpisodePlace]) -> Vec<TableColumn> {
    let int_column = |value: &dyn Fn(usize, &Episode<'_>, &EpisodePlace) -> usize| {
        let rows = episodes.iter().zip(places).enumerate();
        let cells = rows.map(|(index, (episode, place))| int(value(index, episode, place)));
        ColumnData::Int(cells.collect())
    };
    let tasks = episodes.iter().map(|episode| vec![episode.task.clone()]);
    vec![
        TableColumn::new("episode_index", int_column(&|index, _, _| index)),
        TableColumn::new("tasks", ColumnData::TextLists(tasks.collect())),
        TableColumn::new("length", int_column(&|_, episode, _| episode.frames.len())),
        TableColumn::new("data/chunk_index", int_column(&|_, _, place| place.chunk)),
        TableColumn::new("data/file_index", int_column(&|_, _, place| place.file)),
        TableColumn::new(
            "dataset_from_index",
            int_column(&|_, _, place| place.first_index),
        ),
        TableColumn::new(
            "dataset_to_index",
            int_column(&|_, episode, place| place.first_index + episode.frames.len()),
        ),
    ]
}

/// Writes the task texts as the index of a pandas table, by which LeRobot looks up tasks.
pub(super) fn write_tasks(tasks: &[String], out: &Path) -> Result<(), RecordingError> {
    const INDEX: &str = "__index_level_0__";
    let numbers = (0..tasks.len()).map(int).collect();
    let mut table = TableFile::new(&out.join("meta/tasks.parquet"));
    table.append(&[
        TableColumn::new("task_index", ColumnData::Int(numbers)),
        TableColumn::new(INDEX, ColumnData::Text(tasks.to_vec())),
    ])?;
    let column = |name: Option<&str>, field: &str, pandas: &str, numpy: &str| json!({ "name": name, "field_name": field, "pandas_type": pandas, "numpy_type": numpy, "metadata": null });
    let pandas = json!({
        "index_columns": [INDEX],
        "column_indexes": [],
        "columns": [
            column(Some("task_index"), "task_index", "int64", "int64"),
            column(None, INDEX, "unicode", "object"),
        ],
        "creator": { "library": "steadyhand", "version": env!("CARGO_PKG_VERSION") },
        "pandas_version": "2.0.0",
    });
    table.add_metadata("pandas", &pandas.to_string());
    table.finish()
}

fn int(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts an integer that was passed as f64.
#[expect(
    clippy::cast_possible_truncation,
    reason = "an integer below two to the 53rd"
)]
const fn to_int(number: f64) -> i64 {
    number as i64
}
