//! Statistics of a data set, in LeRobot's form for each feature.

use crate::lerobot::episode::Episode;
use crate::lerobot::feature::DatasetFeatures;

/// The names of LeRobot's quantiles, with their fractions.
pub(crate) const QUANTILES: [(&str, f64); 5] = [
    ("q01", 0.01),
    ("q10", 0.10),
    ("q50", 0.50),
    ("q90", 0.90),
    ("q99", 0.99),
];

/// Names of the index columns of every data set, with one number for each frame.
pub(crate) const INDEX_COLUMNS: [&str; 5] = [
    "timestamp",
    "frame_index",
    "episode_index",
    "index",
    "task_index",
];

/// Statistics of one feature, with one value for each of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FeatureStatistics {
    pub(crate) feature: String,
    pub(crate) count: usize,
    /// `min`, `max`, `mean`, `std` and the quantiles, by name.
    pub(crate) values: Vec<(&'static str, Vec<f64>)>,
}

/// Returns the statistics of all frames of a data set.
pub(crate) fn of_dataset(
    episodes: &[Episode<'_>],
    features: &DatasetFeatures,
) -> Vec<FeatureStatistics> {
    of_frames(episodes, 0..episodes.len(), features)
}

/// Returns the statistics of the frames of a range of episodes.
pub(crate) fn of_frames(
    episodes: &[Episode<'_>],
    range: std::ops::Range<usize>,
    features: &DatasetFeatures,
) -> Vec<FeatureStatistics> {
    let selected = episodes.get(range.clone()).unwrap_or_default();
    let mut statistics: Vec<FeatureStatistics> = features
        .features
        .iter()
        .map(|feature| {
            let mut columns = vec![Vec::new(); feature.names.len()];
            for tick in selected.iter().flat_map(|episode| &episode.frames) {
                for (column, value) in columns.iter_mut().zip(feature.values(tick)) {
                    column.push(f64::from(value));
                }
            }
            FeatureStatistics::from_columns(feature.name, columns)
        })
        .collect();
    let index_columns = crate::lerobot::metadata::index_columns(episodes, range);
    for (name, column) in INDEX_COLUMNS.into_iter().zip(index_columns) {
        statistics.push(FeatureStatistics::from_columns(name, vec![column]));
    }
    statistics
}

impl FeatureStatistics {
    /// Computes the statistics of columns of numbers.
    pub(crate) fn from_columns(feature: &str, columns: Vec<Vec<f64>>) -> Self {
        let count = columns.first().map_or(0, Vec::len);
        let sorted: Vec<Vec<f64>> = columns
            .into_iter()
            .map(|mut column| {
                column.sort_by(f64::total_cmp);
                column
            })
            .collect();
        let each = |value: &dyn Fn(&[f64]) -> f64| sorted.iter().map(|c| value(c)).collect();
        let mut values = vec![
            ("min", each(&|c| c.first().copied().unwrap_or(0.0))),
            ("max", each(&|c| c.last().copied().unwrap_or(0.0))),
            ("mean", each(&mean)),
            ("std", each(&deviation)),
        ];
        for (name, fraction) in QUANTILES {
            values.push((name, each(&|c| quantile(c, fraction))));
        }
        Self {
            feature: feature.to_owned(),
            count,
            values,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the population standard deviation, as numpy does.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().max(1) as f64).sqrt()
}

/// Returns a quantile of sorted values, interpolated between the two nearest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index of a list"
)]
fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let position = fraction * sorted.len().saturating_sub(1) as f64;
    let index = position.floor() as usize;
    let low = sorted.get(index).copied().unwrap_or(0.0);
    let high = sorted.get(index + 1).copied().unwrap_or(low);
    low + (high - low) * (position - position.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_agree_with_numpy() {
        // numpy.mean, std and quantile of [3, 1, 4, 1, 5, 9, 2, 6].
        let column = vec![3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        let figures = FeatureStatistics::from_columns("x", vec![column]);
        let value = |name: &str| {
            let values = figures.values.iter().find(|(figure, _)| *figure == name);
            values.and_then(|(_, values)| values.first()).copied()
        };
        for (name, expected) in [
            ("min", 1.0),
            ("max", 9.0),
            ("mean", 3.875),
            ("std", 2.570_870_475),
            ("q01", 1.0),
            ("q50", 3.5),
            ("q90", 6.9),
            ("q99", 8.79),
        ] {
            let error = value(name).map(|value| (value - expected).abs());
            assert!(
                error.is_some_and(|error| error < 1e-9),
                "{name}: {:?}",
                value(name)
            );
        }
    }
}
