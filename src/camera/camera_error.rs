//! Camera errors, worded so that a person can fix the cause.

use std::path::PathBuf;
use std::time::Duration;

use super::http_camera::AGE_S_MAX;
use super::jpeg_decode::JPEG_BYTES_MAX;
use vision::FrameError;

/// Reason that a camera gave no picture.
#[derive(Debug, thiserror::Error)]
#[error("camera {camera}: {failure}")]
pub struct CameraError {
    /// Name of the camera.
    pub camera: String,
    /// The cause.
    pub failure: CameraFailure,
}

/// Cause of a camera error.
#[derive(Debug, thiserror::Error)]
pub enum CameraFailure {
    /// The device file does not exist.
    #[error(
        "there is no {}. Next: plug the camera in, or correct its `source` in the node file (`ls /dev/video*` lists cameras)", .0.display()
    )]
    Missing(PathBuf),
    /// This user may not open the device.
    #[error(
        "this user may not open {}. Next: add the user to the group `video`, and restart the node", .0.display()
    )]
    Denied(PathBuf),
    /// A different program has the device open.
    #[error("{} is in use. Next: close the other program that uses the camera", .0.display())]
    Busy(PathBuf),
    /// Camera devices are not supported on this system.
    #[error(
        "cannot open {}: camera devices work only on Linux. Next: use an http:// picture, or \"simulator\"", .0.display()
    )]
    OtherSystem(PathBuf),
    /// The file is not a camera.
    #[error(
        "{} gives no pictures: {what}. Next: try the camera's other device; most cameras have two, and only one gives pictures", path.display()
    )]
    NotACamera {
        /// The file.
        path: PathBuf,
        /// Description of the device.
        what: String,
    },
    /// The camera has no supported pixel format.
    #[error(
        "it sends pictures as {0}; only MJPG, JPEG and YUYV can be read. Next: choose another camera"
    )]
    Format(String),
    /// The device failed.
    #[error("{} failed: {what}. Next: unplug it and plug it in again", path.display())]
    Device {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        what: std::io::Error,
    },
    /// The camera gave no picture before the deadline.
    #[error(
        "no picture came within {} ms. Next: check that the camera is on and connected, or raise its `timeout_ms`", .0.as_millis()
    )]
    Late(Duration),
    /// The address is invalid.
    #[error("`{0}` is not of the form http://HOST/PATH or http://HOST:PORT/PATH")]
    Address(String),
    /// No connection to the host.
    #[error("cannot reach {host}: {what}. Next: check its network and its `source`")]
    Connect {
        /// Host and port.
        host: String,
        /// Error of the system.
        what: std::io::Error,
    },
    /// The connection broke, or the response is not HTTP.
    #[error("the connection to {host} broke: {what}")]
    Broken {
        /// Host and port.
        host: String,
        /// Description of the problem.
        what: String,
    },
    /// The response has another status than success.
    #[error(
        "{host} answers with status {status}. Next: open its address in a browser and correct `source`"
    )]
    Status {
        /// Host and port.
        host: String,
        /// Status of the response.
        status: u16,
    },
    /// The file with its login is unusable. The message does not contain its content.
    #[error("its login cannot be read from {}: {what}", file.display())]
    Login {
        /// The file.
        file: PathBuf,
        /// Description of the problem.
        what: String,
    },
    /// It asks for a login.
    #[error(
        "{host} asks for a name and a password. Next: write NAME:PASSWORD into a file, and its path into the camera's `login_file`"
    )]
    NoLogin {
        /// Host and port.
        host: String,
    },
    /// It does not take the login.
    #[error("{host} rejects the name or the password in `login_file`. Next: correct them")]
    WrongLogin {
        /// Host and port.
        host: String,
    },
    /// It asks for a login in another way than Digest and Basic.
    #[error(
        "{host} asks for a login of an unknown kind; Basic and Digest (MD5, SHA-256) are possible. Next: set the camera to Digest, or to pictures without a login"
    )]
    LoginWay {
        /// Host and port.
        host: String,
    },
    /// This program was built without RTSP.
    #[error(
        "{0} needs RTSP, which this build lacks. Next: build with `--features rtsp`, or write the address of its snapshot, such as http://10.0.0.9/snapshot.jpg"
    )]
    NoRtsp(String),
    /// Its stream has another codec.
    #[error(
        "it streams `{0}`; only H.264 and JPEG can be read. Next: set the camera, or its second stream, to H.264"
    )]
    Codec(String),
    /// Its frames cannot be decoded.
    #[error("its H.264 cannot be read: {0}")]
    H264(String),
    /// The response is not a picture.
    #[error(
        "it answers with `{0}`, not with `image/jpeg` or `multipart/x-mixed-replace`. Next: write the address of a picture into its `source`"
    )]
    Kind(String),
    /// It does not say that the picture is fresh.
    #[error("its picture is too old (`Age: {0}`, at most {AGE_S_MAX} s). Next: turn its cache off")]
    Old(String),
    /// The stream is malformed.
    #[error("its stream is not MJPEG: {0}")]
    Stream(&'static str),
    /// The stream ended before a picture was complete.
    #[error("its stream ended before a picture was complete")]
    Ended,
    /// The picture has too many bytes.
    #[error(
        "its picture has more than {JPEG_BYTES_MAX} bytes. Next: lower its resolution or quality"
    )]
    TooLong,
    /// The bytes are not a JPEG.
    #[error("its picture cannot be read: {0}")]
    Jpeg(String),
    /// The picture has an invalid size.
    #[error("its picture is unusable: {0}")]
    Frame(#[from] FrameError),
    /// The thread that takes the picture could not start, or failed.
    #[error("the thread for the picture failed: {0}")]
    Thread(String),
}

impl CameraFailure {
    /// Returns the refusal of an age, which may be of any length.
    pub(super) fn old(age: &str) -> Self {
        Self::Old(age.chars().take(40).collect())
    }

    /// Returns the refusal of a content type, which may be of any length.
    pub(super) fn wrong_content_type(content_type: &str) -> Self {
        Self::Kind(content_type.chars().take(80).collect())
    }
}
