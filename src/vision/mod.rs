//! Evaluation of a camera's picture of a sheet: the tags on it, its pose, its offset, and where lines of ink lie.
//!
//! Pure functions of pixels and of the known lens and tags: no device, no time, no arm. A picture is
//! not trusted: a tag must have its frame and its white edge, the tags must agree with each other, and
//! the pose comes with its uncertainty.

mod flat_sheet;
mod grey_picture;
mod homography;
mod image_frame;
mod ink_reader;
mod lens;
mod sheet_offset;
mod sheet_pose;
mod tag_family;
mod tag_finder;
#[cfg(test)]
mod tests;

pub use flat_sheet::flat_sheet;
pub use image_frame::{FrameError, ImageFrame, PIXELS_MAX, SIDE_PX_MAX};
pub use ink_reader::{ExpectedLine, InkOffset, InkReading, PicturedSheet, read_ink};
pub use lens::{LensModel, PlacedCamera};
pub use sheet_offset::{SheetOffset, sheet_offset};
pub use sheet_pose::{CORNER_RMS_PX_MAX, SheetLocation, locate};
pub use tag_family::{DetectedTag, Family, SheetTag, TAGS_MAX, TagLayout};
pub use tag_finder::{TagFinderError, find};

/// Reason that a picture gives no pose of the sheet.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum VisionError {
    /// None of the sheet's tags is in the picture.
    #[error(
        "none of the sheet's {of} tags was found in the picture: clean the lens, light the sheet, or uncover the tags"
    )]
    NoTag {
        /// Expected number of tags.
        of: usize,
    },
    /// The tags are not where the scene says, or the lens is not what the node file says.
    #[error(
        "the tags do not fit together: their corners are {rms_px:.2} px off (at most {most_px} px). A tag is not in its place in the scene, or the camera's `focal_px` or `distortion` is wrong"
    )]
    Misfit {
        /// Root mean square distance of the corners.
        rms_px: f64,
        /// Largest accepted value.
        most_px: f64,
    },
    /// The corners do not determine a pose.
    #[error("the tags' corners are on one line, so they do not show where the sheet lies")]
    Flat,
    /// The lens was calibrated for another picture size.
    #[error(
        "the picture is {} by {} px, but the camera's `size_px` is {} by {}: the lens is known only for that size", got[0], got[1], want[0], want[1]
    )]
    Size {
        /// Size of the picture.
        got: [u32; 2],
        /// Size that the lens was calibrated for.
        want: [u32; 2],
    },
    /// The finder failed.
    #[error("cannot look for tags: {0}")]
    Finder(#[from] TagFinderError),
}
