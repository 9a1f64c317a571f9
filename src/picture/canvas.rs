//! Canvas for pictures: lines, text and frames in pixels, y down.

use std::io::Write;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Mask, Paint, Path, PathBuilder, Pixmap,
    PremultipliedColorU8, Rect, Stroke, Transform,
};

use design::letters;

use super::{BYTES_MAX, PictureError, Rgb, SIDE_MAX_PX};

pub(super) const PAPER: Rgb = [255, 255, 255];
pub(super) const BACKGROUND: Rgb = [246, 245, 242];
pub(super) const INK: Rgb = [38, 38, 46];
pub(super) const QUIET: Rgb = [132, 132, 140];
pub(super) const PALE: Rgb = [214, 213, 208];
pub(super) const AIR: Rgb = [150, 184, 214];
pub const REFUSED: Rgb = [214, 40, 40];

/// Maximum number of points drawn in a picture, and least distance in pixels between two that are: nearer ones make no visible
/// difference, and would take the place of other lines.
const POINTS_MAX: usize = 400_000;
const STEP_PX: f64 = 0.3;

/// Maximum number of attempts, each smaller, to keep the file small enough.
const ATTEMPTS_MAX: u32 = 4;

pub(super) type Point = [f64; 2];

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PixelArea {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl PixelArea {
    /// Creates a rectangle with this upper left corner.
    pub(super) fn new([x, y]: Point, [width, height]: [f64; 2]) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }

    fn rect(&self) -> Option<Rect> {
        let [x, y, width, height] = [self.x, self.y, self.width, self.height].map(f32_of);
        Rect::from_xywh(x, y, width, height)
    }
}

pub(super) struct Canvas {
    pixels: Pixmap,
    /// Pixels per unit of the picture.
    scale: f64,
    points_remaining: usize,
    /// Mask of the drawable region; `None` for everything.
    clip: Option<Mask>,
}

/// Held while a picture is drawn, which takes megabytes: there may be dozens of callers.
static DRAWING: Mutex<()> = Mutex::new(());

/// Draws at full size, and smaller if the file would be too large; one picture at a time.
///
/// Draws on a separate thread: the allocator keeps each thread's peak memory, so one thread keeps it only once,
/// regardless of the number of callers.
pub(super) fn png(
    width: f64,
    height: f64,
    draw: impl Fn(&mut Canvas) + Sync,
) -> Result<Vec<u8>, PictureError> {
    let _guard = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
    let draw_png = || draw_within_size(width, height, &draw);
    std::thread::scope(|scope| {
        let painter = std::thread::Builder::new().name("painter".to_owned());
        match painter.spawn_scoped(scope, draw_png) {
            Ok(painter) => painter
                .join()
                .unwrap_or_else(|_| Err(PictureError::Encoding("its thread failed".to_owned()))),
            // Without a new thread, the calling thread draws.
            Err(_) => draw_png(),
        }
    })
}

fn draw_within_size(
    width: f64,
    height: f64,
    draw: &impl Fn(&mut Canvas),
) -> Result<Vec<u8>, PictureError> {
    let mut scale = 1.0;
    for _ in 0..ATTEMPTS_MAX {
        let bytes = draw_at_scale(width, height, scale, draw)?;
        if bytes.len() <= BYTES_MAX {
            return Ok(bytes);
        }
        scale *= 0.7;
    }
    let reason = format!("it has more than {BYTES_MAX} bytes even when it is small");
    Err(PictureError::Encoding(reason))
}

fn draw_at_scale(
    width: f64,
    height: f64,
    scale: f64,
    draw: &impl Fn(&mut Canvas),
) -> Result<Vec<u8>, PictureError> {
    let side = |length: f64| {
        let px = (length * scale).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and the largest side"
        )]
        let px = px.clamp(1.0, f64::from(SIDE_MAX_PX)) as u32;
        px
    };
    let pixels = Pixmap::new(side(width), side(height));
    let mut pixels =
        pixels.ok_or_else(|| PictureError::Encoding("not enough memory".to_owned()))?;
    pixels.fill(colour(BACKGROUND));
    let mut canvas = Canvas {
        pixels,
        scale,
        points_remaining: POINTS_MAX,
        clip: None,
    };
    draw(&mut canvas);
    let bytes = encode_png(&canvas.pixels);
    bytes.map_err(|error| PictureError::Encoding(error.to_string()))
}

/// Encodes row by row, which saves a copy of all pixels. The background is opaque, so no colour is premultiplied.
fn encode_png(pixels: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    let mut rows = writer.stream_writer()?;
    let mut line = Vec::new();
    for row in pixels.pixels().chunks(pixels.width() as usize) {
        line.clear();
        for pixel in row {
            line.extend_from_slice(&[pixel.red(), pixel.green(), pixel.blue()]);
        }
        rows.write_all(&line)?;
    }
    rows.finish()?;
    writer.finish()?;
    Ok(bytes)
}

fn colour([red, green, blue]: Rgb) -> Color {
    Color::from_rgba8(red, green, blue, 255)
}

fn paint(rgb: Rgb) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color(colour(rgb));
    paint.anti_alias = true;
    paint
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "pixels need no more than f32"
)]
fn f32_of(value: f64) -> f32 {
    value.clamp(-1e6, 1e6) as f32
}

impl Canvas {
    fn transform(&self) -> Transform {
        Transform::from_scale(f32_of(self.scale), f32_of(self.scale))
    }

    /// Restricts lines to `area` from now on; `None` lifts the restriction.
    pub(super) fn clip_to(&mut self, area: Option<PixelArea>) {
        self.clip = area.and_then(|area| {
            let path = PathBuilder::from_rect(area.rect()?);
            let mut mask = Mask::new(self.pixels.width(), self.pixels.height())?;
            mask.fill_path(&path, FillRule::Winding, true, self.transform());
            Some(mask)
        });
    }

    /// Draws a filled rectangle.
    pub(super) fn fill(&mut self, area: PixelArea, rgb: Rgb) {
        if let Some(rect) = area.rect() {
            let transform = self.transform();
            self.pixels.fill_rect(rect, &paint(rgb), transform, None);
        }
    }

    /// Draws a photograph scaled to `area`. Each pixel is the mean of the photograph's pixels under it, in few
    /// colours: invisible noise would make the file ten times as large.
    pub(super) fn photo(&mut self, area: PixelArea, [width, height]: [u32; 2], rgb: &[u8]) {
        let width_px = self.pixels.width() as usize;
        let column_span = PixelSpan::new(area.x, area.width, self.scale, width);
        let row_span = PixelSpan::new(area.y, area.height, self.scale, height);
        let rows = self.pixels.pixels_mut().chunks_mut(width_px.max(1));
        let photo = PhotoPixels {
            width: width as usize,
            rgb,
        };
        for (y, row) in rows.enumerate().take(row_span.end).skip(row_span.first) {
            let photo_rows = row_span.covered(y - row_span.first);
            for (x, pixel) in row
                .iter_mut()
                .enumerate()
                .take(column_span.end)
                .skip(column_span.first)
            {
                let [r, g, b] = photo.mean(
                    column_span.covered(x - column_span.first),
                    photo_rows.clone(),
                );
                if let Some(colour) = PremultipliedColorU8::from_rgba(r, g, b, 255) {
                    *pixel = colour;
                }
            }
        }
    }

    /// Draws a thin frame around a rectangle.
    pub(super) fn frame(&mut self, area: PixelArea, rgb: Rgb) {
        let (x, y, right, bottom) = (area.x, area.y, area.right(), area.bottom());
        let corners = [[x, y], [right, y], [right, bottom], [x, bottom], [x, y]];
        self.draw_line(&corners, rgb, 1.0);
    }

    /// Draws a line with round ends. Points that are not finite are skipped.
    pub(super) fn draw_line(&mut self, points: &[Point], rgb: Rgb, width: f64) {
        self.lines(std::iter::once(points), rgb, width);
    }

    /// Draws many lines at once.
    pub(super) fn lines<'p>(
        &mut self,
        lines: impl Iterator<Item = &'p [Point]>,
        rgb: Rgb,
        width: f64,
    ) {
        let Some(path) = self.path(lines) else { return };
        let stroke = Stroke {
            width: f32_of(width),
            line_cap: LineCap::Round,
            line_join: LineJoin::Round,
            ..Stroke::default()
        };
        let transform = self.transform();
        self.pixels
            .stroke_path(&path, &paint(rgb), &stroke, transform, self.clip.as_ref());
    }

    /// Draws a filled polygon.
    pub(super) fn polygon(&mut self, points: &[Point], rgb: Rgb) {
        let path = self.path(std::iter::once(points));
        self.fill_path(path, rgb);
    }

    /// Draws a filled disc.
    pub(super) fn disc(&mut self, [x, y]: Point, radius: f64, rgb: Rgb) {
        let path = PathBuilder::from_circle(f32_of(x), f32_of(y), f32_of(radius));
        self.fill_path(path, rgb);
    }

    fn fill_path(&mut self, path: Option<Path>, rgb: Rgb) {
        if let Some(path) = path {
            let (rule, transform) = (FillRule::Winding, self.transform());
            self.pixels
                .fill_path(&path, &paint(rgb), rule, transform, None);
        }
    }

    fn path<'p>(&mut self, lines: impl Iterator<Item = &'p [Point]>) -> Option<Path> {
        let mut path = PathBuilder::new();
        for line in lines {
            let finite = line.iter().filter(|[x, y]| x.is_finite() && y.is_finite());
            let mut finite = finite.peekable();
            let mut last: Option<Point> = None;
            while let Some(&[x, y]) = finite.next() {
                let is_near = |[from_x, from_y]: Point| (x - from_x).hypot(y - from_y) < STEP_PX;
                if last.is_some_and(is_near) && finite.peek().is_some() {
                    continue;
                }
                self.points_remaining = self.points_remaining.checked_sub(1)?;
                match last {
                    None => path.move_to(f32_of(x), f32_of(y)),
                    Some(_) => path.line_to(f32_of(x), f32_of(y)),
                }
                last = Some([x, y]);
            }
        }
        path.finish()
    }

    /// Draws a text whose baseline starts at a point. Characters that the font lacks are left out.
    pub(super) fn draw_text(&mut self, text: &str, [x, y]: Point, height: f64, rgb: Rgb) {
        let line = lay_out(text);
        let place = |[px, py]: &Point| [x + px * height, y - py * height];
        let strokes = line.strokes.iter();
        let strokes: Vec<Vec<Point>> = strokes.map(|s| s.iter().map(place).collect()).collect();
        let weight = (height * 0.13).max(1.0);
        self.lines(strokes.iter().map(Vec::as_slice), rgb, weight);
    }
}

/// Pixels of the canvas along one side, and the number of a photograph's pixels under each.
struct PixelSpan {
    first: usize,
    end: usize,
    photo_px_per_px: f64,
    photo_px: usize,
}

impl PixelSpan {
    fn new(start: f64, length: f64, scale: f64, photo_px: u32) -> Self {
        Self {
            first: round_px(start * scale),
            end: round_px((start + length) * scale),
            photo_px_per_px: f64::from(photo_px) / (length * scale).max(1.0),
            photo_px: photo_px as usize,
        }
    }

    /// Returns the photograph's pixels under a pixel of the canvas.
    fn covered(&self, index: usize) -> Range<usize> {
        let edge = |index: f64| round_px(index * self.photo_px_per_px);
        let first = edge(index as f64).min(self.photo_px.saturating_sub(1));
        let end = edge(index as f64 + 1.0).clamp(first + 1, self.photo_px.max(first + 1));
        first..end
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and below 0 is nothing"
)]
fn round_px(value: f64) -> usize {
    value.max(0.0).round() as usize
}

/// A photograph's pixels.
struct PhotoPixels<'a> {
    width: usize,
    rgb: &'a [u8],
}

impl PhotoPixels<'_> {
    /// Returns the mean colour of a part, in steps of eight.
    fn mean(&self, columns: Range<usize>, rows: Range<usize>) -> Rgb {
        let mut sum = [0_usize; 3];
        let mut count = 0_usize;
        for row in rows {
            let from = (row * self.width + columns.start) * 3;
            let part = self.rgb.get(from..from + columns.len() * 3);
            for pixel in part.unwrap_or_default().chunks_exact(3) {
                for (sum, byte) in sum.iter_mut().zip(pixel) {
                    *sum += usize::from(*byte);
                }
                count += 1;
            }
        }
        sum.map(|sum| {
            let mean = sum / count.max(1);
            u8::try_from((mean + 4) / 8 * 8).unwrap_or(u8::MAX)
        })
    }
}

/// Returns the width of a text, for a height of 1.
pub(super) fn width_of(text: &str) -> f64 {
    lay_out(text).advance
}

/// Returns `text`, or its longest beginning with an ellipsis, that is no wider than `width` at this height.
pub(super) fn truncate_to_width(text: &str, height: f64, width: f64) -> String {
    if width_of(text) * height <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width_of(&format!("{kept}…")) * height > width {
            kept.pop();
            break;
        }
    }
    format!("{}…", kept.trim_end())
}

fn lay_out(text: &str) -> letters::TextLine {
    letters::lay_out_line(text).unwrap_or_else(|_| {
        let has_glyph = |c: &char| letters::lay_out_line(c.encode_utf8(&mut [0; 4])).is_ok();
        let drawable: String = text.chars().filter(has_glyph).collect();
        letters::lay_out_line(&drawable).unwrap_or_default()
    })
}
