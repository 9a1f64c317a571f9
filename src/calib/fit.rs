//! Nonlinear least squares by the Levenberg–Marquardt method with difference quotients.

use nalgebra::{DMatrix, DVector};

const ROUNDS_MAX: usize = 60;

/// Iteration ends once a round reduces the sum of squares by less than this part.
const GAIN_MIN: f64 = 1e-9;

const DAMPING: f64 = 1e-3;
const DAMPING_MIN: f64 = 1e-12;
const DAMPING_MAX: f64 = 1e9;

/// A model of measurements as a function of a state, which has the values of all unknowns.
pub(super) struct FitModel<'a, S> {
    /// Returns the residuals of a state; `None` if the state is impossible.
    pub(super) residuals: &'a dyn Fn(&S) -> Option<DVector<f64>>,
    /// Returns a state changed by a step along each unknown.
    pub(super) step_from: &'a dyn Fn(&S, &DVector<f64>) -> S,
    /// Steps of the difference quotients, one for each unknown.
    pub(super) steps: &'a [f64],
}

/// A step along one unknown alone.
pub(super) fn step_along(steps: &[f64], unknown: usize) -> DVector<f64> {
    let along = steps.iter().enumerate();
    let along = along.map(|(index, step)| if index == unknown { *step } else { 0.0 });
    DVector::from_iterator(steps.len(), along)
}

/// Returns how the residuals change with each unknown.
pub(super) fn slopes<S>(model: &FitModel<'_, S>, state: &S) -> Option<DMatrix<f64>> {
    let residuals = |step: &DVector<f64>| (model.residuals)(&(model.step_from)(state, step));
    let slope = |(unknown, step): (usize, &f64)| {
        let offset = step_along(model.steps, unknown);
        let (forward, backward) = (residuals(&offset)?, residuals(&-offset)?);
        Some((forward - backward) / (2.0 * step))
    };
    let columns: Option<Vec<_>> = model.steps.iter().enumerate().map(slope).collect();
    Some(DMatrix::from_columns(&columns?))
}

/// Returns the state near `state` with the smallest sum of squares, and its residuals.
pub(super) fn least_squares<S>(model: &FitModel<'_, S>, mut state: S) -> Option<(S, DVector<f64>)> {
    let mut residuals = (model.residuals)(&state)?;
    let mut damping = DAMPING;
    for _ in 0..ROUNDS_MAX {
        let slopes = slopes(model, &state)?;
        let mut normal = slopes.tr_mul(&slopes);
        let damped = normal.diagonal() * (1.0 + damping);
        normal.set_diagonal(&damped);
        let Some(step) = normal.lu().solve(&-slopes.tr_mul(&residuals)) else {
            break;
        };
        let next = (model.step_from)(&state, &step);
        match (model.residuals)(&next) {
            Some(better) if better.norm_squared() < residuals.norm_squared() => {
                let gain = residuals.norm_squared() - better.norm_squared();
                let is_done = gain <= GAIN_MIN * residuals.norm_squared();
                (state, residuals) = (next, better);
                damping = (damping * 0.2).max(DAMPING_MIN);
                if is_done {
                    break;
                }
            }
            _ if damping > DAMPING_MAX => break,
            _ => damping *= 10.0,
        }
    }
    Some((state, residuals))
}
