//! Shades the sheet of a plan as if light fell on its surface from the upper left.

use super::SheetRelief;
use super::canvas::{Canvas, PALE};
use super::sheet_transform::SheetTransform;

/// Pixels of the picture for one of the shading.
const PX: f64 = 2.0;

/// Tones of the darkest and the brightest slope.
const DARK: f64 = 120.0;
const BRIGHT: f64 = 255.0;

/// Draws the shading below everything else; a place without a surface is grey.
pub(super) fn draw_relief(canvas: &mut Canvas, relief: &SheetRelief, sheet: &SheetTransform) {
    let [columns, rows] = [sheet.area.width, sheet.area.height].map(pixels);
    let mut rgb = Vec::new();
    let [low_x, low_y] = sheet.part.low_mm;
    let [width, height] = sheet.part.size_mm;
    for row in 0..rows {
        let y = low_y + height * (1.0 - (f64::from(row) + 0.5) / f64::from(rows));
        for column in 0..columns {
            let x = low_x + width * (f64::from(column) + 0.5) / f64::from(columns);
            rgb.extend(relief.light_at([x, y]).map_or(PALE, grey));
        }
    }
    canvas.photo(sheet.area, [columns, rows], &rgb);
    canvas.frame(sheet.area, PALE);
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 255"
)]
fn grey(light: f64) -> [u8; 3] {
    let tone = DARK + (BRIGHT - DARK) * light.clamp(0.0, 1.0);
    [tone as u8; 3]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and some hundreds"
)]
fn pixels(length: f64) -> u32 {
    (length / PX).clamp(1.0, 1000.0) as u32
}

impl SheetRelief {
    /// Returns the light at a place, between those of the four points around it; `None` where one of them has none.
    fn light_at(&self, [x, y]: [f64; 2]) -> Option<f64> {
        let last = self.size.map(|count| count.saturating_sub(1) as f64);
        let (across, up) = (
            (x / self.step_mm).clamp(0.0, last[0]),
            (y / self.step_mm).clamp(0.0, last[1]),
        );
        let (left, low) = (across.floor(), up.floor());
        let (right, high) = ((left + 1.0).min(last[0]), (low + 1.0).min(last[1]));
        let (by_x, by_y) = (across - left, up - low);
        let below = self.of(left, low)? * (1.0 - by_x) + self.of(right, low)? * by_x;
        let above = self.of(left, high)? * (1.0 - by_x) + self.of(right, high)? * by_x;
        Some(below * (1.0 - by_y) + above * by_y)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the number of columns and rows"
    )]
    fn of(&self, column: f64, row: f64) -> Option<f64> {
        let index = row as usize * self.size[0] + column as usize;
        self.light.get(index).copied().flatten()
    }
}
