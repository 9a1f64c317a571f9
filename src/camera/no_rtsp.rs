//! Stands in for RTSP cameras where the feature `rtsp` is off.

use super::camera_login::CameraLogin;
use super::{CameraFailure, RawPicture};

/// Refuses the camera.
#[expect(clippy::unused_async, reason = "as where the feature is on")]
pub(super) async fn fetch(
    address: &str,
    _login: Option<&CameraLogin>,
) -> Result<RawPicture, CameraFailure> {
    Err(CameraFailure::NoRtsp(address.to_owned()))
}
