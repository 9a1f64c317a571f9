//! Small statistics: spread, the worst of some residuals, and how far a small sample is believed.

/// A residual that is not like the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// Which touch, from 0.
    pub index: usize,
    /// How far it is from what the others say.
    pub off_m: f64,
}

/// Scales a median of absolute deviations to a normal distribution's standard deviation.
const MAD_TO_SIGMA: f64 = 1.4826;

/// How many such deviations a touch may be off.
const MADS: f64 = 3.0;

/// Larger ratios say no more than this one.
const RATIO_SHOWN_MAX: f64 = 1e3;

/// A ratio as people read it.
pub(super) fn ratio(value: f64) -> String {
    if value < RATIO_SHOWN_MAX {
        format!("{value:.0}")
    } else {
        format!("over {RATIO_SHOWN_MAX}")
    }
}

pub(super) fn rms(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0_f64);
    for value in values {
        sum += value * value;
        count += 1.0;
    }
    (sum / count.max(1.0)).sqrt()
}

pub(super) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().map(f64::abs).fold(0.0, f64::max)
}

pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied().unwrap_or(0.0);
    if sorted.len() % 2 == 1 {
        return upper;
    }
    let lower = sorted.get(middle.wrapping_sub(1)).copied();
    (lower.unwrap_or(upper) + upper) / 2.0
}

/// Where a residual begins to be another kind of thing than `others`, which are not negative.
pub(super) fn fence(others: &[f64]) -> f64 {
    let middle = median(others);
    let deviations: Vec<f64> = others.iter().map(|value| (value - middle).abs()).collect();
    middle + MADS * MAD_TO_SIGMA * median(&deviations)
}

/// The touch without which the others agree best, if the others put it beyond their fence.
///
/// `fit` gives the residuals of all touches, the one of that index left out of the fit; `None`
/// where too few would be left. `freedom` makes residuals of a fit as large as the noise they come
/// from.
pub(super) fn outlier(
    count: usize,
    freedom: f64,
    fit: impl Fn(usize) -> Option<Vec<f64>>,
) -> Option<Outlier> {
    let mut best: Option<(f64, Outlier, f64)> = None;
    for index in 0..count {
        let residuals = fit(index)?;
        let off_m = residuals.get(index).copied().unwrap_or(0.0).abs();
        let others: Vec<f64> = residuals
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .map(|(_, value)| value.abs() * freedom)
            .collect();
        let left = rms(others.iter().copied());
        if best.as_ref().is_none_or(|(least, ..)| left < *least) {
            best = Some((left, Outlier { index, off_m }, fence(&others)));
        }
    }
    best.and_then(|(_, outlier, fence)| (outlier.off_m > fence).then_some(outlier))
}

/// The 95 % quantile of the F distribution with 3 and `freedom` degrees, within 1 % from 3 up.
pub(super) fn f3_95(freedom: f64) -> f64 {
    let n = freedom.max(1.0);
    2.605 * (1.0 + 3.27 / n + 10.1 / (n * n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, known) in [(6.0, 4.757), (9.0, 3.863), (18.0, 3.160), (60.0, 2.758)] {
            let got = f3_95(freedom);
            assert!((got / known - 1.0).abs() < 0.01, "{freedom}: {got}");
        }
    }

    #[test]
    fn medians_are_in_the_middle() {
        for (values, middle) in [
            (vec![3.0, 1.0, 2.0], 2.0),
            (vec![4.0, 1.0, 2.0, 3.0], 2.5),
            (vec![7.0], 7.0),
            (vec![], 0.0),
        ] {
            assert!((median(&values) - middle).abs() < 1e-12, "{values:?}");
        }
    }
}
