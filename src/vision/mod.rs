//! What a camera's picture says of a sheet: which tags are on it, where it lies, how far it has moved.
//!
//! Pure functions of pixels and of what is known of lens and tags: no device, no time, no arm. A
//! picture may be anybody's, so nothing is believed for its looks alone: a tag must have its frame
//! and its white edge, the tags must agree with each other, and how well the sheet is known is told
//! with where it lies.

mod find;
mod frame;
mod lens;
mod moved;
mod pose;
mod solve;
mod tags;
#[cfg(test)]
mod tests;

pub use find::find;
pub use frame::{Frame, FrameError, PIXELS_MAX, SIDE_PX_MAX};
pub use lens::{Eye, Lens};
pub use moved::{Moved, moved};
pub use pose::{CORNER_RMS_PX_MAX, Sighting, locate};
pub use tags::{Family, Layout, Seen, TAGS_MAX, Tag};

/// Why a picture says nothing of the sheet.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum VisionError {
    /// None of the sheet's tags.
    #[error(
        "none of the sheet's {of} tags is in the picture: clean the lens, light the sheet, take away what covers the tags"
    )]
    NoTag {
        /// How many there should be.
        of: usize,
    },
    /// The tags are not where the scene says, or the lens is not what the node file says.
    #[error(
        "the tags do not fit together: their corners are {rms_px:.2} px off, at most {most_px} are believed; a tag lies elsewhere than the scene says, or the camera's focal_px or distortion is wrong"
    )]
    Misfit {
        /// Root of the mean square.
        rms_px: f64,
        /// What is believed.
        most_px: f64,
    },
    /// No pose puts the tags where they were seen.
    #[error("the tags' corners say nothing of where the sheet lies: they are on one line")]
    Flat,
    /// The picture is not of the size that the lens is known for.
    #[error(
        "the picture is {} by {} px and the camera's size_px is {} by {}: its lens is known for that size alone", got[0], got[1], want[0], want[1]
    )]
    Size {
        /// Of the picture.
        got: [u32; 2],
        /// Of the lens.
        want: [u32; 2],
    },
    /// The finder failed.
    #[error("tags cannot be looked for: {0}")]
    Finder(String),
}
