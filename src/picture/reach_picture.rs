//! `reach.png`: where a sheet may lie, by how far the pen must lean there.

use super::canvas::{AIR, Canvas, INK, PAPER, PixelArea, Point, QUIET, REFUSED, png, width_of};
use super::sheet_transform::{HEAD, MARGIN, draw_head};
use super::{PictureError, ReachView, Rgb, check_sheet};

const MAP_PX: f64 = 620.0;
/// Room on the left and below for the axes.
const AXIS: f64 = 34.0;
/// Smallest distance between the ticks of an axis, in pixels.
const TICK_PX_MIN: f64 = 56.0;
const LEGEND: f64 = 250.0;
const ROW: f64 = 26.0;
/// Colours beyond the last of [`BANDS_DEG`] but within the pen's cone, and beyond the cone.
const WITHIN: Rgb = [232, 214, 150];
const BEYOND: Rgb = [226, 160, 124];
/// Largest tilt, in degrees, and colour of each band.
const BANDS_DEG: [(f64, Rgb); 3] = [
    (0.5, [104, 168, 120]),
    (5.0, [152, 199, 150]),
    (10.0, [200, 222, 170]),
];
const OUT_OF_REACH: Rgb = [226, 224, 219];

/// Draws the reach view: at most 1,000 pixels on the longer side and 150 kB.
///
/// # Errors
/// The sheet has no valid size, or the map has no points.
pub fn reach_png(view: &ReachView) -> Result<Vec<u8>, PictureError> {
    check_sheet(view.sheet_mm)?;
    let [columns, rows] = view.size.map(to_f64);
    if columns < 1.0 || rows < 1.0 || view.step_mm <= 0.0 {
        return Err(PictureError::Encoding("the map has no points".to_owned()));
    }
    let px_per_mm = MAP_PX / (columns.max(rows) * view.step_mm);
    let [width, height] = [columns, rows].map(|count| count * view.step_mm * px_per_mm);
    let map = ReachMapLayout {
        view,
        px_per_mm,
        area: PixelArea::new([MARGIN + AXIS, HEAD], [width, height]),
    };
    let picture = [
        AXIS + width + LEGEND + 3.0 * MARGIN,
        HEAD + height.max(9.0 * ROW) + AXIS + MARGIN,
    ];
    png(picture[0], picture[1], |canvas| {
        draw_head(canvas, &view.title, &view.caption, picture[0]);
        map.draw_spots(canvas);
        map.draw_sheet(canvas, [0.0, 0.0], INK);
        if let Some(move_mm) = view.move_mm {
            map.draw_sheet(canvas, move_mm, AIR);
        }
        if let Some(foot_mm) = view.foot_mm {
            canvas.disc(map.place(foot_mm), 6.0, INK);
        }
        map.draw_axes(canvas);
        map.draw_legend(canvas, MARGIN + AXIS + width + MARGIN);
    })
}

fn to_f64(count: usize) -> f64 {
    count as f64
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is not below a length.
fn round_up_mm(least_mm: f64) -> f64 {
    let power = 10_f64.powf(least_mm.max(1e-3).log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|step| step * power);
    let fits = steps.into_iter().find(|step| *step >= least_mm);
    fits.unwrap_or(10.0 * power)
}

/// Returns the multiples of a step within a range, at most 100 of them.
fn multiples(step: f64, low: f64, high: f64) -> impl Iterator<Item = f64> {
    let first = (low / step).ceil();
    let multiples = (0..100_u32).map(move |index| (first + f64::from(index)) * step);
    multiples.take_while(move |at| *at <= high)
}

struct ReachMapLayout<'a> {
    view: &'a ReachView,
    px_per_mm: f64,
    area: PixelArea,
}

impl ReachMapLayout<'_> {
    fn place(&self, [x, y]: Point) -> Point {
        let [low_x, low_y] = self.view.low_mm;
        let half = self.view.step_mm / 2.0;
        [
            self.area.x + (x - low_x + half) * self.px_per_mm,
            self.area.bottom() - (y - low_y + half) * self.px_per_mm,
        ]
    }

    fn draw_spots(&self, canvas: &mut Canvas) {
        canvas.fill(self.area, OUT_OF_REACH);
        let columns = self.view.size[0].max(1);
        let step = self.view.step_mm;
        for (index, tilt) in self.view.tilts_deg.iter().enumerate() {
            let Some(tilt) = tilt else { continue };
            let at = [to_f64(index % columns), to_f64(index / columns)];
            let [x, y] = self.place([
                self.view.low_mm[0] + (at[0] - 0.5) * step,
                self.view.low_mm[1] + (at[1] + 0.5) * step,
            ]);
            let size = step * self.px_per_mm;
            let spot = PixelArea::new([x, y], [size + 0.5; 2]);
            canvas.fill(spot, self.colour(*tilt));
        }
    }

    /// Draws ticks along the lower and the left edge, in the sheet's millimetres from its lower left corner.
    fn draw_axes(&self, canvas: &mut Canvas) {
        let (x, bottom) = (self.area.x, self.area.bottom());
        let tick_mm = round_up_mm(TICK_PX_MIN / self.px_per_mm);
        let [low, high] = self.bounds_mm();
        for at_mm in multiples(tick_mm, low[0], high[0]) {
            let [px, _] = self.place([at_mm, 0.0]);
            canvas.draw_line(&[[px, bottom], [px, bottom + 5.0]], QUIET, 1.0);
            let text = format!("{at_mm:.0}");
            let half = width_of(&text) * 4.0;
            canvas.draw_text(&text, [px - half, bottom + 17.0], 8.0, QUIET);
        }
        for at_mm in multiples(tick_mm, low[1], high[1]) {
            let [_, py] = self.place([0.0, at_mm]);
            canvas.draw_line(&[[x - 5.0, py], [x, py]], QUIET, 1.0);
            let text = format!("{at_mm:.0}");
            let left = x - 9.0 - width_of(&text) * 8.0;
            canvas.draw_text(&text, [left, py + 3.5], 8.0, QUIET);
        }
        canvas.draw_text("x and y of the sheet, mm", [x, bottom + 33.0], 8.0, QUIET);
        self.draw_scale_bar(canvas, [self.area.right(), bottom + 29.0], tick_mm);
    }

    /// Draws a bar of a length in millimetres, whose label ends at a place.
    fn draw_scale_bar(&self, canvas: &mut Canvas, [right, y]: Point, length_mm: f64) {
        let text = format!("{length_mm:.0} mm");
        let right = right - width_of(&text) * 8.0 - 8.0;
        let left = right - length_mm * self.px_per_mm;
        for [from, to] in [
            [[left, y], [right, y]],
            [[left, y - 4.0], [left, y + 4.0]],
            [[right, y - 4.0], [right, y + 4.0]],
        ] {
            canvas.draw_line(&[from, to], INK, 1.5);
        }
        canvas.draw_text(&text, [right + 8.0, y + 4.0], 8.0, INK);
    }

    /// Returns the corners of the map in the sheet's millimetres.
    fn bounds_mm(&self) -> [Point; 2] {
        let [low_x, low_y] = self.view.low_mm;
        let half = self.view.step_mm / 2.0;
        let low = [low_x - half, low_y - half];
        let [width, height] = [self.area.width, self.area.height].map(|px| px / self.px_per_mm);
        [low, [low[0] + width, low[1] + height]]
    }

    fn colour(&self, tilt_deg: f64) -> Rgb {
        let band = BANDS_DEG.iter().find(|(most, _)| tilt_deg <= *most);
        match band {
            _ if tilt_deg > self.view.cone_deg => BEYOND,
            Some((_, colour)) => *colour,
            None => WITHIN,
        }
    }

    fn draw_sheet(&self, canvas: &mut Canvas, [x, y]: Point, rgb: Rgb) {
        let [width, height] = self.view.sheet_mm;
        let (right, top) = (x + width, y + height);
        let corners = [[x, y], [right, y], [right, top], [x, top], [x, y]];
        let outline = corners.map(|corner| self.place(corner));
        canvas.draw_line(&outline, PAPER, 4.5);
        canvas.draw_line(&outline, rgb, 2.5);
    }

    fn draw_legend(&self, canvas: &mut Canvas, x: f64) {
        let mut y = self.area.y + 8.0;
        let cone_deg = self.view.cone_deg;
        let bands = BANDS_DEG.iter().filter(|(most, _)| *most < cone_deg);
        let rows = bands
            .map(|(most, colour)| (*colour, format!("leans up to {most} deg")))
            .chain([
                (WITHIN, format!("leans up to its cone, {cone_deg:.0} deg")),
                (BEYOND, "leans further (refused)".to_owned()),
                (OUT_OF_REACH, "out of reach".to_owned()),
            ]);
        for (colour, text) in rows {
            let key = PixelArea::new([x, y - 9.0], [16.0, 12.0]);
            canvas.fill(key, colour);
            canvas.frame(key, QUIET);
            canvas.draw_text(&text, [x + 26.0, y], 9.0, INK);
            y += ROW;
        }
        let better = self
            .view
            .move_mm
            .map(|_| (AIR, "a better place of the sheet"));
        for (colour, text) in [(INK, "the present place of the sheet")]
            .into_iter()
            .chain(better)
        {
            canvas.draw_line(&[[x, y - 3.0], [x + 16.0, y - 3.0]], colour, 2.5);
            canvas.draw_text(text, [x + 26.0, y], 9.0, INK);
            y += ROW;
        }
        if self.view.foot_mm.is_some() {
            canvas.disc([x + 8.0, y - 3.0], 5.0, INK);
            canvas.draw_text("the arm's foot", [x + 26.0, y], 9.0, INK);
            y += ROW;
        }
        for line in &self.view.notes {
            let is_bad = line.starts_with("0 %");
            let colour = if is_bad { REFUSED } else { QUIET };
            canvas.draw_text(line, [x, y + 8.0], 9.0, colour);
            y += ROW * 0.8;
        }
    }
}
