//! Camera devices on systems where they are not supported.

use std::path::Path;
use std::time::Duration;

use super::{CameraFailure, RawPicture};
use base::clock::NodeClock;

/// Refuses.
pub(super) fn take(
    path: &Path,
    _size_px: [u32; 2],
    _within: Duration,
    _clock: &NodeClock,
) -> Result<RawPicture, CameraFailure> {
    Err(CameraFailure::OtherSystem(path.to_owned()))
}
