//! Measures how much of the paper a swinging line covers.

use super::wave::{APART_WIDTHS, SWING_WIDTHS};
use base::plane::{Point, distance_to_piece, pieces};

/// Swings that are measured, from none to the widest.
const SWINGS: usize = 12;

/// Whole swings on the patch that is measured, and points on it in each width of the pen.
const PATCH_SWINGS: usize = 4;
const POINTS_PER_WIDTH: f64 = 10.0;
const POINTS_PER_WIDTH_MIN: f64 = 3.0;

/// Share of the paper that a line covers, by how wide it swings.
pub(crate) struct WaveCoverage {
    pen_mm: f64,
    /// How many times larger than the finest the pattern is.
    scale: f64,
    /// Coverage by swing, narrowest first.
    shares: Vec<f64>,
}

impl WaveCoverage {
    /// Measures waves of a pen whose lines lie this many times farther apart than the nearest possible.
    pub(crate) fn of(pen_mm: f64, scale: f64) -> Self {
        // In widths of the pen: the shares are the same for all of them.
        let shares = (0..=SWINGS).map(|swing| share(swing_widths(swing, scale), scale));
        Self {
            pen_mm,
            scale,
            shares: shares.collect(),
        }
    }

    /// Returns the distance between neighbouring lines.
    pub(crate) fn apart_mm(&self) -> f64 {
        APART_WIDTHS * self.scale * self.pen_mm
    }

    /// Returns the length along the line from one side to the other.
    pub(crate) fn half_swing_mm(&self) -> f64 {
        SWING_WIDTHS / 2.0 * self.scale * self.pen_mm
    }

    /// Returns how far a line's ends lie from its first and its last place: half a swing between them, less the pen's round end.
    pub(crate) fn end_mm(&self) -> f64 {
        (SWING_WIDTHS / 4.0 * self.scale - std::f64::consts::FRAC_PI_8) * self.pen_mm
    }

    /// Returns the coverage of a straight line.
    pub(crate) fn least(&self) -> f64 {
        self.shares.first().copied().unwrap_or(0.0)
    }

    /// Returns the coverage of the widest swing.
    pub(crate) fn most(&self) -> f64 {
        self.shares.last().copied().unwrap_or(1.0)
    }

    /// Returns how far a line swings to either side to cover this share.
    pub(crate) fn swing_mm(&self, wanted: f64) -> f64 {
        let above = self.shares.iter().position(|share| *share >= wanted);
        let above = above.unwrap_or(SWINGS).max(1);
        let at = |swing: usize| self.shares.get(swing).copied().unwrap_or(0.0);
        let (low, high) = (at(above - 1), at(above));
        let fraction = ((wanted - low) / (high - low)).clamp(0.0, 1.0);
        let [from, to] = [above - 1, above].map(|swing| swing_widths(swing, self.scale));
        self.pen_mm * (from + fraction * (to - from))
    }
}

/// Returns how far a line swings to either side, in widths of the pen: at the widest, neighbouring lines touch.
fn swing_widths(swing: usize, scale: f64) -> f64 {
    (APART_WIDTHS * scale - 1.0) / 2.0 * swing as f64 / SWINGS as f64
}

/// Measures the share of the paper that a wave covers on a patch of whole swings.
fn share(swing_widths: f64, scale: f64) -> f64 {
    let half = SWING_WIDTHS / 2.0 * scale;
    let points_per_width = (POINTS_PER_WIDTH / scale).max(POINTS_PER_WIDTH_MIN);
    // One swing more on either side of the patch.
    let wave: Vec<Point> = (0..=2 * PATCH_SWINGS + 4)
        .map(|index| {
            let side = if index % 2 == 0 { 1.0 } else { -1.0 };
            [(index as f64 - 2.0) * half, side * swing_widths]
        })
        .collect();
    let length = SWING_WIDTHS * scale * PATCH_SWINGS as f64;
    let apart = APART_WIDTHS * scale;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few hundred"
    )]
    let [columns, rows] = [length, apart].map(|widths| (widths * points_per_width) as usize);
    let covered = (0..rows * columns).filter(|index| {
        let [x, y] =
            [index % columns, index / columns].map(|cell| (cell as f64 + 0.5) / points_per_width);
        let place = [x, y - apart / 2.0];
        pieces(&wave).any(|piece| distance_to_piece(place, piece) <= 0.5)
    });
    covered.count() as f64 / (rows * columns) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::indexing_slicing, reason = "windows of two")]
    fn a_wider_swing_covers_more_and_is_found_by_its_share() {
        let coverage = WaveCoverage::of(0.4, 1.0);
        assert!(coverage.shares.windows(2).all(|pair| pair[0] < pair[1]));
        assert!((coverage.least() - 1.0 / APART_WIDTHS).abs() < 0.01);
        assert!(coverage.most() > 0.5, "{}", coverage.most());
        assert!(coverage.swing_mm(coverage.least()) < 1e-9);
        let widest = coverage.swing_mm(coverage.most());
        assert!((widest - 0.8).abs() < 1e-9, "{widest}");
    }
}
