//! Pictures from cameras: USB by V4L2, HTTP by snapshot or MJPEG.
//!
//! A camera is not trusted. Its bytes are bounded before they are kept, its pixels before they are
//! made, and a picture has one deadline for all of it. Calls that may block run on a separate thread,
//! and no caller waits for it beyond the deadline.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use base::clock::{NodeClock, calendar_ms};
use base::lock::MutexExt;
use base::units::ClockInstant;
use vision::ImageFrame;

mod camera_error;
mod http_camera;
mod jpeg_decode;
mod mjpeg_stream;
#[cfg(test)]
mod tests;
#[cfg_attr(not(target_os = "linux"), path = "no_device.rs")]
mod v4l2_device;

pub use camera_error::{CameraError, CameraFailure};
pub use jpeg_decode::{JPEG_BYTES_MAX, decode};
pub use mjpeg_stream::MjpegParts;

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
    /// An address that answers with a JPEG, or with a stream of them.
    Http(String),
}

/// A picture, and when it was taken.
#[derive(Clone, Debug)]
pub struct CameraPicture {
    /// Its pixels.
    pub frame: ImageFrame,
    /// The file as the camera made it, where it made one.
    pub jpeg: Option<Vec<u8>>,
    /// Arrival of the last byte, on the camera's own clock. No sensor gives the same picture twice:
    /// a picture equal to the one before, byte for byte, has the earlier one's time.
    pub taken: ClockInstant,
    /// The same on the machine's calendar, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Bytes from a source, before decoding.
enum RawPicture {
    Jpeg(Vec<u8>),
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
    within: Duration,
    clock: NodeClock,
    /// Lock for one picture at a time, because an open device excludes other users.
    turn: Arc<tokio::sync::Mutex<()>>,
    before: Mutex<Option<PreviousPicture>>,
}

/// The last picture: what it was, and when it first came.
#[derive(Clone, Copy, Debug)]
struct PreviousPicture {
    hash: blake3::Hash,
    taken: ClockInstant,
    at_ms: u64,
}

impl CameraHandle {
    /// A camera of a name, which messages say; `within` is what one picture may take in all.
    #[must_use]
    pub fn new(name: &str, source: PictureSource, within: Duration) -> Self {
        Self(Arc::new(CameraShared {
            name: name.to_owned(),
            source,
            within,
            // Pictures are taken in everybody's time, also beside an arm whose own is simulated.
            clock: NodeClock::real(),
            turn: Arc::default(),
            before: Mutex::default(),
        }))
    }

    /// Takes a picture. May be dropped while it waits.
    ///
    /// # Errors
    /// The reason for having no picture, and a fix.
    pub async fn picture(&self) -> Result<CameraPicture, CameraError> {
        let taken = tokio::time::timeout(self.0.within, self.take()).await;
        let why = match taken {
            Ok(Ok(picture)) => return Ok(picture),
            Ok(Err(why)) => why,
            Err(_) => CameraFailure::Late(self.0.within),
        };
        Err(CameraError {
            camera: self.0.name.clone(),
            why,
        })
    }

    /// Returns the age of a picture of this camera.
    #[must_use]
    pub fn age(&self, picture: &CameraPicture) -> Duration {
        self.0.clock.now().since(picture.taken)
    }

    async fn take(&self) -> Result<CameraPicture, CameraFailure> {
        let turn = Arc::clone(&self.0.turn).lock_owned().await;
        let eye = Arc::clone(&self.0);
        let jpeg = match &self.0.source {
            PictureSource::Device { .. } => None,
            PictureSource::Http(address) => Some(http_camera::fetch(address).await?),
        };
        let taken = self.0.clock.now();
        on_thread(move || {
            // A device that hangs keeps its turn: who comes next is told that it is late.
            let _turn = turn;
            let (raw, taken) = match (jpeg, &eye.source) {
                (None, PictureSource::Device { path, size_px }) => {
                    let raw = v4l2_device::take(path, *size_px, eye.within, &eye.clock)?;
                    (raw, eye.clock.now())
                }
                (jpeg, _) => (RawPicture::Jpeg(jpeg.unwrap_or_default()), taken),
            };
            eye.made(raw, taken)
        })
        .await
    }
}

impl CameraShared {
    fn made(&self, raw: RawPicture, taken: ClockInstant) -> Result<CameraPicture, CameraFailure> {
        let (frame, jpeg) = match raw {
            RawPicture::Frame(frame) => (frame, None),
            RawPicture::Jpeg(bytes) => (decode(&bytes)?, Some(bytes)),
        };
        let now = PreviousPicture {
            hash: blake3::hash(frame.rgb()),
            taken,
            at_ms: calendar_ms(),
        };
        let mut before = self.before.locked();
        let same = before.filter(|before| before.hash == now.hash);
        let PreviousPicture { taken, at_ms, .. } = *before.insert(same.unwrap_or(now));
        Ok(CameraPicture {
            frame,
            jpeg,
            taken,
            at_ms,
        })
    }
}

/// Runs blocking or long work on a thread of its own. The thread is never joined.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CameraFailure> + Send + 'static,
) -> Result<T, CameraFailure> {
    let (done, answer) = oneshot::channel();
    let thread = std::thread::Builder::new().name("camera".to_owned());
    let spawned = thread.spawn(move || {
        // A caller that is gone wants no picture.
        let _ = done.send(work());
    });
    spawned.map_err(|error| CameraFailure::Thread(error.to_string()))?;
    let broke = |_| CameraFailure::Thread("it failed on this picture".to_owned());
    answer.await.map_err(broke)?
}
