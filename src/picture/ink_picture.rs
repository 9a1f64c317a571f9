//! `drawn.png`: what the pen drew, over the design in grey.

use super::canvas::{PALE, Point, png};
use super::relief::draw_relief;
use super::sheet_transform::{HEAD, MARGIN, SheetTransform, ShownPart, draw_head};
use super::{InkView, PictureError, check_sheet};

const WIDTH: f64 = 1000.0;
const HEIGHT_MAX: f64 = 1000.0;
/// Height of the scale bar below the sheet.
const FOOT: f64 = 44.0;

/// Pixels in a millimetre of a picture that is shown in its own size, at 96 to the inch.
const PX_PER_MM: f64 = 96.0 / 25.4;

/// Extra width of the design's lines, so that they show where the ink covers them.
const DESIGN_EXTRA_PX: f64 = 6.0;

/// Draws the ink view: at most 1,000 pixels on the longer side and 150 kB.
///
/// # Errors
/// The sheet has no valid size.
pub fn ink_png(view: &InkView) -> Result<Vec<u8>, PictureError> {
    check_sheet(view.sheet_mm)?;
    let part = shown_part(view);
    let room = [WIDTH - 2.0 * MARGIN, HEIGHT_MAX - HEAD - FOOT];
    let sheet = SheetTransform::fit(part, [MARGIN, HEAD], room[0], room[1]);
    let width = (sheet.area.width + 2.0 * MARGIN).max(560.0);
    let height = HEAD + sheet.area.height + FOOT;
    png(width, height, |canvas| {
        let times = sheet.px_per_mm / PX_PER_MM;
        let caption = format!("{}; enlarged {times:.1} times", view.caption);
        draw_head(canvas, &view.title, &caption, width);
        sheet.draw(canvas);
        if let Some(relief) = &view.relief {
            draw_relief(canvas, relief, &sheet);
        }
        sheet.clip(canvas);
        let design: Vec<Vec<Point>> = view.design_mm.iter().map(|p| sheet.path(p)).collect();
        let widths = view.ink.iter().map(|line| sheet.width(line.width_mm));
        let widest = widths.fold(1.0, f64::max);
        canvas.lines(
            design.iter().map(Vec::as_slice),
            PALE,
            widest + DESIGN_EXTRA_PX,
        );
        for line in &view.ink {
            let width = sheet.width(line.width_mm);
            canvas.draw_line(&sheet.path(&line.points_mm), line.colour, width);
        }
        canvas.clip_to(None);
        sheet.draw_scale_bar(canvas, [MARGIN, height - 20.0]);
    })
}

/// Returns the part around the design, so that two drawings of it compare; around design and ink if ink lies elsewhere.
fn shown_part(view: &InkView) -> ShownPart {
    let design = || view.design_mm.iter().flatten();
    let ink = || view.ink.iter().flat_map(|line| &line.points_mm);
    let part = ShownPart::around(view.sheet_mm, design());
    if design().next().is_some() && ink().all(|point| part.shows(*point)) {
        part
    } else {
        ShownPart::around(view.sheet_mm, design().chain(ink()))
    }
}
