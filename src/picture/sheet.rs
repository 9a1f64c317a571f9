//! The sheet in a picture: where it lies, how it is framed, and its scale.

use super::canvas::{Area, Canvas, INK, PALE, PAPER, Point, QUIET};

/// Pixels around everything.
pub(super) const MARGIN: f64 = 32.0;

/// Where title and caption end.
pub(super) const HEAD: f64 = 92.0;

/// From millimetres on the sheet to pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sheet {
    pub(super) area: Area,
    pub(super) px_per_mm: f64,
}

impl Sheet {
    /// As large as fits, its upper left corner at `corner`.
    pub(super) fn fit(sheet_mm: [f64; 2], corner: Point, width: f64, height: f64) -> Self {
        let px_per_mm = (width / sheet_mm[0]).min(height / sheet_mm[1]);
        Self {
            area: Area {
                x: corner[0],
                y: corner[1],
                width: sheet_mm[0] * px_per_mm,
                height: sheet_mm[1] * px_per_mm,
            },
            px_per_mm,
        }
    }

    pub(super) fn place(&self, [x, y]: Point) -> Point {
        [
            self.area.x + x * self.px_per_mm,
            self.area.y + self.area.height - y * self.px_per_mm,
        ]
    }

    pub(super) fn path(&self, points: &[Point]) -> Vec<Point> {
        points.iter().map(|point| self.place(*point)).collect()
    }

    /// A pen's width in pixels, at least so that it can be seen.
    pub(super) fn width(&self, width_mm: f64) -> f64 {
        let width_mm = if width_mm.is_finite() { width_mm } else { 0.0 };
        (width_mm * self.px_per_mm).clamp(1.4, 60.0)
    }

    /// White paper with a soft edge and a measure below it.
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let shade = Area {
            x: self.area.x + 2.0,
            y: self.area.y + 3.0,
            ..self.area
        };
        canvas.fill(shade, [232, 230, 225]);
        canvas.fill(self.area, PAPER);
        canvas.frame(self.area, PALE);
    }

    /// A bar of a round number of millimetres, its left end at `at`.
    pub(super) fn measure(&self, canvas: &mut Canvas, [x, y]: Point) {
        let lengths = [
            1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0,
        ];
        let fits = |mm: &&f64| **mm * self.px_per_mm <= 140.0;
        let Some(mm) = lengths.iter().rev().find(fits) else {
            return;
        };
        let right = x + mm * self.px_per_mm;
        canvas.lines(
            [
                &[[x, y], [right, y]][..],
                &[[x, y - 3.0], [x, y + 3.0]],
                &[[right, y - 3.0], [right, y + 3.0]],
            ]
            .into_iter(),
            QUIET,
            1.0,
        );
        canvas.words(&format!("{mm} mm"), [right + 8.0, y + 4.0], 8.0, QUIET);
    }
}

/// Title and caption above everything.
pub(super) fn head(canvas: &mut Canvas, title: &str, caption: &str, width: f64) {
    use super::canvas::fitted;
    let room = width - 2.0 * MARGIN;
    let title = fitted(title, 15.0, room);
    canvas.words(&title, [MARGIN, MARGIN + 16.0], 15.0, INK);
    let caption = fitted(caption, 9.0, room);
    canvas.words(&caption, [MARGIN, MARGIN + 42.0], 9.0, QUIET);
}
