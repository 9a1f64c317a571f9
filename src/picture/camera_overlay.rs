//! Draws a camera's picture for people: scaled down, with lines over it and a caption below.

use super::canvas::{INK, PixelArea, Point, png, truncate_to_width};
use super::{PictureError, Rgb, SIDE_MAX_PX};

/// Height of the caption under the picture.
const CAPTION_HEIGHT: f64 = 26.0;

/// Width of lines over a picture.
const LINE_WIDTH: f64 = 1.6;

/// A line over a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct PixelLine {
    /// Its points, in the picture's pixels. Points that are not finite are skipped.
    pub points_px: Vec<Point>,
    /// Its colour.
    pub colour: Rgb,
}

/// A camera's picture with its overlay.
#[derive(Clone, Debug)]
pub struct CameraOverlayView<'a> {
    /// Width and height of the picture.
    pub size_px: [u32; 2],
    /// Its pixels row by row, three bytes each.
    pub rgb: &'a [u8],
    /// Lines over the picture.
    pub lines: Vec<PixelLine>,
    /// Line of text under the picture: which camera took it, and when.
    pub caption: String,
}

/// Draws a picture's pixels alone.
///
/// # Errors
/// It has no pixels, or cannot be made small enough.
pub fn photo_png(size_px: [u32; 2], rgb: &[u8]) -> Result<Vec<u8>, PictureError> {
    let [width, height] = size_px.map(f64::from);
    if width < 1.0 || height < 1.0 {
        let reason = "the picture has no pixels".to_owned();
        return Err(PictureError::Encoding(reason));
    }
    let area = PixelArea::new([0.0, 0.0], [width, height]);
    png(width, height, |canvas| canvas.photo(area, size_px, rgb))
}

/// Draws the overlay view: at most 1,000 pixels on the longer side and 150 kB.
///
/// # Errors
/// The picture has no pixels, or cannot be made small enough.
pub fn seen_png(view: &CameraOverlayView<'_>) -> Result<Vec<u8>, PictureError> {
    let [width, height] = view.size_px.map(f64::from);
    if width < 1.0 || height < 1.0 {
        let reason = "the picture has no pixels".to_owned();
        return Err(PictureError::Encoding(reason));
    }
    let longest = f64::from(SIDE_MAX_PX) - CAPTION_HEIGHT;
    let scale = (longest / width.max(height)).min(1.0);
    let area = PixelArea::new([0.0, 0.0], [width * scale, height * scale]);
    png(area.width, area.height + CAPTION_HEIGHT, |canvas| {
        canvas.photo(area, view.size_px, view.rgb);
        for line in &view.lines {
            let points = line.points_px.iter().map(|[x, y]| [x * scale, y * scale]);
            canvas.draw_line(&points.collect::<Vec<_>>(), line.colour, LINE_WIDTH);
        }
        let caption = truncate_to_width(&view.caption, 10.0, area.width - 16.0);
        canvas.draw_text(&caption, [8.0, area.height + 18.0], 10.0, INK);
    })
}
