//! Maps the sheet into a picture: its place, its frame and its scale.

use super::canvas::{
    AIR, Canvas, INK, PALE, PAPER, PixelArea, Point, QUIET, truncate_to_width, width_of,
};

/// Margin around a picture, in pixels.
pub(super) const MARGIN: f64 = 32.0;

/// Height of the head with title and caption.
pub(super) const HEAD: f64 = 92.0;

/// The part of a sheet that a picture shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShownPart {
    sheet_mm: [f64; 2],
    pub(super) low_mm: Point,
    pub(super) size_mm: [f64; 2],
}

/// Fraction of its sheet, in both directions, below which a drawing is enlarged.
const SMALL_FRACTION: f64 = 0.6;

/// Margin around an enlarged drawing, as a fraction of its longer side.
const ENLARGED_MARGIN: f64 = 0.18;

impl ShownPart {
    /// Returns the full sheet, or the surroundings of a drawing that is small on it.
    pub(super) fn around<'p>(sheet_mm: [f64; 2], points: impl Iterator<Item = &'p Point>) -> Self {
        let full = Self {
            sheet_mm,
            low_mm: [0.0, 0.0],
            size_mm: sheet_mm,
        };
        let Some((low, high)) = bounds(points) else {
            return full;
        };
        let margin_mm = (high[0] - low[0]).max(high[1] - low[1]).max(10.0) * ENLARGED_MARGIN;
        let mut part = full;
        let axes = part.low_mm.iter_mut().zip(&mut part.size_mm);
        for ((start, length), ((low, high), side)) in axes.zip(low.iter().zip(&high).zip(sheet_mm))
        {
            if *low < 0.0 || *high > side || high - low > SMALL_FRACTION * side {
                return full;
            }
            *start = (low - margin_mm).max(0.0);
            *length = (high + margin_mm).min(side) - *start;
        }
        part
    }

    pub(super) fn shows(&self, point_mm: Point) -> bool {
        let mut axes = point_mm.iter().zip(self.low_mm).zip(self.size_mm);
        axes.all(|((at, low), size)| (low..=low + size).contains(at))
    }

    fn is_full_sheet(&self) -> bool {
        let mut sides = self.size_mm.iter().zip(self.sheet_mm);
        sides.all(|(shown, full)| (shown - full).abs() < 1e-9)
    }

    /// Draws a small sheet at a place, with the shown part marked, unless the full sheet is shown.
    pub(super) fn draw_locator(&self, canvas: &mut Canvas, right: f64, baseline: f64) {
        if self.is_full_sheet() {
            return;
        }
        let [width, height] = self.sheet_mm;
        let px = (46.0 / width).min(20.0 / height);
        let corner = [right - width * px, baseline - height * px + 2.0];
        let sheet = PixelArea::new(corner, [width * px, height * px]);
        canvas.fill(sheet, PAPER);
        let above_mm = height - self.low_mm[1] - self.size_mm[1];
        let corner = [sheet.x + self.low_mm[0] * px, sheet.y + above_mm * px];
        canvas.fill(PixelArea::new(corner, self.size_mm.map(|mm| mm * px)), AIR);
        canvas.frame(sheet, QUIET);
        let text = format!("part of a sheet of {width:.0} by {height:.0} mm");
        let start = sheet.x - 10.0 - width_of(&text) * 8.0;
        canvas.draw_text(&text, [start, baseline], 8.0, QUIET);
    }
}

fn bounds<'p>(points: impl Iterator<Item = &'p Point>) -> Option<(Point, Point)> {
    let finite = points.filter(|[x, y]| x.is_finite() && y.is_finite());
    finite.fold(None, |bounds, &[x, y]| {
        let (low, high) = bounds.unwrap_or(([x, y], [x, y]));
        let low = [f64::min(low[0], x), f64::min(low[1], y)];
        Some((low, [f64::max(high[0], x), f64::max(high[1], y)]))
    })
}

/// Transform from millimetres on the sheet to pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct SheetTransform {
    pub(super) area: PixelArea,
    pub(super) px_per_mm: f64,
    pub(super) part: ShownPart,
}

impl SheetTransform {
    /// Scales a part to the largest size that fits, with its upper left corner at `corner`.
    pub(super) fn fit(part: ShownPart, corner: Point, width: f64, height: f64) -> Self {
        let px_per_mm = (width / part.size_mm[0]).min(height / part.size_mm[1]);
        Self {
            area: PixelArea::new(corner, part.size_mm.map(|mm| mm * px_per_mm)),
            px_per_mm,
            part,
        }
    }

    pub(super) fn place(&self, [x, y]: Point) -> Point {
        let [low_x, low_y] = self.part.low_mm;
        [
            self.area.x + (x - low_x) * self.px_per_mm,
            self.area.bottom() - (y - low_y) * self.px_per_mm,
        ]
    }

    pub(super) fn path(&self, points: &[Point]) -> Vec<Point> {
        points.iter().map(|point| self.place(*point)).collect()
    }

    /// Returns a pen's width in pixels, no less than the minimum visible width.
    pub(super) fn width(&self, width_mm: f64) -> f64 {
        let width_mm = if width_mm.is_finite() { width_mm } else { 0.0 };
        (width_mm * self.px_per_mm).clamp(1.4, 60.0)
    }

    /// Clips to the shown part; a full sheet also shows what lies outside it.
    pub(super) fn clip(&self, canvas: &mut Canvas) {
        canvas.clip_to((!self.part.is_full_sheet()).then_some(self.area));
    }

    /// Draws the sheet: white paper with a soft shadow.
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let shadow = PixelArea {
            x: self.area.x + 2.0,
            y: self.area.y + 3.0,
            ..self.area
        };
        canvas.fill(shadow, [232, 230, 225]);
        canvas.fill(self.area, PAPER);
        canvas.frame(self.area, PALE);
    }

    /// Draws a scale bar of a round number of millimetres, with its left end at a place.
    pub(super) fn draw_scale_bar(&self, canvas: &mut Canvas, [x, y]: Point) {
        self.part.draw_locator(canvas, self.area.right(), y + 4.0);
        let lengths = [
            1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0,
        ];
        let fits = |mm: &&f64| **mm * self.px_per_mm <= 140.0;
        let Some(mm) = lengths.iter().rev().find(fits) else {
            return;
        };
        let right = x + mm * self.px_per_mm;
        let bar = [
            [[x, y], [right, y]],
            [[x, y - 3.0], [x, y + 3.0]],
            [[right, y - 3.0], [right, y + 3.0]],
        ];
        canvas.lines(bar.iter().map(<[Point; 2]>::as_slice), QUIET, 1.0);
        canvas.draw_text(&format!("{mm} mm"), [right + 8.0, y + 4.0], 8.0, QUIET);
    }
}

/// Draws title and caption at the top of a picture.
pub(super) fn draw_head(canvas: &mut Canvas, title: &str, caption: &str, width: f64) {
    let room = width - 2.0 * MARGIN;
    let title = truncate_to_width(title, 15.0, room);
    canvas.draw_text(&title, [MARGIN, MARGIN + 16.0], 15.0, INK);
    let caption = truncate_to_width(caption, 9.0, room);
    canvas.draw_text(&caption, [MARGIN, MARGIN + 42.0], 9.0, QUIET);
}
