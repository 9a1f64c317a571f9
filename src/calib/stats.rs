//! Small statistics: spread, outliers among residuals, and the confidence in a small sample.

use std::f64::consts::{FRAC_PI_2, PI};

/// A residual that differs from the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TouchOutlier {
    /// Index of the touch, from 0.
    pub index: usize,
    /// Distance from the fit of the others.
    pub off_m: f64,
}

/// Scales a median of absolute deviations to a normal distribution's standard deviation.
pub(super) const MAD_TO_SIGMA: f64 = 1.4826;

/// Largest number of such deviations for a touch.
const MADS: f64 = 3.0;

/// Larger ratios are not distinguished.
const RATIO_SHOWN_MAX: f64 = 1e3;

/// Formats a ratio for people.
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

/// Returns the median of one or more values.
#[expect(
    clippy::indexing_slicing,
    reason = "a median of no values is a bug, and must not return a made-up number"
)]
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let upper = sorted[half];
    if sorted.len() % 2 == 1 {
        return upper;
    }
    (sorted[half - 1] + upper) / 2.0
}

/// Returns whether a residual is an outlier among `others`. Heights keep their signs: without them half of the scatter
/// would be lost, and good touches would be rejected.
pub(super) fn is_outlier(residual: f64, others: &[f64]) -> bool {
    let centre = median(others);
    let deviations: Vec<f64> = others.iter().map(|value| (value - centre).abs()).collect();
    (residual - centre).abs() > MADS * MAD_TO_SIGMA * median(&deviations)
}

/// Kind of a touch's residual.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResidualKind {
    /// One number, with its sign.
    Height,
    /// The length of a vector.
    Vector,
}

/// Size of a fit when one touch is left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct FitRows {
    /// Kind of the examined residual.
    pub(super) each: ResidualKind,
    /// Number of equations.
    pub(super) all: usize,
    /// Number of unknowns in the fit.
    pub(super) unknowns: usize,
}

impl FitRows {
    fn freedom(self) -> usize {
        self.all.saturating_sub(self.unknowns).max(1)
    }

    /// Returns the factor from a fit's residuals to the noise behind them; and, on average, from that noise to the residual of a
    /// touch that was left out.
    fn stretch(self) -> f64 {
        (self.all as f64 / self.freedom() as f64).sqrt()
    }
}

/// Largest fraction of fits in which a good touch is left out by chance.
const CHANCE: f64 = 0.05;

/// Returns the touch without which the others agree best, if chance does not explain it for this number of touches.
///
/// `fit` returns the residuals of all touches with the touch of that index left out of the fit; `None` if too few
/// remain.
fn outlier(
    count: usize,
    rows: FitRows,
    fit: impl Fn(usize) -> Option<Vec<f64>>,
) -> Option<TouchOutlier> {
    let mut best: Option<(f64, usize, Vec<f64>)> = None;
    for index in 0..count {
        let residuals = fit(index)?;
        let rms_m = rms(except(&residuals, Some(index)).copied());
        if best.as_ref().is_none_or(|(least, ..)| rms_m < *least) {
            best = Some((rms_m, index, residuals));
        }
    }
    let (rms_m, index, residuals) = best?;
    let off_m = residuals.get(index).copied()?;
    let stretch = rows.stretch();
    let others: Vec<f64> = except(&residuals, Some(index))
        .map(|residual| residual * stretch)
        .collect();
    let ratio = off_m / (rms_m * stretch * stretch).max(f64::MIN_POSITIVE);
    let by_chance = count as f64 * tail_probability(ratio * ratio, rows.each, rows.freedom());
    (is_outlier(off_m, &others) && by_chance < CHANCE).then_some(TouchOutlier {
        index,
        off_m: off_m.abs(),
    })
}

/// A fit to touches, of which one may have been left out.
pub trait TouchFit {
    /// Yields each touch's residual in m, including those that were left out.
    fn off_m(&self) -> impl Iterator<Item = f64>;

    /// Returns the touch that was left out.
    fn left_out(&self) -> Option<TouchOutlier>;

    /// Records the touch that was left out.
    fn leave_out(&mut self, outlier: TouchOutlier);

    /// Yields the residuals without touches that were left out.
    fn kept(&self) -> impl Iterator<Item = f64> {
        let left_out = self.left_out().map(|outlier| outlier.index);
        self.off_m()
            .enumerate()
            .filter(move |(index, _)| Some(*index) != left_out)
            .map(|(_, off_m)| off_m)
    }

    /// Returns the residuals' root mean square without touches that were left out.
    fn rms_m(&self) -> f64 {
        rms(self.kept())
    }

    /// Returns the largest residual without touches that were left out.
    fn max_m(&self) -> f64 {
        self.kept().map(f64::abs).fold(0.0, f64::max)
    }
}

/// Implements [`TouchFit`] for a type with the fields `residuals_m` and `outlier`.
macro_rules! touch_fit {
    ($fit:ty, $residual:ident => $off_m:expr) => {
        impl $crate::stats::TouchFit for $fit {
            fn off_m(&self) -> impl Iterator<Item = f64> {
                self.residuals_m.iter().map(|$residual| $off_m)
            }

            fn left_out(&self) -> Option<TouchOutlier> {
                self.outlier
            }

            fn leave_out(&mut self, outlier: TouchOutlier) {
                self.outlier = Some(outlier);
            }
        }
    };
}
pub(super) use touch_fit;

/// Fits all touches, and once more without the outlier if there is one and there are more than
/// `least` touches. `fit` receives the fit to all touches and the index to leave out.
pub(super) fn robust<T: TouchFit, E>(
    touches: usize,
    least: usize,
    rows: FitRows,
    fit: impl Fn(Option<(&T, usize)>) -> Result<T, E>,
) -> Result<T, E> {
    let full = fit(None)?;
    if touches <= least {
        return Ok(full);
    }
    let without = |index| Some(fit(Some((&full, index))).ok()?.off_m().collect());
    let Some(outlier) = outlier(touches, rows, without) else {
        return Ok(full);
    };
    let mut fit = fit(Some((&full, outlier.index)))?;
    fit.leave_out(outlier);
    Ok(fit)
}

/// Yields all items except the one of this index.
pub(super) fn except<T>(all: &[T], without: Option<usize>) -> impl Iterator<Item = &T> {
    all.iter()
        .enumerate()
        .filter(move |(index, _)| Some(*index) != without)
        .map(|(_, item)| item)
}

/// Returns the probability that the F distribution with 1 or 3 and `freedom` degrees of freedom exceeds `ratio`: the incomplete
/// beta function of half of each, by its recurrences.
pub(super) fn tail_probability(ratio: f64, each: ResidualKind, freedom: usize) -> f64 {
    let freedom = freedom as f64;
    let degrees = match each {
        ResidualKind::Height => 1.0,
        ResidualKind::Vector => 3.0,
    };
    let x = freedom / (freedom + degrees * ratio);
    let side = (1.0 - x).max(0.0).sqrt();
    let is_odd = freedom % 2.0 > 0.5;
    let (mut a, mut tail, mut beta) = if is_odd {
        (0.5, x.sqrt().asin() / FRAC_PI_2, PI)
    } else {
        (1.0, 1.0 - side, 2.0)
    };
    while a < freedom / 2.0 - 0.25 {
        tail -= x.powf(a) * side / (a * beta);
        beta *= a / (a + 0.5);
        a += 1.0;
    }
    match each {
        ResidualKind::Height => tail,
        ResidualKind::Vector => tail + x.powf(a) * side / (0.5 * beta),
    }
}

/// Returns the 95 % quantile of the F distribution with 3 and `freedom` degrees of freedom, within 1 % from 3 up.
pub(super) fn f3_95(freedom: f64) -> f64 {
    let n = freedom.max(1.0);
    2.605 * (1.0 + 3.27 / n + 10.1 / (n * n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [(6.0, 4.757), (9.0, 3.863), (18.0, 3.160), (60.0, 2.758)] {
            let value = f3_95(freedom);
            assert!((value / expected - 1.0).abs() < 0.01, "{freedom}: {value}");
        }
    }

    #[test]
    fn tails_are_those_of_the_tables() {
        for (ratio, each, freedom, expected) in [
            (12.706_f64.powi(2), ResidualKind::Height, 1, 0.05),
            (4.303_f64.powi(2), ResidualKind::Height, 2, 0.05),
            (2.571_f64.powi(2), ResidualKind::Height, 5, 0.05),
            (4.587_f64.powi(2), ResidualKind::Height, 10, 0.001),
            (2.042_f64.powi(2), ResidualKind::Height, 30, 0.05),
            (215.71, ResidualKind::Vector, 1, 0.05),
            (19.164, ResidualKind::Vector, 2, 0.05),
            (12.060, ResidualKind::Vector, 5, 0.01),
            (3.708, ResidualKind::Vector, 10, 0.05),
            (4.510, ResidualKind::Vector, 30, 0.01),
        ] {
            let value = tail_probability(ratio, each, freedom);
            assert!(
                (value / expected - 1.0).abs() < 0.01,
                "{ratio} {each:?} {freedom}: {value}"
            );
        }
    }

    #[test]
    fn medians_are_in_the_middle() {
        for (values, middle) in [
            (vec![3.0, 1.0, 2.0], 2.0),
            (vec![4.0, 1.0, 2.0, 3.0], 2.5),
            (vec![7.0], 7.0),
        ] {
            assert!((median(&values) - middle).abs() < 1e-12, "{values:?}");
        }
    }

    /// It once returned 0, as if touches had agreed on that.
    #[test]
    #[should_panic = "index out of bounds"]
    fn refuses_a_median_of_no_values() {
        let _ = median(&[]);
    }
}
