//! Finds tags in a picture.
//!
//! The finder is the AprilTag library. It decodes anything that looks like a square, and in a family of
//! sixteen bits one square in five hundred is a tag by chance: so a tag must also have the
//! black frame and the white edge of a printed tag.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use apriltag::{Detector, Family as LibraryFamily, Image};
use nalgebra::Matrix3;

use super::grey_picture::GreyPicture;
use super::homography::{homography, map_point};
use super::{DetectedTag, Family, ImageFrame, VisionError};

/// Returns the number of wrong bits that are corrected: none in the small family, where that would accept a third of all
/// codes.
const fn bits_corrected(family: Family) -> usize {
    match family {
        Family::Tag16h5 => 0,
        Family::Tag36h11 => 1,
    }
}

/// Least contrast of black and white in the bits, in grey levels.
const MARGIN_MIN: f32 = 12.0;

/// Least contrast of the white edge and the black frame, in grey levels.
const CONTRAST_MIN: f64 = 18.0;

/// Least fraction of the samples of edge and frame that must have the right brightness.
const CLEAN_FRACTION_MIN: f64 = 0.9;

/// Number of samples along each side.
const SIDE_SAMPLES: usize = 9;

/// Shortest side of a tag whose bits can be read.
const SIDE_PX_MIN: f64 = 9.0;

/// Number of pixels from which squares are searched at half the size; corners are refined at full size.
const HALVED_FROM_PX: usize = 2_500_000;

/// Alignment of rows that the library prefers.
const ROW_BYTES: usize = 96;

/// Shortest side of a picture that is passed to the library, which divides it into tiles and expects several. No tag
/// could be read in a smaller one.
const PICTURE_PX_MIN: u32 = 32;

/// Maximum number of detections in one picture; more are noise.
const FOUND_MAX: usize = 256;

/// Returns the tags of a family in a picture, in no particular order. Leaves out an id that appears more than once,
/// because the sheet's own tag cannot be told from the other.
///
/// # Errors
/// If the finder has no memory for the picture, or its thread is gone.
pub fn find(frame: &ImageFrame, family: Family) -> Result<Vec<DetectedTag>, VisionError> {
    if frame.size_px().iter().any(|side| *side < PICTURE_PX_MIN) {
        return Ok(Vec::new());
    }
    let grey: Arc<[u8]> = frame.grey().into();
    let detections = TagFinder::detect(frame.size_px(), &grey, family)?;
    let picture = GreyPicture {
        size_px: frame.size_px(),
        grey: &grey,
    };
    let tags: Vec<DetectedTag> = detections
        .iter()
        .filter_map(|detection| detection.verify(family, &picture))
        .collect();
    let is_unique =
        |tag: &&DetectedTag| tags.iter().filter(|other| other.id == tag.id).count() == 1;
    Ok(tags.iter().filter(is_unique).copied().collect())
}

/// Reason that the finder cannot search a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagFinderError {
    /// The thread that owns the library has ended.
    #[error("the tag finder's thread has ended. Next: restart the node")]
    ThreadGone,
    /// The library has no detector for the family.
    #[error("it has no detector")]
    NoDetector,
    /// The library failed: its message.
    #[error("{0}")]
    Library(String),
}

impl TagFinderError {
    fn library(error: impl std::error::Error) -> Self {
        Self::Library(error.to_string())
    }
}

/// Request to the finder's thread, with the channel for its reply.
struct FindRequest {
    size_px: [u32; 2],
    grey: Arc<[u8]>,
    family: Family,
    reply: Sender<Result<Vec<RawDetection>, TagFinderError>>,
}

/// Detection by the library.
struct RawDetection {
    id: usize,
    hamming: usize,
    margin: f32,
    corners_px: [[f64; 2]; 4],
}

/// Thread that owns the library. There is only one, and it lives as long as the process: a picture
/// takes some ten megabytes during the search, and the library never frees a family's
/// tables.
struct TagFinder {
    small: Option<Detector>,
    large: Option<Detector>,
}

static FINDER: OnceLock<Option<Mutex<Sender<FindRequest>>>> = OnceLock::new();

impl TagFinder {
    /// Has the finder's thread search a picture.
    fn detect(
        size_px: [u32; 2],
        grey: &Arc<[u8]>,
        family: Family,
    ) -> Result<Vec<RawDetection>, VisionError> {
        let gone = || TagFinderError::ThreadGone;
        let (reply, detections) = channel();
        let request = FindRequest {
            size_px,
            grey: Arc::clone(grey),
            family,
            reply,
        };
        let finder = FINDER.get_or_init(Self::spawn).as_ref().ok_or_else(gone)?;
        finder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send(request)
            .map_err(|_| gone())?;
        Ok(detections.recv().map_err(|_| gone())??)
    }

    fn spawn() -> Option<Mutex<Sender<FindRequest>>> {
        let (sender, requests) = channel::<FindRequest>();
        let thread = std::thread::Builder::new().name("tag finder".to_owned());
        let spawned = thread.spawn(move || {
            let mut finder = Self {
                small: None,
                large: None,
            };
            for request in requests {
                // The sender may have given up.
                let _ = request.reply.send(finder.search(&request));
            }
        });
        spawned.ok().map(|_| Mutex::new(sender))
    }

    fn search(&mut self, request: &FindRequest) -> Result<Vec<RawDetection>, TagFinderError> {
        let image = image(request)?;
        let detector = self.detector(request.family)?;
        let is_large = request.grey.len() > HALVED_FROM_PX;
        detector.set_decimation(if is_large { 2.0 } else { 1.0 });
        let found = detector.detect(&image);
        let detections = found.iter().take(FOUND_MAX).map(|found| RawDetection {
            id: found.id(),
            hamming: found.hamming(),
            margin: found.decision_margin(),
            corners_px: found.corners(),
        });
        Ok(detections.collect())
    }

    fn detector(&mut self, family: Family) -> Result<&mut Detector, TagFinderError> {
        let (slot, library_family): (_, fn() -> LibraryFamily) = match family {
            Family::Tag16h5 => (&mut self.small, LibraryFamily::tag_16h5),
            Family::Tag36h11 => (&mut self.large, LibraryFamily::tag_36h11),
        };
        if slot.is_none() {
            let bits = bits_corrected(family);
            let built = Detector::builder()
                .add_family_bits(library_family(), bits)
                .build();
            let mut detector = built.map_err(TagFinderError::library)?;
            detector.set_thread_number(1);
            detector.set_refine_edges(true);
            *slot = Some(detector);
        }
        slot.as_mut().ok_or(TagFinderError::NoDetector)
    }
}

fn image(request: &FindRequest) -> Result<Image, TagFinderError> {
    let [width, height] = request.size_px.map(|side| side as usize);
    let image = Image::zeros_with_alignment(width, height, ROW_BYTES);
    let mut image = image.map_err(TagFinderError::library)?;
    let stride = image.stride().max(1);
    let rows = image.as_slice_mut().chunks_mut(stride);
    for (row, from) in rows.zip(request.grey.chunks_exact(width)) {
        for (to, from) in row.iter_mut().zip(from) {
            *to = *from;
        }
    }
    Ok(image)
}

impl RawDetection {
    /// Returns the tag if the detection looks like a printed tag.
    fn verify(&self, family: Family, picture: &GreyPicture<'_>) -> Option<DetectedTag> {
        let is_clear = self.hamming <= bits_corrected(family) && self.margin >= MARGIN_MIN;
        let id = u16::try_from(self.id).ok();
        let id = id.filter(|id| *id < family.count())?;
        let corners_px = self.corners_px;
        let is_tag = is_clear && is_square(&corners_px) && is_framed(&corners_px, family, picture);
        is_tag.then_some(DetectedTag { id, corners_px })
    }
}

/// Returns whether four corners have the right orientation, and sides that are long enough.
fn is_square(corners: &[[f64; 2]; 4]) -> bool {
    let [a, b, c, d] = *corners;
    let mut corners = [[a, b, c], [b, c, d], [c, d, a], [d, a, b]].into_iter();
    corners.all(|[p, q, r]| {
        let (side, next) = ([q[0] - p[0], q[1] - p[1]], [r[0] - q[0], r[1] - q[1]]);
        // y runs down in pictures, so the order lower left, lower right, upper right turns to the left.
        side[0] * next[1] - side[1] * next[0] < 0.0 && side[0].hypot(side[1]) >= SIDE_PX_MIN
    })
}

/// Returns whether there is a black frame inside the corners and a white edge outside, all around. An edge
/// beyond the picture does not count.
fn is_framed(corners: &[[f64; 2]; 4], family: Family, picture: &GreyPicture<'_>) -> bool {
    let unit = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]];
    let pairs: Vec<_> = unit.into_iter().zip(*corners).collect();
    let Some(h) = homography(&pairs) else {
        return false;
    };
    let cell = 1.0 / f64::from(family.cells_per_side());
    let [black, white] = [1.0 - cell, 1.0 + cell].map(|half| sample_square(picture, &h, half));
    let Some((black, white)) = black.zip(white) else {
        return false;
    };
    let (dark, bright) = (median(&black), median(&white));
    let threshold = f64::midpoint(dark, bright);
    let correct = black.iter().filter(|v| **v < threshold).count()
        + white.iter().filter(|v| **v > threshold).count();
    let fraction = correct as f64 / (black.len() + white.len()) as f64;
    bright - dark >= CONTRAST_MIN && fraction >= CLEAN_FRACTION_MIN
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Samples the brightness along a square of this half side in the tag's own coordinates.
fn sample_square(picture: &GreyPicture<'_>, h: &Matrix3<f64>, half: f64) -> Option<Vec<f64>> {
    let mut samples = Vec::with_capacity(4 * SIDE_SAMPLES);
    for sample in 0..SIDE_SAMPLES {
        let along = half * (2.0 * (sample as f64 + 0.5) / SIDE_SAMPLES as f64 - 1.0);
        for at in [[along, -half], [along, half], [-half, along], [half, along]] {
            samples.push(picture.at(map_point(h, at)?)?);
        }
    }
    Some(samples)
}
