//! Paper to draw a picture on: lines, words and frames in pixels, y down.

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
pub(super) const DESK: Rgb = [246, 245, 242];
pub(super) const INK: Rgb = [38, 38, 46];
pub(super) const QUIET: Rgb = [132, 132, 140];
pub(super) const PALE: Rgb = [214, 213, 208];
pub(super) const AIR: Rgb = [150, 184, 214];
pub const REFUSED: Rgb = [214, 40, 40];

/// Largest number of drawn points of a view; the rest would make no visible difference.
const POINTS_MAX: usize = 400_000;

/// Smaller pictures are tried while the file is too large, at most so often.
const TRIES_MAX: u32 = 4;

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
    /// The rectangle with this upper left corner.
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
    /// From the picture's own units to pixels.
    scale: f64,
    points_left: usize,
    /// Mask of the drawable region; `None` for everything.
    window: Option<Mask>,
}

/// There is one, because a picture takes megabytes while it is painted, and callers come in dozens.
static EASEL: Mutex<()> = Mutex::new(());

/// Draws at full size, and smaller if the file would be too large; one picture at a time.
///
/// It paints on a single thread: the allocator keeps each thread's peak memory, so one thread keeps it only once,
/// regardless of the number of callers.
pub(super) fn png(
    width: f64,
    height: f64,
    draw: impl Fn(&mut Canvas) + Sync,
) -> Result<Vec<u8>, PictureError> {
    let _turn = EASEL.lock().unwrap_or_else(PoisonError::into_inner);
    let paint = || painted(width, height, &draw);
    std::thread::scope(|scope| {
        let painter = std::thread::Builder::new().name("painter".to_owned());
        match painter.spawn_scoped(scope, paint) {
            Ok(painter) => painter
                .join()
                .unwrap_or_else(|_| Err(PictureError::Encoding("its thread failed".to_owned()))),
            // A system that gives no thread gives a picture all the same.
            Err(_) => paint(),
        }
    })
}

fn painted(width: f64, height: f64, draw: &impl Fn(&mut Canvas)) -> Result<Vec<u8>, PictureError> {
    let mut scale = 1.0;
    for _ in 0..TRIES_MAX {
        let bytes = drawn(width, height, scale, draw)?;
        if bytes.len() <= BYTES_MAX {
            return Ok(bytes);
        }
        scale *= 0.7;
    }
    let why = format!("it has more than {BYTES_MAX} bytes even when it is small");
    Err(PictureError::Encoding(why))
}

fn drawn(
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
    let mut pixels = pixels.ok_or_else(|| PictureError::Encoding("no room for it".to_owned()))?;
    pixels.fill(colour(DESK));
    let mut canvas = Canvas {
        pixels,
        scale,
        points_left: POINTS_MAX,
        window: None,
    };
    draw(&mut canvas);
    let bytes = encoded(&canvas.pixels);
    bytes.map_err(|error| PictureError::Encoding(error.to_string()))
}

/// Row by row: a copy of all pixels would be as large again. Paper hides what is under it, so that no colour is thinned.
fn encoded(pixels: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
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

    /// From now on only what lies in `area` is drawn; none ends that.
    pub(super) fn clip_to(&mut self, area: Option<PixelArea>) {
        self.window = area.and_then(|area| {
            let path = PathBuilder::from_rect(area.rect()?);
            let mut mask = Mask::new(self.pixels.width(), self.pixels.height())?;
            mask.fill_path(&path, FillRule::Winding, true, self.transform());
            Some(mask)
        });
    }

    /// A filled rectangle.
    pub(super) fn fill(&mut self, area: PixelArea, rgb: Rgb) {
        if let Some(rect) = area.rect() {
            let transform = self.transform();
            self.pixels.fill_rect(rect, &paint(rgb), transform, None);
        }
    }

    /// Draws a photograph the size of `area`. Each of its pixels is the mean of the pixels under it, and it
    /// has few colours: invisible noise would make the file ten times as large.
    pub(super) fn photo(&mut self, area: PixelArea, [width, height]: [u32; 2], rgb: &[u8]) {
        let across = self.pixels.width() as usize;
        let wide = PixelSpan::new(area.x, area.width, self.scale, width);
        let tall = PixelSpan::new(area.y, area.height, self.scale, height);
        let rows = self.pixels.pixels_mut().chunks_mut(across.max(1));
        let from = PhotoPixels {
            width: width as usize,
            rgb,
        };
        for (y, row) in rows.enumerate().take(tall.end).skip(tall.first) {
            let under = tall.each(y - tall.first);
            for (x, pixel) in row.iter_mut().enumerate().take(wide.end).skip(wide.first) {
                let [r, g, b] = from.mean(wide.each(x - wide.first), under.clone());
                if let Some(colour) = PremultipliedColorU8::from_rgba(r, g, b, 255) {
                    *pixel = colour;
                }
            }
        }
    }

    /// A thin frame around a rectangle.
    pub(super) fn frame(&mut self, area: PixelArea, rgb: Rgb) {
        let (x, y, right, bottom) = (area.x, area.y, area.right(), area.bottom());
        let corners = [[x, y], [right, y], [right, bottom], [x, bottom], [x, y]];
        self.draw_line(&corners, rgb, 1.0);
    }

    /// A line with round ends. Points that are not finite are skipped.
    pub(super) fn draw_line(&mut self, points: &[Point], rgb: Rgb, width: f64) {
        self.lines(std::iter::once(points), rgb, width);
    }

    /// Many lines at once.
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
            .stroke_path(&path, &paint(rgb), &stroke, transform, self.window.as_ref());
    }

    /// A filled polygon.
    pub(super) fn polygon(&mut self, points: &[Point], rgb: Rgb) {
        let path = self.path(std::iter::once(points));
        self.fill_path(path, rgb);
    }

    /// A filled disc.
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
            for (index, [x, y]) in finite.enumerate() {
                self.points_left = self.points_left.checked_sub(1)?;
                match index {
                    0 => path.move_to(f32_of(*x), f32_of(*y)),
                    _ => path.line_to(f32_of(*x), f32_of(*y)),
                }
            }
        }
        path.finish()
    }

    /// Words whose baseline starts at a point. Letters that do not exist are left out.
    pub(super) fn draw_text(&mut self, text: &str, [x, y]: Point, height: f64, rgb: Rgb) {
        let line = written(text);
        let place = |[px, py]: &Point| [x + px * height, y - py * height];
        let strokes = line.strokes.iter();
        let strokes: Vec<Vec<Point>> = strokes.map(|s| s.iter().map(place).collect()).collect();
        let weight = (height * 0.13).max(1.0);
        self.lines(strokes.iter().map(Vec::as_slice), rgb, weight);
    }
}

/// Pixels of the canvas, and how many of a photograph's lie under each.
struct PixelSpan {
    first: usize,
    end: usize,
    each: f64,
    of: usize,
}

impl PixelSpan {
    fn new(start: f64, length: f64, scale: f64, of: u32) -> Self {
        Self {
            first: whole(start * scale),
            end: whole((start + length) * scale),
            each: f64::from(of) / (length * scale).max(1.0),
            of: of as usize,
        }
    }

    fn each(&self, index: usize) -> Range<usize> {
        let of = self.of;
        let first = whole(index as f64 * self.each).min(of.saturating_sub(1));
        let end = whole((index as f64 + 1.0) * self.each).clamp(first + 1, of.max(first + 1));
        first..end
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and below 0 is nothing"
)]
fn whole(value: f64) -> usize {
    value.max(0.0).round() as usize
}

/// A photograph's pixels.
struct PhotoPixels<'a> {
    width: usize,
    rgb: &'a [u8],
}

impl PhotoPixels<'_> {
    /// The mean colour of a part, in steps of eight.
    fn mean(&self, wide: Range<usize>, tall: Range<usize>) -> Rgb {
        let mut sum = [0_usize; 3];
        let mut count = 0_usize;
        for row in tall {
            let from = (row * self.width + wide.start) * 3;
            let part = self.rgb.get(from..from + wide.len() * 3);
            for pixel in part.unwrap_or_default().chunks_exact(3) {
                for (sum, one) in sum.iter_mut().zip(pixel) {
                    *sum += usize::from(*one);
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
    written(text).advance
}

/// The longest beginning of `text` that is no wider than `width` at this height.
pub(super) fn fitted(text: &str, height: f64, width: f64) -> String {
    if width_of(text) * height <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        kept.push(letter);
        if width_of(&format!("{kept}…")) * height > width {
            kept.pop();
            break;
        }
    }
    format!("{}…", kept.trim_end())
}

fn written(text: &str) -> letters::TextLine {
    letters::lay_out_line(text).unwrap_or_else(|_| {
        let is_known =
            |letter: &char| letters::lay_out_line(letter.encode_utf8(&mut [0; 4])).is_ok();
        let known: String = text.chars().filter(is_known).collect();
        letters::lay_out_line(&known).unwrap_or_default()
    })
}
