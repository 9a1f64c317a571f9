//! Small statistics: spread, the worst of some residuals, and how far a small sample is believed.

use std::f64::consts::{FRAC_PI_2, PI};

/// A residual that is not like the others.
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

/// Of one value or more.
#[expect(
    clippy::indexing_slicing,
    reason = "a median of nothing is a mistake of the program, and none is made up for it"
)]
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted[middle];
    if sorted.len() % 2 == 1 {
        return upper;
    }
    (sorted[middle - 1] + upper) / 2.0
}

/// Returns whether a residual is an outlier among `others`. Heights have signs: without the signs half of their scatter
/// would be lost, and good touches would be rejected.
pub(super) fn is_outlier(residual: f64, others: &[f64]) -> bool {
    let middle = median(others);
    let deviations: Vec<f64> = others.iter().map(|value| (value - middle).abs()).collect();
    (residual - middle).abs() > MADS * MAD_TO_SIGMA * median(&deviations)
}

/// Kind of a touch's residual.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResidualKind {
    /// One number, with its sign.
    Height,
    /// The length of a vector.
    Vector,
}

/// The numbers that a fit is made of when one touch is left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct FitRows {
    /// Kind of the judged residual.
    pub(super) each: ResidualKind,
    /// All of them.
    pub(super) all: usize,
    /// Number of unknowns in the fit.
    pub(super) unknowns: usize,
}

impl FitRows {
    fn freedom(self) -> usize {
        self.all.saturating_sub(self.unknowns).max(1)
    }

    /// Makes residuals of a fit as large as the noise they come from; and that noise as large as the residual of a touch
    /// that the fit has not seen, on average.
    fn stretch(self) -> f64 {
        (self.all as f64 / self.freedom() as f64).sqrt()
    }
}

/// Largest share of fits in which a good touch is left out by chance.
const CHANCE: f64 = 0.05;

/// Returns the touch without which the others agree best, if it is an outlier beyond the chance expected for this
/// number of touches.
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
        let left = rms(but(&residuals, Some(index)).copied());
        if best.as_ref().is_none_or(|(least, ..)| left < *least) {
            best = Some((left, index, residuals));
        }
    }
    let (left, index, residuals) = best?;
    let off_m = residuals.get(index).copied()?;
    let stretch = rows.stretch();
    let others = but(&residuals, Some(index)).map(|one| one * stretch);
    let others: Vec<f64> = others.collect();
    let ratio = off_m / (left * stretch * stretch).max(f64::MIN_POSITIVE);
    let by_chance = count as f64 * beyond(ratio * ratio, rows.each, rows.freedom());
    (is_outlier(off_m, &others) && by_chance < CHANCE).then_some(TouchOutlier {
        index,
        off_m: off_m.abs(),
    })
}

/// A fit to touches, of which one may have been left out.
pub trait TouchFit {
    /// Yields how far each touch is off, in m, those that were left out too.
    fn off_m(&self) -> impl Iterator<Item = f64>;

    /// The touch that was left out.
    fn left_out(&self) -> Option<TouchOutlier>;

    /// Takes note of the touch that was left out.
    fn leave_out(&mut self, outlier: TouchOutlier);

    /// Yields the residuals, touches that were left out aside.
    fn kept(&self) -> impl Iterator<Item = f64> {
        let left_out = self.left_out().map(|outlier| outlier.index);
        let all = self.off_m().enumerate();
        all.filter(move |(index, _)| Some(*index) != left_out)
            .map(|(_, off_m)| off_m)
    }

    /// Returns the residuals' root mean square, touches that were left out aside.
    fn rms_m(&self) -> f64 {
        rms(self.kept())
    }

    /// Returns the largest residual, touches that were left out aside.
    fn max_m(&self) -> f64 {
        self.kept().map(f64::abs).fold(0.0, f64::max)
    }
}

/// A fit whose residuals and outlier are fields of these names.
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

/// Fits all touches, and once more without the one that is unlike the others, if there is one and
/// more than `least` are there. `fit` is given the fit to all touches and the one to leave out.
pub(super) fn robust<T: TouchFit, E>(
    touches: usize,
    least: usize,
    rows: FitRows,
    fit: impl Fn(Option<(&T, usize)>) -> Result<T, E>,
) -> Result<T, E> {
    let plain = fit(None)?;
    if touches <= least {
        return Ok(plain);
    }
    let without = |index| Some(fit(Some((&plain, index))).ok()?.off_m().collect());
    let Some(found) = outlier(touches, rows, without) else {
        return Ok(plain);
    };
    let mut fit = fit(Some((&plain, found.index)))?;
    fit.leave_out(found);
    Ok(fit)
}

/// Yields all but the one of this index.
pub(super) fn but<T>(all: &[T], without: Option<usize>) -> impl Iterator<Item = &T> {
    let all = all.iter().enumerate();
    all.filter(move |(index, _)| Some(*index) != without)
        .map(|(_, one)| one)
}

/// Returns the probability that the F distribution with 1 or 3 and `freedom` degrees exceeds `ratio`: the incomplete
/// beta function of half of each, by its recurrences.
pub(super) fn beyond(ratio: f64, each: ResidualKind, freedom: usize) -> f64 {
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
    fn tails_are_those_of_the_tables() {
        for (ratio, each, freedom, known) in [
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
            let got = beyond(ratio, each, freedom);
            assert!(
                (got / known - 1.0).abs() < 0.01,
                "{ratio} {each:?} {freedom}: {got}"
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

    /// It was 0, as if touches had agreed on that.
    #[test]
    #[should_panic = "index out of bounds"]
    fn refuses_a_median_of_nothing() {
        let _ = median(&[]);
    }
}
