//! `plan.png`: the plan on the sheet, from the side, and over time.

use super::canvas::{
    AIR, BACKGROUND, Canvas, INK, PALE, PAPER, PixelArea, Point, QUIET, REFUSED, png, width_of,
};
use super::relief::draw_relief;
use super::sheet_transform::{HEAD, MARGIN, SheetTransform, ShownPart, draw_head};
use super::{PictureError, PlanView, PlannedStroke, TimeStrip, check_sheet};

const SIDE: f64 = 1000.0;
/// Height of each chart next to or below the sheet.
const CHART_HEIGHT: f64 = 84.0;
const CHART_GAP: f64 = 40.0;
const COLUMN: f64 = 300.0;
const FOOT: f64 = 40.0;

/// Maximum number of numbers: more would hide the drawing.
const NUMBERS_MAX: usize = 40;

/// Shortest stroke, in pixels, that gets a number unless it is the first or the last: a number would hide a shorter one.
const NUMBERED_PX_MIN: f64 = 48.0;

/// Maximum number of marks.
const MARKS_MAX: usize = 100;

/// Draws the plan view: at most 1,000 pixels on the longer side and 150 kB.
///
/// # Errors
/// The sheet has no valid size.
pub fn plan_png(view: &PlanView) -> Result<Vec<u8>, PictureError> {
    check_sheet(view.sheet_mm)?;
    let layout = PlanLayout::for_view(view);
    png(layout.width, layout.height, |canvas| {
        draw_head(canvas, &view.title, &view.caption, layout.width);
        draw_sheet(canvas, view, &layout.sheet);
        let foot = layout.sheet.area.bottom() + 22.0;
        layout.sheet.draw_scale_bar(canvas, [MARGIN, foot]);
        let mut areas = layout.charts.iter();
        if let Some(area) = areas.next().filter(|_| !view.side_mm.is_empty()) {
            draw_side_view(canvas, view, &layout.sheet.part, *area);
        }
        for (strip, area) in view.strips.iter().zip(areas) {
            draw_chart(canvas, strip, *area);
        }
    })
}

pub(super) struct PlanLayout {
    width: f64,
    height: f64,
    pub(super) sheet: SheetTransform,
    /// Area of the side view, then those of the strips.
    charts: Vec<PixelArea>,
}

/// Returns the pixel of `plan.png` (x right, y down) that shows a place on the sheet.
#[must_use]
pub fn pixel_of(view: &PlanView, at_mm: [f64; 2]) -> [f64; 2] {
    PlanLayout::for_view(view).sheet.place(at_mm)
}

impl PlanLayout {
    /// Places the charts next to the sheet, or below it if the sheet is much wider than high.
    pub(super) fn for_view(view: &PlanView) -> Self {
        let charts = 1 + view.strips.len().min(4);
        let charts_height = charts as f64 * (CHART_HEIGHT + CHART_GAP);
        let drawn = view.strokes.iter().flat_map(|s| &s.line.points_mm);
        let part = ShownPart::around(view.sheet_mm, drawn);
        let is_wide = part.size_mm[0] > 1.8 * part.size_mm[1];
        let room = if is_wide {
            [SIDE - 2.0 * MARGIN, SIDE - HEAD - FOOT - charts_height]
        } else {
            [SIDE - 3.0 * MARGIN - COLUMN, SIDE - HEAD - FOOT - MARGIN]
        };
        let sheet = SheetTransform::fit(part, [MARGIN, HEAD], room[0], room[1].max(200.0));
        let below = HEAD + sheet.area.height + FOOT;
        let (x, y, width) = if is_wide {
            (MARGIN, below, SIDE - 2.0 * MARGIN)
        } else {
            (2.0 * MARGIN + sheet.area.width, HEAD, COLUMN)
        };
        let bottom = if is_wide {
            below + charts_height
        } else {
            below.max(HEAD + charts_height)
        };
        Self {
            width: x + width + MARGIN,
            height: bottom.min(SIDE),
            sheet,
            charts: chart_areas(x, y, width, charts),
        }
    }
}

fn chart_areas(x: f64, y: f64, width: f64, count: usize) -> Vec<PixelArea> {
    let tops = (0..count).map(|index| y + 14.0 + index as f64 * (CHART_HEIGHT + CHART_GAP));
    tops.map(|top| PixelArea::new([x, top], [width, CHART_HEIGHT]))
        .collect()
}

fn draw_sheet(canvas: &mut Canvas, view: &PlanView, sheet: &SheetTransform) {
    sheet.draw(canvas);
    if let Some(relief) = &view.relief {
        draw_relief(canvas, relief, sheet);
    }
    draw_paper(canvas, view, sheet);
    sheet.clip(canvas);
    let travels: Vec<Vec<Point>> = view.travels_mm.iter().map(|p| sheet.path(p)).collect();
    canvas.lines(travels.iter().map(Vec::as_slice), AIR, 0.8);
    for stroke in view.strokes.iter().filter(|stroke| !stroke.is_refused) {
        let width = sheet.width(stroke.line.width_mm);
        let path = sheet.path(&stroke.line.points_mm);
        canvas.draw_line(&path, stroke.line.colour, width);
    }
    // Refused strokes are drawn last and wide, so that they are not overlooked.
    for stroke in view.strokes.iter().filter(|stroke| stroke.is_refused) {
        let width = sheet.width(stroke.line.width_mm).max(3.0);
        canvas.draw_line(&sheet.path(&stroke.line.points_mm), REFUSED, width);
    }
    canvas.clip_to(None);
    draw_numbers(canvas, &strokes_to_number(&view.strokes, sheet), sheet);
    draw_marks(canvas, view, sheet);
}

/// Draws the paper as the white part of what is shown, where more than the paper is.
fn draw_paper(canvas: &mut Canvas, view: &PlanView, sheet: &SheetTransform) {
    let Some([low, high]) = view.paper_mm else {
        return;
    };
    let ([left, bottom], [right, top]) = (sheet.place(low), sheet.place(high));
    let paper = PixelArea::new([left, top], [right - left, bottom - top]);
    canvas.fill(sheet.area, BACKGROUND);
    canvas.fill(paper, PAPER);
    canvas.frame(paper, QUIET);
}

/// Draws a ring at each place that a rule refuses. Places outside the picture are shown at its edge.
fn draw_marks(canvas: &mut Canvas, view: &PlanView, sheet: &SheetTransform) {
    let area = sheet.area;
    for mark in view.marks_mm.iter().take(MARKS_MAX) {
        let [x, y] = sheet.place(*mark);
        if !(x.is_finite() && y.is_finite()) {
            continue;
        }
        let x = x.clamp(area.x - 12.0, area.right() + 12.0);
        let y = y.clamp(area.y - 12.0, area.bottom() + 12.0);
        let ring = (0..=24_u32).map(|n| {
            let (sin, cos) = (f64::from(n) / 24.0 * std::f64::consts::TAU).sin_cos();
            [x + 7.0 * cos, y + 7.0 * sin]
        });
        canvas.draw_line(&ring.collect::<Vec<_>>(), REFUSED, 2.0);
    }
}

/// Returns the strokes that have room for a number: the longest, and the first and the last.
fn strokes_to_number<'v>(
    strokes: &'v [PlannedStroke],
    sheet: &SheetTransform,
) -> Vec<&'v PlannedStroke> {
    let length_px = |stroke: &PlannedStroke| {
        let points = &stroke.line.points_mm;
        let steps = points.iter().zip(points.iter().skip(1));
        let length_mm: f64 = steps
            .map(|([ax, ay], [bx, by])| (bx - ax).hypot(by - ay))
            .sum();
        length_mm * sheet.px_per_mm
    };
    let last = strokes.iter().filter_map(|stroke| stroke.order).max();
    let is_end = |stroke: &PlannedStroke| stroke.order == Some(1) || stroke.order == last;
    let ranked = |stroke: &'v PlannedStroke| {
        if is_end(stroke) {
            (f64::INFINITY, stroke)
        } else {
            (length_px(stroke), stroke)
        }
    };
    let ordered = strokes.iter().filter(|stroke| stroke.order.is_some());
    let long = ordered.map(ranked).filter(|(px, _)| *px >= NUMBERED_PX_MIN);
    let mut chosen: Vec<(f64, &PlannedStroke)> = long.collect();
    chosen.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    chosen.truncate(NUMBERS_MAX);
    chosen.into_iter().map(|(_, stroke)| stroke).collect()
}

/// Draws each number on a small disc where its stroke begins. A number that would cover another is left out.
fn draw_numbers(canvas: &mut Canvas, strokes: &[&PlannedStroke], sheet: &SheetTransform) {
    let mut occupied: Vec<Point> = Vec::new();
    for stroke in strokes {
        let (Some(order), Some(start)) = (stroke.order, stroke.line.points_mm.first()) else {
            continue;
        };
        let Some(at) = free_place(sheet.place(*start), &occupied) else {
            continue;
        };
        let colour = if stroke.is_refused {
            REFUSED
        } else {
            stroke.line.colour
        };
        let text = order.to_string();
        let width = (width_of(&text) - 0.26) * 6.5;
        canvas.disc(at, 8.4, colour);
        canvas.disc(at, 7.4, PAPER);
        canvas.draw_text(&text, [at[0] - width / 2.0, at[1] + 3.25], 6.5, INK);
        occupied.push(at);
    }
}

/// Returns a place near `start` that is clear of the occupied ones.
fn free_place(start: Point, occupied: &[Point]) -> Option<Point> {
    let is_free = |at: &Point| {
        let distance = |other: &Point| (other[0] - at[0]).hypot(other[1] - at[1]);
        occupied.iter().all(|other| distance(other) >= 17.0)
    };
    let mut candidates = (0..24_u32).map(|step| {
        let angle = f64::from(step) * 0.785;
        let radius = 12.0 + f64::from(step / 8) * 14.0;
        [
            start[0] + radius * angle.cos(),
            start[1] - radius * angle.sin(),
        ]
    });
    candidates.find(is_free)
}

fn bounds(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let finite = values.filter(|value| value.is_finite());
    let ranges = finite.map(|value| [value; 2]);
    ranges.reduce(|[low, high], [value, _]| [low.min(value), high.max(value)])
}

/// Draws a chart's frame, with its name on the left and its range on the right.
fn draw_frame(canvas: &mut Canvas, area: PixelArea, name: &str, range: &str) {
    canvas.draw_text(name, [area.x, area.y - 7.0], 8.0, INK);
    let width = width_of(range) * 7.5;
    let at = [area.right() - width, area.y - 7.0];
    canvas.draw_text(range, at, 7.5, QUIET);
    canvas.fill(area, PAPER);
    canvas.frame(area, PALE);
}

/// Draws the tip's height along x, as seen from the sheet's lower edge.
fn draw_side_view(canvas: &mut Canvas, view: &PlanView, part: &ShownPart, area: PixelArea) {
    let heights = view.side_mm.iter().map(|[_, z]| *z);
    let [low, high] = bounds(heights).unwrap_or([0.0, 1.0]);
    let (low, high) = (low.min(0.0), high.max(low + 0.5));
    let range = format!("{low:.1} to {high:.1}");
    draw_frame(canvas, area, "side view: tip height, mm", &range);
    let ([start, _], [length, _]) = (part.low_mm, part.size_mm);
    let place = |[x, z]: &Point| {
        let x = ((x - start) / length).clamp(0.0, 1.0);
        [area.x + x * area.width, level(*z, low, high, area)]
    };
    let points: Vec<Point> = view.side_mm.iter().map(place).collect();
    canvas.draw_line(&points, AIR, 1.0);
    let sheet_y = level(0.0, low, high, area);
    canvas.draw_line(&[[area.x, sheet_y], [area.right(), sheet_y]], INK, 1.6);
}

/// Returns the y of a value in a chart.
fn level(value: f64, low: f64, high: f64, area: PixelArea) -> f64 {
    let fraction = (value - low) / (high - low).max(1e-9);
    area.bottom() - 8.0 - fraction * (area.height - 16.0)
}

/// Draws a strip over time, with its limit, if it has one, in red.
fn draw_chart(canvas: &mut Canvas, strip: &TimeStrip, area: PixelArea) {
    let values = strip.samples.iter().map(|[_, value]| *value);
    let measured = bounds(values).unwrap_or([0.0, 0.0]);
    let range = format!("{:.2} to {:.2}", measured[0], measured[1]);
    draw_frame(canvas, area, &strip.name, &range);
    let values = [measured[0], measured[1], 0.0].into_iter();
    let shown = bounds(values.chain(strip.limit));
    let [low, high] = shown.unwrap_or([0.0, 1.0]);
    let high = if high - low < 1e-9 { low + 1.0 } else { high };
    let times = bounds(strip.samples.iter().map(|[time, _]| *time));
    let [first, last] = times.unwrap_or([0.0, 1.0]);
    let along = |time: f64| area.x + (time - first) / (last - first).max(1e-9) * area.width;
    let points: Vec<Point> = thin_out(&strip.samples, area.width)
        .into_iter()
        .map(|[time, value]| [along(time), level(value, low, high, area)])
        .collect();
    fill_to(canvas, &points, level(0.0, low, high, area));
    canvas.draw_line(&points, INK, 1.2);
    if let Some(limit) = strip.limit.filter(|limit| limit.is_finite()) {
        let y = level(limit, low, high, area);
        canvas.draw_line(&[[area.x, y], [area.right(), y]], REFUSED, 1.0);
        label_limit(canvas, limit, y, area);
    }
    draw_axes(canvas, area, [low, high], [first, last]);
}

/// Writes the lowest and the highest value beside their heights, and the times of both ends below.
fn draw_axes(canvas: &mut Canvas, area: PixelArea, [low, high]: [f64; 2], [first, last]: [f64; 2]) {
    const HEIGHT: f64 = 7.0;
    for value in [low, high] {
        let y = level(value, low, high, area);
        canvas.draw_line(&[[area.x - 4.0, y], [area.x, y]], QUIET, 1.0);
        let text = format!("{}", (value * 10.0).round() / 10.0);
        let x = area.x - 6.0 - width_of(&text) * HEIGHT;
        canvas.draw_text(&text, [x, y + HEIGHT / 2.0], HEIGHT, QUIET);
    }
    let below = area.bottom() + 12.0;
    canvas.draw_text(&format!("{first:.1} s"), [area.x, below], HEIGHT, QUIET);
    let end = format!("{last:.1} s");
    let x = area.right() - width_of(&end) * HEIGHT;
    canvas.draw_text(&end, [x, below], HEIGHT, QUIET);
}

/// Labels a limit at the right end of its line, above it if there is room.
fn label_limit(canvas: &mut Canvas, limit: f64, y: f64, area: PixelArea) {
    const HEIGHT: f64 = 7.0;
    let text = format!("limit {}", (limit * 100.0).round() / 100.0);
    let width = width_of(&text) * HEIGHT;
    let has_room = y - HEIGHT - 6.0 > area.y;
    let baseline = y + if has_room { -4.0 } else { HEIGHT + 5.0 };
    let x = area.right() - width - 6.0;
    let corner = [x - 3.0, baseline - HEIGHT - 2.0];
    canvas.fill(PixelArea::new(corner, [width + 6.0, HEIGHT + 4.0]), PAPER);
    canvas.draw_text(&text, [x, baseline], HEIGHT, REFUSED);
}

/// Fills the area between a curve and a floor.
fn fill_to(canvas: &mut Canvas, points: &[Point], floor: f64) {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return;
    };
    let mut outline = vec![[first[0], floor]];
    outline.extend_from_slice(points);
    outline.push([last[0], floor]);
    canvas.polygon(&outline, [233, 239, 244]);
}

/// Keeps the lowest and the highest sample of each pixel, so that no visible detail is lost.
fn thin_out(samples: &[Point], width_px: f64) -> Vec<Point> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few hundred pixels"
    )]
    let buckets = width_px.clamp(1.0, 2000.0) as usize;
    let size = samples.len().div_ceil(buckets).max(1);
    if size <= 2 {
        return samples.to_vec();
    }
    let by_value = |a: &&Point, b: &&Point| a[1].total_cmp(&b[1]);
    let mut kept = Vec::new();
    for bucket in samples.chunks(size) {
        let low = bucket.iter().min_by(by_value);
        let high = bucket.iter().max_by(by_value);
        let mut pair: Vec<Point> = low.into_iter().chain(high).copied().collect();
        pair.sort_by(|a, b| a[0].total_cmp(&b[0]));
        kept.extend(pair);
    }
    kept
}
