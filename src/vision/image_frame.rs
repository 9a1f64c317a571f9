//! A picture as a camera took it: rows of RGB bytes.

/// The longest side of a picture.
pub const SIDE_PX_MAX: u32 = 8192;

/// The most pixels of a picture: larger ones are refused before they are made.
pub const PIXELS_MAX: usize = 12_582_912;

/// A picture. Its upper left pixel covers 0 to 1 in both directions, so that its middle is at 0.5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFrame {
    size_px: [u32; 2],
    rgb: Vec<u8>,
}

/// Reason that bytes are not a valid picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No pixels, or too many.
    #[error(
        "a picture of {width} by {height} px: each side must be 1 to {SIDE_PX_MAX}, and {PIXELS_MAX} pixels are the most"
    )]
    Size {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },
    /// Too few or too many bytes for its size.
    #[error("{got} bytes for a picture that has {want}")]
    Bytes {
        /// Number of bytes received.
        got: usize,
        /// Number of bytes expected.
        want: usize,
    },
}

impl ImageFrame {
    /// A picture from its rows, each of `width` times red, green and blue.
    ///
    /// # Errors
    /// A size that no picture has, or another number of bytes.
    pub fn new(width: u32, height: u32, rgb: Vec<u8>) -> Result<Self, FrameError> {
        let want = Self::pixels(width, height)? * 3;
        if rgb.len() != want {
            return Err(FrameError::Bytes {
                got: rgb.len(),
                want,
            });
        }
        Ok(Self {
            size_px: [width, height],
            rgb,
        })
    }

    /// Returns the number of pixels of a picture of this size.
    ///
    /// # Errors
    /// An invalid size.
    pub fn pixels(width: u32, height: u32) -> Result<usize, FrameError> {
        let wrong = FrameError::Size { width, height };
        if !(1..=SIDE_PX_MAX).contains(&width) || !(1..=SIDE_PX_MAX).contains(&height) {
            return Err(wrong);
        }
        let pixels = width as usize * height as usize;
        if pixels > PIXELS_MAX {
            return Err(wrong);
        }
        Ok(pixels)
    }

    /// Width and height.
    #[must_use]
    pub fn size_px(&self) -> [u32; 2] {
        self.size_px
    }

    /// Row by row, three bytes a pixel.
    #[must_use]
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Returns the brightness of each pixel, row by row.
    #[must_use]
    pub fn grey(&self) -> Vec<u8> {
        let bright = |pixel: &[u8]| match pixel {
            // Rec. 601, in 256ths.
            [r, g, b] => {
                let sum = 77 * u32::from(*r) + 150 * u32::from(*g) + 29 * u32::from(*b);
                u8::try_from(sum >> 8).unwrap_or(u8::MAX)
            }
            _ => 0,
        };
        self.rgb.chunks_exact(3).map(bright).collect()
    }
}
