//! Pictures of cameras as features of a data set: at each frame the one that was taken nearest to it.

use std::collections::BTreeSet;
use std::path::Path;

use jpeg_decoder::PixelFormat;

use crate::error::RecordingError;
use crate::lerobot::episode::Episode;
use crate::lerobot::statistics::FeatureStatistics;
use crate::recorded_job::{RecordedStill, RecordedTick};

/// A picture that was taken longer before or after a frame says nothing of it.
const APART_NS_MAX: u64 = 1_000_000_000;

/// Pictures and pixels of each that statistics are made of, at most: LeRobot takes samples as well.
const SAMPLES_MAX: usize = 100;
const PIXELS_MAX: usize = 10_000;

/// A camera whose pictures every frame has.
pub(crate) struct CameraFeature {
    /// `observation.images.NAME`.
    pub(crate) name: String,
    camera: String,
    /// Height and width.
    pub(crate) size_px: [usize; 2],
}

/// A picture as its pixels.
struct DecodedPicture {
    size_px: [usize; 2],
    /// Three bytes a pixel.
    rgb: Vec<u8>,
}

/// Returns the cameras whose pictures every frame has, all of one size, and the names of the others.
pub(crate) fn cameras(
    episodes: &[Episode<'_>],
    out: &Path,
) -> Result<(Vec<CameraFeature>, Vec<String>), RecordingError> {
    let names: BTreeSet<&str> = episodes
        .iter()
        .flat_map(|episode| &episode.recording.pictures)
        .map(|picture| picture.camera.as_str())
        .collect();
    let (mut features, mut left_out) = (Vec::new(), Vec::new());
    for camera in names {
        let name = format!("observation.images.{camera}");
        let pictures: Option<Vec<&RecordedStill>> = episodes
            .iter()
            .flat_map(|episode| episode.frames.iter().map(move |tick| (episode, *tick)))
            .map(|(episode, tick)| nearest(episode, camera, tick))
            .collect();
        let first = pictures.as_ref().and_then(|all| all.first().copied());
        match first {
            Some(first) => features.push(CameraFeature {
                name,
                camera: camera.to_owned(),
                size_px: decoded(first, out)?.size_px,
            }),
            None => left_out.push(name),
        }
    }
    Ok((features, left_out))
}

fn nearest<'a>(
    episode: &Episode<'a>,
    camera: &str,
    tick: &RecordedTick,
) -> Option<&'a RecordedStill> {
    let pictures = episode.recording.pictures.iter();
    let of_camera = pictures.filter(|picture| picture.camera == camera);
    of_camera
        .min_by_key(|picture| picture.at_ns.abs_diff(tick.at_ns))
        .filter(|picture| picture.at_ns.abs_diff(tick.at_ns) <= APART_NS_MAX)
}

impl CameraFeature {
    /// The pictures of an episode, one a frame, with names for them.
    pub(crate) fn pictures<'a>(&self, episode: &Episode<'a>) -> Vec<(&'a [u8], String)> {
        let frames = episode.frames.iter().enumerate();
        let pictures = frames.filter_map(|(frame, tick)| {
            let picture = nearest(episode, &self.camera, tick)?;
            let name = format!("frame-{frame:06}.{}", picture.format);
            Some((picture.bytes.as_slice(), name))
        });
        pictures.collect()
    }

    /// Statistics of its red, green and blue, from 0 to 1, of a sample of frames and pixels.
    ///
    /// # Errors
    /// A picture that cannot be read, or that has another size than the first.
    pub(crate) fn statistics(
        &self,
        episodes: &[Episode<'_>],
        out: &Path,
    ) -> Result<FeatureStatistics, RecordingError> {
        let frames: Vec<(&Episode<'_>, &RecordedTick)> = episodes
            .iter()
            .flat_map(|episode| episode.frames.iter().map(move |tick| (episode, *tick)))
            .collect();
        let mut channels = vec![Vec::new(); 3];
        for (episode, tick) in frames
            .iter()
            .step_by(frames.len().div_ceil(SAMPLES_MAX).max(1))
        {
            let Some(picture) = nearest(episode, &self.camera, tick) else {
                continue;
            };
            let decoded = decoded(picture, out)?;
            if decoded.size_px != self.size_px {
                let why = format!(
                    "camera {} has pictures of several sizes: export those recordings apart",
                    self.camera
                );
                return Err(RecordingError::unusable(out, why));
            }
            let pixels = decoded.rgb.len() / 3;
            let step = pixels.div_ceil(PIXELS_MAX).max(1);
            for pixel in decoded.rgb.chunks_exact(3).step_by(step) {
                for (channel, value) in channels.iter_mut().zip(pixel) {
                    channel.push(f64::from(*value) / 255.0);
                }
            }
        }
        let mut statistics = FeatureStatistics::of(&self.name, channels);
        statistics.count = frames.len();
        Ok(statistics)
    }
}

fn decoded(picture: &RecordedStill, out: &Path) -> Result<DecodedPicture, RecordingError> {
    let read = match picture.format.as_str() {
        "png" => png_pixels(&picture.bytes),
        _ => jpeg_pixels(&picture.bytes),
    };
    read.ok_or_else(|| {
        let why = format!("a picture of camera {} cannot be read", picture.camera);
        RecordingError::unusable(out, why)
    })
}

fn png_pixels(bytes: &[u8]) -> Option<DecodedPicture> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .ok()?;
    let mut rgb = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut rgb).ok()?;
    rgb.truncate(info.buffer_size());
    let is_rgb = info.color_type == png::ColorType::Rgb && info.bit_depth == png::BitDepth::Eight;
    is_rgb.then_some(DecodedPicture {
        size_px: [
            usize::try_from(info.height).ok()?,
            usize::try_from(info.width).ok()?,
        ],
        rgb,
    })
}

fn jpeg_pixels(bytes: &[u8]) -> Option<DecodedPicture> {
    let mut decoder = jpeg_decoder::Decoder::new(bytes);
    let pixels = decoder.decode().ok()?;
    let info = decoder.info()?;
    let rgb = match info.pixel_format {
        PixelFormat::RGB24 => pixels,
        PixelFormat::L8 => pixels.into_iter().flat_map(|grey| [grey; 3]).collect(),
        _ => return None,
    };
    Some(DecodedPicture {
        size_px: [usize::from(info.height), usize::from(info.width)],
        rgb,
    })
}
