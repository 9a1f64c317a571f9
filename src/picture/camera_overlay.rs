//! A camera's picture for people: made smaller, with lines over it and its time under it.

use super::canvas::{INK, PixelArea, Point, fitted, png};
use super::{PictureError, Rgb, SIDE_MAX_PX};

/// For the line under the picture.
const FOOT: f64 = 26.0;

/// Width of lines over a picture.
const LINE: f64 = 1.6;

/// A line over a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct PixelLine {
    /// In the picture's pixels. Points that are not finite are skipped.
    pub points_px: Vec<Point>,
    /// Its colour.
    pub colour: Rgb,
}

/// Content of a camera's picture with its overlay.
#[derive(Clone, Debug)]
pub struct CameraOverlayView<'a> {
    /// Width and height of the picture.
    pub size_px: [u32; 2],
    /// Its rows, three bytes a pixel.
    pub rgb: &'a [u8],
    /// Over it.
    pub lines: Vec<PixelLine>,
    /// One line under it: who took it, and when.
    pub caption: String,
}

/// Draws it: at most 1,000 pixels on the longer side and 150 kB.
///
/// # Errors
/// A picture without pixels, or one that cannot be made small enough.
pub fn seen_png(view: &CameraOverlayView<'_>) -> Result<Vec<u8>, PictureError> {
    let [width, height] = view.size_px.map(f64::from);
    if width < 1.0 || height < 1.0 {
        let why = "the picture has no pixels".to_owned();
        return Err(PictureError::Encoding(why));
    }
    let longest = f64::from(SIDE_MAX_PX) - FOOT;
    let scale = (longest / width.max(height)).min(1.0);
    let area = PixelArea::new([0.0, 0.0], [width * scale, height * scale]);
    png(area.width, area.height + FOOT, |canvas| {
        canvas.photo(area, view.size_px, view.rgb);
        for line in &view.lines {
            let points = line.points_px.iter().map(|[x, y]| [x * scale, y * scale]);
            canvas.draw_line(&points.collect::<Vec<_>>(), line.colour, LINE);
        }
        let caption = fitted(&view.caption, 10.0, area.width - 16.0);
        canvas.draw_text(&caption, [8.0, area.height + 18.0], 10.0, INK);
    })
}
