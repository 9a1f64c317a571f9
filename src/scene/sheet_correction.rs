//! Corrects where lines end up on a sheet, as learned from drawn ink.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scene_fault::SceneFault;
use base::units::Finite;

/// Largest correction at any place of the sheet.
pub const CORRECTION_MM_MAX: f64 = 2.0;

/// Number of places along each side at which a correction is checked.
const PLACES: u32 = 21;

/// Correction of a sheet in its file: six coefficients along each axis, of 1, u, v, u², uv and v², where u and v go from -1 to 1
/// over the sheet's width and height.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SheetCorrectionFile {
    /// Along the sheet's x.
    pub x_mm: [Finite; 6],
    /// Along the sheet's y.
    pub y_mm: [Finite; 6],
}

/// Offset by which a tip is moved so that its line ends up in the right place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SheetCorrection {
    /// Coefficients along x and along y, of [`SheetCorrection::terms`].
    pub coefficients_mm: [[f64; 6]; 2],
    size_mm: [f64; 2],
}

impl SheetCorrection {
    /// Creates the correction of a sheet of this size.
    ///
    /// # Errors
    /// A correction that moves a place of the sheet farther than [`CORRECTION_MM_MAX`].
    pub fn new(coefficients_mm: [[f64; 6]; 2], size_mm: [f64; 2]) -> Result<Self, SceneFault> {
        let correction = Self {
            coefficients_mm,
            size_mm,
        };
        let most_mm = correction.largest_mm();
        if most_mm <= CORRECTION_MM_MAX {
            Ok(correction)
        } else {
            Err(SceneFault::Correction { most_mm })
        }
    }

    pub(super) fn of_file(
        file: &SheetCorrectionFile,
        size_mm: [f64; 2],
    ) -> Result<Self, SceneFault> {
        let numbers = [&file.x_mm, &file.y_mm].map(|all| all.map(Finite::get));
        Self::new(numbers, size_mm)
    }

    /// Returns the terms of a place: 1, u, v, u², uv and v². Beyond the sheet they are those of its edge.
    #[must_use]
    pub fn terms([width_mm, height_mm]: [f64; 2], [x_mm, y_mm]: [f64; 2]) -> [f64; 6] {
        let normalized = |at: f64, side: f64| (2.0 * at / side - 1.0).clamp(-1.0, 1.0);
        let (u, v) = (normalized(x_mm, width_mm), normalized(y_mm, height_mm));
        [1.0, u, v, u * u, u * v, v * v]
    }

    /// Returns the offset for these coefficients at a place of a sheet of this size.
    #[must_use]
    pub fn offset_mm(
        coefficients_mm: &[[f64; 6]; 2],
        size_mm: [f64; 2],
        at_mm: [f64; 2],
    ) -> [f64; 2] {
        let terms = Self::terms(size_mm, at_mm);
        coefficients_mm.map(|all| all.iter().zip(terms).map(|(c, term)| c * term).sum())
    }

    /// Returns the offset at a place of the sheet.
    #[must_use]
    pub fn at(&self, at_mm: [f64; 2]) -> [f64; 2] {
        Self::offset_mm(&self.coefficients_mm, self.size_mm, at_mm)
    }

    /// Returns the largest offset at any place.
    #[must_use]
    pub fn largest_mm(&self) -> f64 {
        let [width_mm, height_mm] = self.size_mm;
        let fraction = |n: u32| f64::from(n) / f64::from(PLACES - 1);
        let places = (0..PLACES).flat_map(|row| (0..PLACES).map(move |column| [column, row]));
        let lengths = places.map(|[column, row]| {
            let [dx, dy] = self.at([fraction(column) * width_mm, fraction(row) * height_mm]);
            dx.hypot(dy)
        });
        // A number that is not finite counts as larger than all.
        lengths.fold(
            0.0,
            |most: f64, length| if length <= most { most } else { length },
        )
    }
}
