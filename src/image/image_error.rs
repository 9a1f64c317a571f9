//! Reasons why a picture does not become lines.

use super::PIXELS_MAX;

/// Reason why a picture is not drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Neither of the formats that are read.
    #[error("this is neither a PNG nor a JPEG. Next: save the picture as one of them")]
    Format,
    /// A file whose contents are damaged or cut off.
    #[error("the {format} is damaged: {reason}. Next: save the picture again")]
    Damaged {
        /// `PNG` or `JPEG`.
        format: &'static str,
        /// The decoder's reason.
        reason: String,
    },
    /// More pixels than are decoded.
    #[error(
        "the picture is {width} by {height} pixels; at most {PIXELS_MAX} pixels can be read. Next: make it smaller"
    )]
    TooLarge {
        /// Pixels in a row.
        width: u64,
        /// Rows.
        height: u64,
    },
    /// Fewer pixels than a picture has.
    #[error(
        "the picture is {width} by {height} pixels; at least 2 by 2 are needed. Next: choose a larger picture"
    )]
    TooSmall {
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// Not as many pixels as its width and height say.
    #[error("the picture has {found} pixels but should have {expected}")]
    Count {
        /// Pixels that there are.
        found: usize,
        /// Width times height.
        expected: usize,
    },
    /// A picture without anything that its style draws.
    #[error(
        "this style finds nothing to draw in the picture. Next: choose another style, or a picture that is not blank"
    )]
    Blank,
    /// A picture that the outline tracer refuses.
    #[error("the outlines cannot be traced: {0}")]
    Outline(String),
}
