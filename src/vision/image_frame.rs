//! A picture as a camera took it: rows of RGB bytes.

/// Longest side of a picture.
pub const SIDE_PX_MAX: u32 = 8192;

/// Maximum number of pixels of a picture: larger ones are refused before memory is allocated.
pub const PIXELS_MAX: usize = 12_582_912;

/// A picture. Its upper left pixel covers 0 to 1 in both directions, so its centre is at 0.5.
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
        "a picture of {width} by {height} px: each side must be 1 to {SIDE_PX_MAX}, with at most {PIXELS_MAX} pixels"
    )]
    Size {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },
    /// Too few or too many bytes for its size.
    #[error("the picture has {got} bytes; it must have {want}")]
    Bytes {
        /// Number of bytes received.
        got: usize,
        /// Number of bytes expected.
        want: usize,
    },
}

impl ImageFrame {
    /// Creates a picture from its rows, each of `width` times red, green and blue.
    ///
    /// # Errors
    /// An invalid size, or a wrong number of bytes.
    pub fn new(width: u32, height: u32, rgb: Vec<u8>) -> Result<Self, FrameError> {
        let want = Self::pixels(width, height)? * 3;
        if rgb.len() != want {
            let got = rgb.len();
            return Err(FrameError::Bytes { got, want });
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
        let are_valid_sides = [width, height]
            .iter()
            .all(|side| (1..=SIDE_PX_MAX).contains(side));
        let pixels = are_valid_sides.then(|| width as usize * height as usize);
        let pixels = pixels.filter(|pixels| *pixels <= PIXELS_MAX);
        pixels.ok_or(FrameError::Size { width, height })
    }

    /// Returns width and height.
    #[must_use]
    pub fn size_px(&self) -> [u32; 2] {
        self.size_px
    }

    /// Returns the pixels row by row, three bytes each.
    #[must_use]
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Returns the brightness of each pixel, row by row.
    #[must_use]
    pub fn grey(&self) -> Vec<u8> {
        // Rec. 601, in 256ths.
        let luma = |pixel: &[u8; 3]| {
            let [r, g, b] = pixel.map(u32::from);
            u8::try_from((77 * r + 150 * g + 29 * b) >> 8).unwrap_or(u8::MAX)
        };
        self.rgb.as_chunks().0.iter().map(luma).collect()
    }
}
