//! Pictures from cameras: USB by V4L2, HTTP by snapshot or MJPEG, RTSP with the feature `rtsp`.
//!
//! A camera is not trusted. The number of its bytes is limited before they are stored, the number of its
//! pixels before they are allocated, and one deadline covers all of a picture. Calls that may block run on a
//! separate thread, for which no caller waits beyond the deadline.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use base::clock::{NodeClock, calendar_ms};
use base::lock::MutexExt;
use base::units::ClockInstant;
use vision::ImageFrame;

mod camera_error;
mod camera_login;
mod digest_login;
mod http_camera;
mod jpeg_decode;
mod login_challenge;
mod mjpeg_stream;
#[cfg_attr(not(feature = "rtsp"), path = "no_rtsp.rs")]
mod rtsp_camera;
#[cfg(test)]
mod tests;
#[cfg_attr(not(target_os = "linux"), path = "no_device.rs")]
mod v4l2_device;

use camera_login::CameraLogin;

pub use camera_error::{CameraError, CameraFailure};
pub use jpeg_decode::{JPEG_BYTES_MAX, decode};
pub use mjpeg_stream::MjpegParts;

/// Beginning of the address of a camera that is asked by RTSP.
const RTSP: &str = "rtsp://";

/// Source of pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PictureSource {
    /// A device such as `/dev/video0`, asked for pictures of this size.
    Device {
        /// Its path.
        path: PathBuf,
        /// Width and height.
        size_px: [u32; 2],
    },
    /// An address that answers with a JPEG, with a stream of them, or by RTSP.
    Http {
        /// The address.
        address: String,
        /// A file with the name and the password that it asks for.
        login_file: Option<PathBuf>,
    },
}

/// A picture, and when it was taken.
#[derive(Clone, Debug)]
pub struct CameraPicture {
    /// Its pixels.
    pub frame: ImageFrame,
    /// The JPEG, if the camera sent one.
    pub jpeg: Option<Vec<u8>>,
    /// Arrival of the last byte, on the camera's own clock. A picture that equals the previous one byte for byte
    /// keeps its time, because no sensor gives the same picture twice.
    pub taken: ClockInstant,
    /// The same moment on the machine's calendar, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Bytes from a source, before decoding.
enum RawPicture {
    Jpeg(Vec<u8>),
    /// Frames of H.264, from a whole one on.
    #[cfg(feature = "rtsp")]
    H264(Vec<Vec<u8>>),
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "only a camera device gives one")
    )]
    Frame(ImageFrame),
}

/// A camera; clones are the same one.
#[derive(Clone, Debug)]
pub struct CameraHandle(Arc<CameraShared>);

#[derive(Debug)]
struct CameraShared {
    name: String,
    source: PictureSource,
    timeout: Duration,
    clock: NodeClock,
    /// Held while a picture is taken, because an open device excludes other users.
    in_use: Arc<tokio::sync::Mutex<()>>,
    previous: Mutex<Option<PreviousPicture>>,
}

/// Hash of the previous picture, and the time of its first arrival.
#[derive(Clone, Copy, Debug)]
struct PreviousPicture {
    hash: blake3::Hash,
    taken: ClockInstant,
    at_ms: u64,
}

impl CameraHandle {
    /// Creates a camera; messages mention its name, and one picture may take up to `timeout` in all.
    #[must_use]
    pub fn new(name: &str, source: PictureSource, timeout: Duration) -> Self {
        Self(Arc::new(CameraShared {
            name: name.to_owned(),
            source,
            timeout,
            // Pictures are taken in real time, even next to an arm whose clock is simulated.
            clock: NodeClock::real(),
            in_use: Arc::default(),
            previous: Mutex::default(),
        }))
    }

    /// Takes a picture. May be dropped while it waits.
    ///
    /// # Errors
    /// The reason why there is no picture, and how to fix it.
    pub async fn picture(&self) -> Result<CameraPicture, CameraError> {
        let result = tokio::time::timeout(self.0.timeout, self.take()).await;
        let failure = match result {
            Ok(Ok(picture)) => return Ok(picture),
            Ok(Err(failure)) => failure,
            Err(_) => CameraFailure::Late(self.0.timeout),
        };
        Err(CameraError {
            camera: self.0.name.clone(),
            failure,
        })
    }

    /// Returns the age of a picture of this camera.
    #[must_use]
    pub fn age(&self, picture: &CameraPicture) -> Duration {
        self.0.clock.now().since(picture.taken)
    }

    async fn take(&self) -> Result<CameraPicture, CameraFailure> {
        let guard = Arc::clone(&self.0.in_use).lock_owned().await;
        let camera = Arc::clone(&self.0);
        let sent = match &self.0.source {
            PictureSource::Device { .. } => None,
            PictureSource::Http {
                address,
                login_file,
            } => {
                let login = match login_file.clone() {
                    Some(file) => Some(run_on_thread(move || CameraLogin::read(&file)).await?),
                    None => None,
                };
                let login = login.as_ref();
                Some(match address.starts_with(RTSP) {
                    true => rtsp_camera::fetch(address, login).await?,
                    false => RawPicture::Jpeg(http_camera::fetch(address, login).await?),
                })
            }
        };
        let taken = self.0.clock.now();
        run_on_thread(move || {
            // A device that hangs keeps the lock, and the next caller gets a timeout.
            let _guard = guard;
            let (raw, taken) = match (sent, &camera.source) {
                (None, PictureSource::Device { path, size_px }) => {
                    let raw = v4l2_device::take(path, *size_px, camera.timeout, &camera.clock)?;
                    (raw, camera.clock.now())
                }
                (sent, _) => (sent.unwrap_or(RawPicture::Jpeg(Vec::new())), taken),
            };
            camera.finish(raw, taken)
        })
        .await
    }
}

impl CameraShared {
    /// Decodes a picture, and gives it the earlier time if it equals the previous one.
    fn finish(&self, raw: RawPicture, taken: ClockInstant) -> Result<CameraPicture, CameraFailure> {
        let (frame, jpeg) = match raw {
            RawPicture::Frame(frame) => (frame, None),
            RawPicture::Jpeg(bytes) => (decode(&bytes)?, Some(bytes)),
            #[cfg(feature = "rtsp")]
            RawPicture::H264(frames) => (rtsp_camera::decode(&frames)?, None),
        };
        let current = PreviousPicture {
            hash: blake3::hash(frame.rgb()),
            taken,
            at_ms: calendar_ms(),
        };
        let mut previous = self.previous.locked();
        let same = previous.filter(|previous| previous.hash == current.hash);
        let PreviousPicture { taken, at_ms, .. } = *previous.insert(same.unwrap_or(current));
        Ok(CameraPicture {
            frame,
            jpeg,
            taken,
            at_ms,
        })
    }
}

/// Runs blocking or long work on a separate thread, which is never joined.
async fn run_on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CameraFailure> + Send + 'static,
) -> Result<T, CameraFailure> {
    let (sender, result) = oneshot::channel();
    let thread = std::thread::Builder::new().name("camera".to_owned());
    let spawned = thread.spawn(move || {
        // The caller may be gone.
        let _ = sender.send(work());
    });
    spawned.map_err(|error| CameraFailure::Thread(error.to_string()))?;
    let panicked = |_| CameraFailure::Thread("the reader failed on this picture".to_owned());
    result.await.map_err(panicked)?
}
