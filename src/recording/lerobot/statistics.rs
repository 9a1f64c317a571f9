//! Statistics of a data set, as LeRobot keeps them for each feature.

use crate::lerobot::episode::Episode;
use crate::lerobot::feature::DatasetFeatures;

/// The quantiles that LeRobot keeps, with their names.
pub(crate) const QUANTILES: [(&str, f64); 5] = [
    ("q01", 0.01),
    ("q10", 0.10),
    ("q50", 0.50),
    ("q90", 0.90),
    ("q99", 0.99),
];

/// Names of columns that every data set has, with one number a frame each.
pub(crate) const INDEX_COLUMNS: [&str; 5] = [
    "timestamp",
    "frame_index",
    "episode_index",
    "index",
    "task_index",
];

/// Statistics of one feature, a number each of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FeatureStatistics {
    pub(crate) feature: String,
    pub(crate) count: usize,
    /// `min`, `max`, `mean`, `std` and the quantiles, by name.
    pub(crate) values: Vec<(&'static str, Vec<f64>)>,
}

/// Of all frames of a data set.
pub(crate) fn of_dataset(
    episodes: &[Episode<'_>],
    features: &DatasetFeatures,
) -> Vec<FeatureStatistics> {
    of_frames(episodes, 0..episodes.len(), features)
}

/// Of the frames of some episodes.
pub(crate) fn of_frames(
    episodes: &[Episode<'_>],
    range: std::ops::Range<usize>,
    features: &DatasetFeatures,
) -> Vec<FeatureStatistics> {
    let chosen = episodes.get(range.clone()).unwrap_or_default();
    let mut all: Vec<FeatureStatistics> = features
        .features
        .iter()
        .map(|feature| {
            let mut columns = vec![Vec::new(); feature.names.len()];
            for tick in chosen.iter().flat_map(|episode| &episode.frames) {
                for (column, value) in columns.iter_mut().zip(feature.values(tick)) {
                    column.push(f64::from(value));
                }
            }
            FeatureStatistics::of(feature.name, columns)
        })
        .collect();
    let numbered = crate::lerobot::metadata::index_columns(episodes, range);
    for (name, column) in INDEX_COLUMNS.into_iter().zip(numbered) {
        all.push(FeatureStatistics::of(name, vec![column]));
    }
    all
}

impl FeatureStatistics {
    /// Of columns of numbers.
    pub(crate) fn of(feature: &str, columns: Vec<Vec<f64>>) -> Self {
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
        for (name, share) in QUANTILES {
            values.push((name, each(&|c| quantile(c, share))));
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

/// The standard deviation of the whole, as numpy has it.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().max(1) as f64).sqrt()
}

/// A quantile of rising values, between the two nearest in proportion.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a list"
)]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let at = place.floor() as usize;
    let low = sorted.get(at).copied().unwrap_or(0.0);
    let high = sorted.get(at + 1).copied().unwrap_or(low);
    low + (high - low) * (place - place.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_that_numpy_gives() {
        // numpy.mean, std and quantile of [3, 1, 4, 1, 5, 9, 2, 6].
        let column = vec![3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        let figures = FeatureStatistics::of("x", vec![column]);
        let value = |name: &str| {
            let found = figures.values.iter().find(|(known, _)| *known == name);
            found.and_then(|(_, values)| values.first()).copied()
        };
        for (name, right) in [
            ("min", 1.0),
            ("max", 9.0),
            ("mean", 3.875),
            ("std", 2.570_870_475),
            ("q01", 1.0),
            ("q50", 3.5),
            ("q90", 6.9),
            ("q99", 8.79),
        ] {
            let off = value(name).map(|value| (value - right).abs());
            assert!(
                off.is_some_and(|off| off < 1e-9),
                "{name}: {:?}",
                value(name)
            );
        }
    }
}
