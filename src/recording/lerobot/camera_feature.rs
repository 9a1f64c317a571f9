//! Cameras' pictures as features of a data set: each frame has the picture that was taken nearest to it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::RecordingError;
use crate::lerobot::episode::Episode;
use crate::lerobot::feature::LeftOut;
use crate::lerobot::statistics::FeatureStatistics;
use crate::recorded_job::{RecordedStill, RecordedTick};
use vision::ImageFrame;

/// Longest time between a frame and its picture.
const DISTANCE_NS_MAX: u64 = 1_000_000_000;

/// Largest number of pictures, and of pixels of each, in statistics: LeRobot samples as well.
const SAMPLES_MAX: usize = 100;
const PIXELS_MAX: usize = 10_000;

/// A camera with a picture for every frame.
pub(crate) struct CameraFeature {
    /// `observation.images.NAME`.
    pub(crate) name: String,
    camera: String,
    /// Height and width.
    pub(crate) size_px: [usize; 2],
}

/// Returns the cameras with a picture for every frame, and the others.
pub(crate) fn cameras(
    episodes: &[Episode<'_>],
    out: &Path,
) -> Result<(Vec<CameraFeature>, Vec<LeftOut>), RecordingError> {
    let names: BTreeSet<&str> = episodes
        .iter()
        .flat_map(|episode| &episode.recording.pictures)
        .map(|picture| picture.camera.as_str())
        .collect();
    let (mut features, mut left_out) = (Vec::new(), Vec::new());
    for camera in names {
        let name = format!("observation.images.{camera}");
        let pictures: Option<Vec<&RecordedStill>> = frames(episodes)
            .map(|(episode, tick)| nearest(episode, camera, tick))
            .collect();
        match pictures.and_then(|all| all.first().copied()) {
            Some(first) => features.push(CameraFeature {
                name,
                camera: camera.to_owned(),
                size_px: height_and_width(&decode(first, out)?),
            }),
            None => left_out.push(LeftOut::new(&name, episodes, |episode| {
                let mut frames = episode.frames.iter();
                frames.all(|tick| nearest(episode, camera, tick).is_some())
            })),
        }
    }
    Ok((features, left_out))
}

/// Yields every frame with its episode.
fn frames<'a, 'e>(
    episodes: &'e [Episode<'a>],
) -> impl Iterator<Item = (&'e Episode<'a>, &'a RecordedTick)> {
    let episodes = episodes.iter();
    episodes.flat_map(|episode| episode.frames.iter().map(move |tick| (episode, *tick)))
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
        .filter(|picture| picture.at_ns.abs_diff(tick.at_ns) <= DISTANCE_NS_MAX)
}

impl CameraFeature {
    /// Returns an episode's pictures, one for each frame, with their file names.
    pub(crate) fn pictures<'a>(&self, episode: &Episode<'a>) -> Vec<(&'a [u8], String)> {
        let frames = episode.frames.iter().enumerate();
        let pictures = frames.filter_map(|(frame, tick)| {
            let picture = nearest(episode, &self.camera, tick)?;
            let name = format!("frame-{frame:06}.{}", picture.format);
            Some((picture.bytes.as_slice(), name))
        });
        pictures.collect()
    }

    /// Returns statistics of red, green and blue, from 0 to 1, over a sample of frames and pixels.
    ///
    /// # Errors
    /// A picture that cannot be read, or whose size differs from the first's.
    pub(crate) fn statistics(
        &self,
        episodes: &[Episode<'_>],
        out: &Path,
    ) -> Result<FeatureStatistics, RecordingError> {
        let count = frames(episodes).count();
        let step = count.div_ceil(SAMPLES_MAX).max(1);
        let mut channels = vec![Vec::new(); 3];
        for (episode, tick) in frames(episodes).step_by(step) {
            let Some(picture) = nearest(episode, &self.camera, tick) else {
                continue;
            };
            let image = decode(picture, out)?;
            if height_and_width(&image) != self.size_px {
                let reason = format!(
                    "camera {} has pictures of several sizes: export those recordings separately",
                    self.camera
                );
                return Err(RecordingError::unusable(out, reason));
            }
            let pixels = image.rgb().len() / 3;
            let step = pixels.div_ceil(PIXELS_MAX).max(1);
            for pixel in image.rgb().chunks_exact(3).step_by(step) {
                for (channel, value) in channels.iter_mut().zip(pixel) {
                    channel.push(f64::from(*value) / 255.0);
                }
            }
        }
        let mut statistics = FeatureStatistics::from_columns(&self.name, channels);
        statistics.count = count;
        Ok(statistics)
    }
}

fn height_and_width(picture: &ImageFrame) -> [usize; 2] {
    let [width, height] = picture.size_px();
    [height, width].map(|px| usize::try_from(px).unwrap_or(usize::MAX))
}

fn decode(picture: &RecordedStill, out: &Path) -> Result<ImageFrame, RecordingError> {
    let image = match picture.format.as_str() {
        "png" => png_pixels(&picture.bytes),
        _ => camera::decode(&picture.bytes).ok(),
    };
    image.ok_or_else(|| {
        let reason = format!("a picture of camera {} cannot be read", picture.camera);
        RecordingError::unusable(out, reason)
    })
}

fn png_pixels(bytes: &[u8]) -> Option<ImageFrame> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .ok()?;
    let mut rgb = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut rgb).ok()?;
    rgb.truncate(info.buffer_size());
    ImageFrame::new(info.width, info.height, rgb).ok()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    const SHEET: &[u8] = include_bytes!("../../../tests/pictures/sheet.jpg");

    /// Returns the picture without the Huffman tables, which USB cameras may omit and which come before the pixels.
    fn without_huffman_tables(jpeg: &[u8]) -> Vec<u8> {
        let (mut kept, mut at) = (jpeg[..2].to_vec(), 2);
        while jpeg[at + 1] != 0xda {
            let length = usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
            let segment = &jpeg[at..at + 2 + length];
            kept.extend(segment.iter().filter(|_| segment[1] != 0xc4));
            at += segment.len();
        }
        kept.extend_from_slice(&jpeg[at..]);
        kept
    }

    #[test]
    fn a_usb_cameras_picture_without_tables_can_be_exported() {
        let decoded = |bytes: Vec<u8>| {
            let picture = RecordedStill {
                at_ns: 0,
                camera: "top".to_owned(),
                format: "jpeg".to_owned(),
                bytes,
            };
            decode(&picture, Path::new("out")).unwrap()
        };
        let without_tables = without_huffman_tables(SHEET);
        assert!(without_tables.len() < SHEET.len());
        assert!(decoded(without_tables) == decoded(SHEET.to_vec()));
    }
}
