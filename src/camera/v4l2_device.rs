//! One picture from a USB camera, by V4L2.

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

/// The major number of every video device: nothing else is opened, least of all an arm's port.
const VIDEO_MAJOR: u32 = 81;

/// The first pictures of a camera that was just opened are too dark or too bright.
const SETTLING: usize = 3;

/// More pictures than this are not looked at for one that is whole.
const PICTURES_MAX: usize = 30;

/// Largest number of formats that a camera may list.
const FORMATS_MAX: usize = 64;

/// Takes a picture. It opens the device and closes it again: what it gives is never an old one.
pub(super) fn take(
    path: &Path,
    size_px: [u32; 2],
    within: Duration,
    clock: &NodeClock,
) -> Result<RawPicture, CameraFailure> {
    let until = clock.now().after(within);
    check_is_video(path)?;
    let failed = |error| device_error(path, error);
    let device = Device::open(path).map_err(failed)?;
    let format = choose(path, &device)?;
    let [width, height] = size_px;
    let capture = device.video_capture(PixFormat::new(width, height, format));
    let capture = capture.map_err(failed)?;
    let got = NegotiatedFormat::of(capture.format())?;
    let mut stream = capture.into_stream().map_err(failed)?;
    for number in 0..PICTURES_MAX {
        wait(path, &stream, until, within, clock)?;
        let read = stream.dequeue(|view| {
            let whole = !view.is_error() && number >= SETTLING && !view.is_empty();
            // The device has this buffer again in a moment.
            let bytes = view.iter().copied().take(got.bytes_max());
            Ok(whole.then(|| bytes.collect::<Vec<u8>>()))
        });
        match read.map_err(failed)? {
            // Cut short on the way, which the driver does not see of a JPEG: the next may be whole.
            Some(bytes) if got.is_jpeg && !has_end(&bytes) => {}
            Some(bytes) => return got.raw(bytes),
            None => {}
        }
    }
    Err(CameraFailure::Late(within))
}

/// Returns whether a JPEG has its end marker. Some cameras pad the buffer behind it.
pub(super) fn has_end(jpeg: &[u8]) -> bool {
    jpeg.windows(2).any(|two| two == [0xff, 0xd9])
}

/// Checks that the path is a video device, before it is opened.
fn check_is_video(path: &Path) -> Result<(), CameraFailure> {
    let what = fs::metadata(path).map_err(|error| device_error(path, error))?;
    let is_video =
        what.file_type().is_char_device() && rustix::fs::major(what.rdev()) == VIDEO_MAJOR;
    if is_video {
        Ok(())
    } else {
        Err(no_camera(path, "it is no video device"))
    }
}

fn no_camera(path: &Path, what: &str) -> CameraFailure {
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
            // Its other end is gone: it was unplugged.
            Some(Errno::NODEV | Errno::NXIO) => CameraFailure::Missing(path),
            Some(Errno::NOTTY) => no_camera(&path, &error.to_string()),
            _ => CameraFailure::Device { path, what: error },
        },
    }
}

/// A form of pictures that is read here: JPEG first, for it comes fast enough by USB 2.
fn choose(path: &Path, device: &Device) -> Result<PixelFormat, CameraFailure> {
    let able = device
        .capabilities()
        .map_err(|error| device_error(path, error))?;
    let able = able.device_capabilities();
    if !able.contains(CapabilityFlags::VIDEO_CAPTURE) {
        return Err(no_camera(path, "it gives no pictures"));
    }
    let listed = device.formats(BufType::VIDEO_CAPTURE).take(FORMATS_MAX);
    let listed = listed.filter_map(|one| Some(one.ok()?.pixel_format()));
    best(&listed.collect::<Vec<_>>())
}

pub(super) fn best(listed: &[PixelFormat]) -> Result<PixelFormat, CameraFailure> {
    let read = [PixelFormat::MJPG, PixelFormat::JPEG, PixelFormat::YUYV];
    let found = read.into_iter().find(|format| listed.contains(format));
    found.ok_or_else(|| CameraFailure::Format(format_names(listed)))
}

fn format_names(formats: &[PixelFormat]) -> String {
    let word = |format: &PixelFormat| String::from_utf8_lossy(&format.as_fourcc()).into_owned();
    let all: Vec<String> = formats.iter().map(word).collect();
    if all.is_empty() {
        "nothing".to_owned()
    } else {
        all.join(", ")
    }
}

/// Until a picture is there, or the time is up.
fn wait(
    path: &Path,
    stream: &ReadStream,
    until: ClockInstant,
    within: Duration,
    clock: &NodeClock,
) -> Result<(), CameraFailure> {
    let left = until.since(clock.now());
    let timeout = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    match poll(&mut fds, Some(&timeout)) {
        Ok(0) => Err(CameraFailure::Late(within)),
        Ok(_) => Ok(()),
        Err(error) => Err(device_error(path, error.into())),
    }
}

/// Format that the driver agreed to.
#[derive(Debug)]
pub(super) struct NegotiatedFormat {
    size_px: [u32; 2],
    /// From one row to the next; 0 of a JPEG.
    row_bytes: usize,
    is_jpeg: bool,
}

impl NegotiatedFormat {
    pub(super) fn of(format: &PixFormat) -> Result<Self, CameraFailure> {
        let kind = format.pixel_format();
        let is_jpeg = kind == PixelFormat::MJPG || kind == PixelFormat::JPEG;
        if !is_jpeg && kind != PixelFormat::YUYV {
            return Err(CameraFailure::Format(format_names(&[kind])));
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

    pub(super) fn raw(&self, bytes: Vec<u8>) -> Result<RawPicture, CameraFailure> {
        if self.is_jpeg {
            return Ok(RawPicture::Jpeg(bytes));
        }
        let [width, height] = self.size_px;
        let rgb = yuyv(&bytes, width as usize, height as usize, self.row_bytes);
        Ok(RawPicture::Frame(ImageFrame::new(width, height, rgb)?))
    }
}

/// Two pixels in four bytes, Rec. 601 with head and foot room. Rows that are cut short lack pixels.
pub(super) fn yuyv(bytes: &[u8], width: usize, height: usize, row_bytes: usize) -> Vec<u8> {
    let row_bytes = row_bytes.max(width * 2).max(1);
    let mut rgb = Vec::with_capacity(width * height * 3);
    for row in bytes.chunks(row_bytes).take(height) {
        let pairs = row.as_chunks().0.iter();
        let pairs = pairs.flat_map(|[one, u, two, v]| [one, two].map(|y| colour(*y, *u, *v)));
        rgb.extend(pairs.take(width).flatten());
    }
    rgb
}

fn colour(y: u8, u: u8, v: u8) -> [u8; 3] {
    let y = 298 * (i32::from(y) - 16);
    let [u, v] = [u, v].map(|part| i32::from(part) - 128);
    let byte = |value: i32| u8::try_from(((value + 128) >> 8).clamp(0, 255)).unwrap_or(0);
    [
        byte(y + 409 * v),
        byte(y - 100 * u - 208 * v),
        byte(y + 516 * u),
    ]
}
