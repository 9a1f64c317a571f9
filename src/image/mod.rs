//! Turns pictures made of pixels into lines that a pen draws.
#![doc = include_str!("README.md")]

mod centreline;
mod darkness;
mod decode;
mod hatch;
mod image_error;
mod orientation;
mod outline;
mod stipple;
mod thinning;
mod tone_carry;
mod wave;
mod wave_coverage;

#[cfg(test)]
mod tests;

pub use image_error::ImageError;

use base::plane::Point;
use darkness::{DarknessMap, ToneSheet};

/// Most pixels of a picture that is decoded.
pub const PIXELS_MAX: usize = 40_000_000;

/// Most cells of the grid on which lines are computed.
const CELLS_MAX: f64 = 4e6;

/// A picture: how dark each of its pixels is.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture(DarknessMap);

/// Kind of lines that a picture becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// The middles of dark lines: for drawings and handwriting.
    Centreline,
    /// The edges of dark areas: for logos and cut-outs.
    Outline,
    /// Parallel lines, the denser the darker.
    Hatch,
    /// Rows that swing the wider, the darker the picture is.
    Squiggle,
    /// Dots, the denser the darker.
    Stipple,
    /// One line from the middle outwards that swings as [`LineStyle::Squiggle`] does.
    Spiral,
}

impl LineStyle {
    /// Returns whether its ink is as dark as the picture: less ink draws it with fewer lines.
    #[must_use]
    pub const fn keeps_tones(self) -> bool {
        !matches!(self, Self::Centreline | Self::Outline)
    }
}

/// How a picture becomes lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineOptions {
    /// The kind of lines.
    pub style: LineStyle,
    /// Length of the picture's longer side on the page.
    pub long_mm: f64,
    /// Width of the pen's line.
    pub pen_mm: f64,
    /// Share of the ink that the style can put down, above 0 and up to 1: less is lighter and sooner drawn. Edges and middles of
    /// lines do not heed it.
    pub ink: f64,
}

/// The lines of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureLines {
    /// The picture's width and height.
    pub page_mm: [f64; 2],
    /// Paths from the page's lower left corner, y up; a path of one point is a dot.
    pub paths_mm: Vec<Vec<Point>>,
    /// Share of the paper that is covered where the picture is black, for styles that keep tones.
    pub black: Option<f64>,
}

impl Picture {
    /// Decodes a PNG or a JPEG. What is transparent is white.
    ///
    /// # Errors
    /// The bytes are neither, are damaged, or have more than [`PIXELS_MAX`] pixels, which is found before they are decoded.
    pub fn decode(bytes: &[u8]) -> Result<Self, ImageError> {
        decode::decode(bytes).map(Self)
    }

    /// Returns whether bytes begin as a PNG or a JPEG does.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        decode::is_picture(bytes)
    }

    /// Takes a picture of grey pixels, row by row from the top: 0 is black, 255 white.
    ///
    /// # Errors
    /// The number of pixels is not width times height, or it has a side of less than 2 pixels.
    pub fn from_grey(width: usize, height: usize, grey: &[u8]) -> Result<Self, ImageError> {
        let darkness = grey.iter().map(|&grey| 1.0 - f32::from(grey) / 255.0);
        DarknessMap::new(width, height, darkness.collect()).map(Self)
    }

    /// Returns the number of pixels in a row, and of rows.
    #[must_use]
    pub fn size_px(&self) -> [usize; 2] {
        self.0.size()
    }

    /// Returns the picture as lines.
    ///
    /// # Errors
    /// It shows nothing that this style draws.
    pub fn lines(&self, options: &LineOptions) -> Result<PictureLines, ImageError> {
        let LineOptions { style, pen_mm, .. } = *options;
        let sheet = self.sheet(options);
        let (mut paths_mm, black) = match style {
            LineStyle::Centreline => (centreline::paths(&sheet), None),
            LineStyle::Outline => (outline::paths(&sheet, pen_mm)?, None),
            LineStyle::Hatch => (hatch::paths(&sheet, pen_mm, options.ink), Some(options.ink)),
            LineStyle::Squiggle => wave::rows(&sheet, pen_mm, options.ink),
            LineStyle::Spiral => wave::spiral(&sheet, pen_mm, options.ink),
            LineStyle::Stipple => stipple::dots(&sheet, pen_mm, options.ink),
        };
        if paths_mm.is_empty() {
            return Err(ImageError::Blank);
        }
        let page_mm = sheet.size_mm();
        for [_, y] in paths_mm.iter_mut().flatten() {
            *y = page_mm[1] - *y;
        }
        Ok(PictureLines {
            page_mm,
            paths_mm,
            black,
        })
    }

    /// Returns the picture in its size, on a grid that is finer than the pen but no finer than the picture where edges count.
    fn sheet(&self, options: &LineOptions) -> ToneSheet {
        let [width, height] = self.0.size().map(|pixels| pixels as f64);
        let own_mm = options.long_mm / width.max(height);
        let cell_mm = match options.style {
            style if style.keeps_tones() => options.pen_mm / 2.0,
            _ => own_mm.max(options.pen_mm / 4.0),
        };
        let cells = (width * own_mm / cell_mm) * (height * own_mm / cell_mm);
        let cell_mm = cell_mm * (cells / CELLS_MAX).sqrt().max(1.0);
        ToneSheet::new(&self.0, own_mm, cell_mm)
    }
}
