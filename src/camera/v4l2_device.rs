//! Takes one picture from a USB camera by V4L2.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use linuxvideo::format::{PixFormat, PixelFormat};
use linuxvideo::stream::ReadStream;
use linuxvideo::{BufType, CapabilityFlags, Device};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::jpeg_decode::JPEG_BYTES_MAX;
use super::{CameraFailure, RawPicture};
use base::clock::NodeClock;
use base::units::ClockInstant;
use vision::{ImageFrame, PIXELS_MAX};

/// Major number of video devices. No other device is opened, least of all an arm's port.
const VIDEO_MAJOR: u32 = 81;

/// Number of first pictures to skip, which are too dark or too bright after a camera was opened.
const SETTLING: usize = 3;

/// Maximum number of pictures to wait for a complete one.
const PICTURES_MAX: usize = 30;

/// Maximum number of formats read from a camera.
const FORMATS_MAX: usize = 64;

/// Takes a picture. Opens the device for it and closes it again, so that the picture is never an old one.
pub(super) fn take(
    path: &Path,
    size_px: [u32; 2],
    timeout: Duration,
    clock: &NodeClock,
) -> Result<RawPicture, CameraFailure> {
    let deadline = clock.now().after(timeout);
    check_is_video(path)?;
    let failed = |error| device_error(path, error);
    let device = Device::open(path).map_err(failed)?;
    let format = choose_format(path, &device)?;
    let [width, height] = size_px;
    let capture = device.video_capture(PixFormat::new(width, height, format));
    let capture = capture.map_err(failed)?;
    let negotiated = NegotiatedFormat::of(capture.format())?;
    let mut stream = capture.into_stream().map_err(failed)?;
    for number in 0..PICTURES_MAX {
        wait_for_picture(path, &stream, deadline, timeout, clock)?;
        let read = stream.dequeue(|view| {
            let is_usable = !view.is_error() && number >= SETTLING && !view.is_empty();
            // Copied, because the device will reuse this buffer.
            let bytes = view.iter().copied().take(negotiated.bytes_max());
            Ok(is_usable.then(|| bytes.collect::<Vec<u8>>()))
        });
        match read.map_err(failed)? {
            // The JPEG was cut short on the way, unnoticed by the driver: the next may be complete.
            Some(bytes) if negotiated.is_jpeg && !has_end(&bytes) => {}
            Some(bytes) => return negotiated.picture(bytes),
            None => {}
        }
    }
    Err(CameraFailure::Late(timeout))
}

/// Returns whether a JPEG has its end marker. Some cameras pad the buffer after it.
pub(super) fn has_end(jpeg: &[u8]) -> bool {
    jpeg.windows(2).any(|pair| pair == [0xff, 0xd9])
}

/// Checks that the path is a video device, before it is opened.
fn check_is_video(path: &Path) -> Result<(), CameraFailure> {
    let metadata = fs::metadata(path).map_err(|error| device_error(path, error))?;
    let is_video =
        metadata.file_type().is_char_device() && rustix::fs::major(metadata.rdev()) == VIDEO_MAJOR;
    if is_video {
        Ok(())
    } else {
        Err(not_a_camera(path, "it is not a video device"))
    }
}

fn not_a_camera(path: &Path, what: &str) -> CameraFailure {
    CameraFailure::NotACamera {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}

pub(super) fn device_error(path: &Path, error: io::Error) -> CameraFailure {
    let errno = Errno::from_io_error(&error);
    let path = path.to_owned();
    match error.kind() {
        ErrorKind::NotFound => CameraFailure::Missing(path),
        ErrorKind::PermissionDenied => CameraFailure::Denied(path),
        _ => match errno {
            Some(Errno::BUSY) => CameraFailure::Busy(path),
            // The camera was unplugged.
            Some(Errno::NODEV | Errno::NXIO) => CameraFailure::Missing(path),
            Some(Errno::NOTTY) => not_a_camera(&path, &error.to_string()),
            _ => CameraFailure::Device { path, what: error },
        },
    }
}

/// Chooses a supported format, preferably JPEG, which is fast enough over USB 2.
fn choose_format(path: &Path, device: &Device) -> Result<PixelFormat, CameraFailure> {
    let capabilities = device
        .capabilities()
        .map_err(|error| device_error(path, error))?
        .device_capabilities();
    if !capabilities.contains(CapabilityFlags::VIDEO_CAPTURE) {
        return Err(not_a_camera(path, "it does not send pictures"));
    }
    let formats = device.formats(BufType::VIDEO_CAPTURE).take(FORMATS_MAX);
    let formats = formats.filter_map(|format| Some(format.ok()?.pixel_format()));
    best_format(&formats.collect::<Vec<_>>())
}

pub(super) fn best_format(listed: &[PixelFormat]) -> Result<PixelFormat, CameraFailure> {
    let supported = [PixelFormat::MJPG, PixelFormat::JPEG, PixelFormat::YUYV];
    let best = supported.into_iter().find(|format| listed.contains(format));
    best.ok_or_else(|| CameraFailure::Format(format_names(listed)))
}

fn format_names(formats: &[PixelFormat]) -> String {
    let name = |format: &PixelFormat| String::from_utf8_lossy(&format.as_fourcc()).into_owned();
    let names: Vec<String> = formats.iter().map(name).collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    }
}

/// Waits until a picture is available, or fails at the deadline.
fn wait_for_picture(
    path: &Path,
    stream: &ReadStream,
    deadline: ClockInstant,
    timeout: Duration,
    clock: &NodeClock,
) -> Result<(), CameraFailure> {
    let remaining = deadline.since(clock.now());
    let poll_timeout = Timespec {
        tv_sec: i64::try_from(remaining.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(remaining.subsec_nanos()),
    };
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    match poll(&mut fds, Some(&poll_timeout)) {
        Ok(0) => Err(CameraFailure::Late(timeout)),
        Ok(_) => Ok(()),
        Err(error) => Err(device_error(path, error.into())),
    }
}

/// Format that the driver agreed to.
#[derive(Debug)]
pub(super) struct NegotiatedFormat {
    size_px: [u32; 2],
    /// Bytes from one row to the next; 0 for a JPEG.
    row_bytes: usize,
    is_jpeg: bool,
}

impl NegotiatedFormat {
    pub(super) fn of(format: &PixFormat) -> Result<Self, CameraFailure> {
        let pixel_format = format.pixel_format();
        let is_jpeg = pixel_format == PixelFormat::MJPG || pixel_format == PixelFormat::JPEG;
        if !is_jpeg && pixel_format != PixelFormat::YUYV {
            return Err(CameraFailure::Format(format_names(&[pixel_format])));
        }
        let size_px = [format.width(), format.height()];
        ImageFrame::pixels(size_px[0], size_px[1])?;
        Ok(Self {
            size_px,
            row_bytes: format.bytes_per_line() as usize,
            is_jpeg,
        })
    }

    fn bytes_max(&self) -> usize {
        if self.is_jpeg {
            JPEG_BYTES_MAX
        } else {
            PIXELS_MAX * 2
        }
    }

    pub(super) fn picture(&self, bytes: Vec<u8>) -> Result<RawPicture, CameraFailure> {
        if self.is_jpeg {
            return Ok(RawPicture::Jpeg(bytes));
        }
        let [width, height] = self.size_px;
        let rgb = rgb_from_yuyv(&bytes, width as usize, height as usize, self.row_bytes);
        Ok(RawPicture::Frame(ImageFrame::new(width, height, rgb)?))
    }
}

/// Converts YUYV, two pixels in four bytes, to RGB by Rec. 601 with head and foot room. Rows that are cut short lack
/// pixels.
pub(super) fn rgb_from_yuyv(
    bytes: &[u8],
    width: usize,
    height: usize,
    row_bytes: usize,
) -> Vec<u8> {
    let row_bytes = row_bytes.max(width * 2).max(1);
    let mut rgb = Vec::with_capacity(width * height * 3);
    for row in bytes.chunks(row_bytes).take(height) {
        let pairs = row.as_chunks().0.iter();
        let pairs = pairs.flat_map(|[y1, u, y2, v]| [y1, y2].map(|y| rgb_from_yuv(*y, *u, *v)));
        rgb.extend(pairs.take(width).flatten());
    }
    rgb
}

fn rgb_from_yuv(y: u8, u: u8, v: u8) -> [u8; 3] {
    let y = 298 * (i32::from(y) - 16);
    let [u, v] = [u, v].map(|part| i32::from(part) - 128);
    let byte = |value: i32| u8::try_from(((value + 128) >> 8).clamp(0, 255)).unwrap_or(0);
    [
        byte(y + 409 * v),
        byte(y - 100 * u - 208 * v),
        byte(y + 516 * u),
    ]
}
