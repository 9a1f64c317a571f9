//! Nonlinear least squares, by Levenberg and Marquardt with difference quotients.

use nalgebra::{DMatrix, DVector};

const ROUNDS_MAX: usize = 60;

/// A round that gains less than this share of the squares is the last.
const GAIN_MIN: f64 = 1e-9;

const DAMPING: f64 = 1e-3;
const DAMPING_MIN: f64 = 1e-12;
const DAMPING_MAX: f64 = 1e9;

/// Expected measurements, as a function of what is not known; a state has the values of all unknowns.
pub(super) struct FitModel<'a, S> {
    /// Returns the distances of the measurements from a state; `None` if such a state is impossible.
    pub(super) off: &'a dyn Fn(&S) -> Option<DVector<f64>>,
    /// The state that is further by a step along each unknown.
    pub(super) moved: &'a dyn Fn(&S, &DVector<f64>) -> S,
    /// Steps of the difference quotients, one for each unknown.
    pub(super) steps: &'a [f64],
}

/// A step along one unknown alone.
pub(super) fn nudge(steps: &[f64], unknown: usize) -> DVector<f64> {
    let along = steps.iter().enumerate();
    let along = along.map(|(index, step)| if index == unknown { *step } else { 0.0 });
    DVector::from_iterator(steps.len(), along)
}

/// Returns how the residuals change with each unknown.
pub(super) fn slopes<S>(model: &FitModel<'_, S>, state: &S) -> Option<DMatrix<f64>> {
    let off = |by: &DVector<f64>| (model.off)(&(model.moved)(state, by));
    let slope = |(unknown, step): (usize, &f64)| {
        let by = nudge(model.steps, unknown);
        let (on, back) = (off(&by)?, off(&-by)?);
        Some((on - back) / (2.0 * step))
    };
    let columns: Option<Vec<_>> = model.steps.iter().enumerate().map(slope).collect();
    Some(DMatrix::from_columns(&columns?))
}

/// Returns the state with the least squares near `state`, and its residuals.
pub(super) fn least_squares<S>(model: &FitModel<'_, S>, mut state: S) -> Option<(S, DVector<f64>)> {
    let mut off = (model.off)(&state)?;
    let mut damping = DAMPING;
    for _ in 0..ROUNDS_MAX {
        let slopes = slopes(model, &state)?;
        let mut normal = slopes.tr_mul(&slopes);
        let damped = normal.diagonal() * (1.0 + damping);
        normal.set_diagonal(&damped);
        let Some(step) = normal.lu().solve(&-slopes.tr_mul(&off)) else {
            break;
        };
        let next = (model.moved)(&state, &step);
        match (model.off)(&next) {
            Some(better) if better.norm_squared() < off.norm_squared() => {
                let gained = off.norm_squared() - better.norm_squared();
                let is_done = gained <= GAIN_MIN * off.norm_squared();
                (state, off) = (next, better);
                damping = (damping * 0.2).max(DAMPING_MIN);
                if is_done {
                    break;
                }
            }
            _ if damping > DAMPING_MAX => break,
            _ => damping *= 10.0,
        }
    }
    Some((state, off))
}
