//! Reads a picture made of pixels. Its lines depend on the size and on the pen with which it is drawn.

use image::{ImageError, LineOptions, Picture};

use super::collect_strokes::StrokeCollector;
use super::{Design, DesignCaps, DesignError, DesignStroke, simplified};

/// Largest distance of a drawn line from the traced one, in widths of the pen.
const STRAY_WIDTHS: f64 = 0.1;

/// A PNG or a JPEG.
#[derive(Clone, Debug, PartialEq)]
pub struct PixelPicture(Picture);

impl PixelPicture {
    /// Decodes a picture; `None` if the bytes are neither PNG nor JPEG.
    ///
    /// # Errors
    /// A picture that is damaged or too large.
    pub fn read(bytes: &[u8], caps: &DesignCaps) -> Result<Option<Self>, DesignError> {
        caps.refuse_larger(bytes.len())?;
        match Picture::decode(bytes) {
            Ok(picture) => Ok(Some(Self(picture))),
            Err(ImageError::Format) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether bytes begin as a PNG or a JPEG does.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        Picture::is_one(bytes)
    }

    /// Returns its frame as a drawing that has the picture's size in pixels, to be placed on a sheet.
    #[must_use]
    pub fn frame(&self) -> Design {
        let page_mm = self.0.size_px().map(|pixels| pixels as f64);
        let [width, height] = page_mm;
        let corners = [
            [0.0; 2],
            [width, 0.0],
            [width, height],
            [0.0, height],
            [0.0; 2],
        ];
        Design {
            page_mm,
            strokes: vec![DesignStroke {
                points_mm: corners.to_vec(),
                source: "the picture's frame".to_owned(),
                ..DesignStroke::default()
            }],
            ..Design::default()
        }
    }

    /// Returns its lines on a page in its size on the sheet, with a note on how it is drawn.
    ///
    /// # Errors
    /// Nothing to draw, or more lines than the caps allow.
    pub fn drawn(&self, options: &LineOptions, caps: &DesignCaps) -> Result<Design, DesignError> {
        let lines = self.0.lines(options)?;
        let is_traced = !options.style.keeps_tones();
        let mut strokes = StrokeCollector::new(caps);
        for (index, path) in lines.paths_mm.into_iter().enumerate() {
            let template = DesignStroke {
                source: format!("line {} of the picture", index + 1),
                ..DesignStroke::default()
            };
            let path = match is_traced {
                true => simplified(&path, STRAY_WIDTHS * options.pen_mm),
                false => path,
            };
            strokes.push(path, &template)?;
        }
        let mut design = strokes.on_page(lines.page_mm, "draw a different picture")?;
        design.notes.extend(lines.black.map(|black| {
            format!(
                "the picture's black covers {:.0} % of the paper",
                100.0 * black
            )
        }));
        Ok(design)
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a failing test may panic, and whole numbers are exact"
)]
mod tests {
    use super::*;
    use image::LineStyle;

    /// A PGM is no format that is read; a PNG of four pixels is.
    #[test]
    fn a_picture_is_known_by_its_bytes_and_its_page_is_its_size() {
        let caps = DesignCaps::default();
        assert_eq!(PixelPicture::read(b"P5 2 2 255\n....", &caps), Ok(None));
        let picture = PixelPicture(Picture::from_grey(4, 2, &[0; 8]).unwrap());
        assert_eq!(picture.frame().page_mm, [4.0, 2.0]);
        let options = LineOptions {
            style: LineStyle::Hatch,
            long_mm: 40.0,
            pen_mm: 0.5,
            ink: 1.0,
        };
        let design = picture.drawn(&options, &caps).unwrap();
        assert_eq!(design.page_mm, [40.0, 20.0]);
        assert_eq!(design.notes.len(), 1);
    }
}
