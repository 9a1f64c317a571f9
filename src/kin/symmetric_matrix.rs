//! Symmetric positive matrices of a few rows, factored without a square root.

#![expect(
    clippy::indexing_slicing,
    clippy::needless_range_loop,
    reason = "matrices of fixed size, indexed below it, as textbooks write them"
)]

use nalgebra::SVector;

/// Smallest pivot with a useful inverse.
const PIVOT_MIN: f64 = 1e-300;

/// The lower half of a symmetric matrix; what is above the diagonal is not used.
#[derive(Clone, Copy, Debug)]
pub(super) struct SymmetricMatrix<const N: usize>([[f64; N]; N]);

/// `L · D · Lᵀ`: ones on the diagonal of `L`, and the inverse of `D` stored separately.
#[derive(Clone, Copy, Debug)]
pub(super) struct LdlFactor<const N: usize> {
    lower: [[f64; N]; N],
    inverse: [f64; N],
}

impl<const N: usize> SymmetricMatrix<N> {
    /// Creates a matrix from its elements, each requested with a row not above its column.
    #[inline(always)]
    pub(super) fn new(element: impl Fn(usize, usize) -> f64) -> Self {
        let mut lower = [[0.0; N]; N];
        for row in 0..N {
            for column in 0..=row {
                lower[row][column] = element(row, column);
            }
        }
        Self(lower)
    }

    /// Adds a value to the whole diagonal.
    #[inline(always)]
    pub(super) fn damped(mut self, by: f64) -> Self {
        for index in 0..N {
            self.0[index][index] += by;
        }
        self
    }

    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        self.0[row.max(column)][row.min(column)]
    }

    /// Factors the matrix; `None` if it is not positive.
    #[inline(always)]
    pub(super) fn factor(&self) -> Option<LdlFactor<N>> {
        let (mut lower, mut inverse) = (self.0, [0.0; N]);
        for column in 0..N {
            let pivot = lower[column][column];
            if pivot.is_nan() || pivot <= PIVOT_MIN {
                return None;
            }
            inverse[column] = 1.0 / pivot;
            for row in column + 1..N {
                let ratio = lower[row][column] * inverse[column];
                for target in column + 1..=row {
                    lower[row][target] -= ratio * lower[target][column];
                }
            }
            for row in column + 1..N {
                lower[row][column] *= inverse[column];
            }
        }
        Some(LdlFactor { lower, inverse })
    }
}

impl<const N: usize> LdlFactor<N> {
    /// Returns the vector that the matrix maps to `rhs`.
    #[inline(always)]
    pub(super) fn solve(&self, rhs: &SVector<f64, N>) -> SVector<f64, N> {
        let mut x = *rhs;
        for row in 0..N {
            for column in 0..row {
                x[row] -= self.lower[row][column] * x[column];
            }
        }
        for row in 0..N {
            x[row] *= self.inverse[row];
        }
        for row in (0..N).rev() {
            for below in row + 1..N {
                x[row] -= self.lower[below][row] * x[below];
            }
        }
        x
    }
}
