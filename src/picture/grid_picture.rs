//! `sheet.png` with a grid: what lies on the sheet, for a caller that has to read places from it in millimetres.

use super::canvas::{Canvas, INK, PAPER, PixelArea, Point, QUIET, png, width_of};
use super::sheet_transform::{HEAD, MARGIN, SheetTransform, ShownPart, draw_head};
use super::{GridView, PictureError, Rgb, check_sheet};

/// Room for the numbers beside and below the sheet, in pixels.
const NUMBERS: f64 = 34.0;

/// Longest side of the sheet in pixels: whole pictures keep to 1,000.
const SHEET_MAX: f64 = 860.0;

const FINE: Rgb = [232, 236, 241];
const COARSE: Rgb = [188, 200, 213];
const TEXT_PX: f64 = 10.0;

/// Least distance of fine lines, and of numbers, in pixels.
const FINE_PX: f64 = 6.0;
const NUMBER_PX: f64 = 42.0;

/// Steps between lines, in millimetres.
const STEPS_MM: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];

/// Draws the grid view: at most 1,000 pixels on the longer side and 150 kB.
///
/// # Errors
/// The sheet has no valid size.
pub fn grid_png(view: &GridView<'_>) -> Result<Vec<u8>, PictureError> {
    check_sheet(view.sheet_mm)?;
    let part = ShownPart::around(view.sheet_mm, std::iter::empty());
    let corner = [MARGIN + NUMBERS, HEAD];
    let room = SHEET_MAX - HEAD;
    let sheet = SheetTransform::fit(part, corner, SHEET_MAX, room);
    let width = (corner[0] + sheet.area.width + MARGIN).max(560.0);
    let height = HEAD + sheet.area.height + NUMBERS + MARGIN / 2.0;
    png(width, height, |canvas| {
        draw_head(canvas, &view.title, &view.caption, width);
        canvas.fill(sheet.area, PAPER);
        if let Some((size_px, rgb)) = view.photo {
            canvas.photo(sheet.area, size_px, rgb);
        }
        let coarse_mm = step_mm(&sheet, NUMBER_PX);
        draw_lines(canvas, &sheet, step_mm(&sheet, FINE_PX), FINE);
        draw_lines(canvas, &sheet, coarse_mm, COARSE);
        for line in &view.ink {
            let width = sheet.width(line.width_mm);
            canvas.draw_line(&sheet.path(&line.points_mm), line.colour, width);
        }
        canvas.frame(sheet.area, QUIET);
        draw_numbers(canvas, &sheet, coarse_mm);
    })
}

/// Returns the least round step whose lines lie at least this far apart.
fn step_mm(sheet: &SheetTransform, least_px: f64) -> f64 {
    let mut steps = STEPS_MM.into_iter();
    let step = steps.find(|step| step * sheet.px_per_mm >= least_px);
    step.unwrap_or(5000.0)
}

/// Returns the multiples of a step from 0 to a length.
fn places(step_mm: f64, length_mm: f64) -> impl Iterator<Item = f64> {
    let count = (length_mm / step_mm + 1e-9).floor();
    (0_u32..)
        .map(f64::from)
        .take_while(move |at| *at <= count)
        .map(move |at| at * step_mm)
}

fn draw_lines(canvas: &mut Canvas, sheet: &SheetTransform, step_mm: f64, colour: Rgb) {
    let [width, height] = sheet.part.size_mm;
    let upright = places(step_mm, width).map(|x| [[x, 0.0], [x, height]]);
    let level = places(step_mm, height).map(|y| [[0.0, y], [width, y]]);
    let lines: Vec<Vec<Point>> = upright.chain(level).map(|ends| sheet.path(&ends)).collect();
    canvas.lines(lines.iter().map(Vec::as_slice), colour, 1.0);
}

/// Writes x below the sheet and y beside it, from the lower left corner, the last with its unit.
fn draw_numbers(canvas: &mut Canvas, sheet: &SheetTransform, step_mm: f64) {
    let [width, height] = sheet.part.size_mm;
    let PixelArea { x: left, .. } = sheet.area;
    let text_width = |text: &str| width_of(text) * TEXT_PX;
    for x_mm in places(step_mm, width) {
        let text = format!("{x_mm:.0}");
        let [x, y] = sheet.place([x_mm, 0.0]);
        let at = [x - text_width(&text) / 2.0, y + TEXT_PX + 8.0];
        canvas.draw_text(&text, at, TEXT_PX, INK);
    }
    for y_mm in places(step_mm, height) {
        let text = format!("{y_mm:.0}");
        let [_, y] = sheet.place([0.0, y_mm]);
        let at = [left - 8.0 - text_width(&text), y + TEXT_PX / 2.0];
        canvas.draw_text(&text, at, TEXT_PX, INK);
    }
    let unit = "mm; x to the right, y up";
    let at = [left, sheet.area.bottom() + 2.0 * TEXT_PX + 16.0];
    canvas.draw_text(unit, at, TEXT_PX, QUIET);
}
