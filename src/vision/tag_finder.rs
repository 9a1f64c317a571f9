//! Finds tags in a picture.
//!
//! The finder is the AprilTag library. It decodes anything that looks like a square, and in a family of
//! sixteen bits one square in five hundred is a tag by chance: so each tag must also have the
//! black frame and the white edge of a printed tag.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use apriltag::{Detector, Family as Known, Image};
use nalgebra::Matrix3;

use super::grey_picture::GreyPicture;
use super::homography::{homography, map_point};
use super::{DetectedTag, Family, ImageFrame, VisionError};

/// Wrong bits that are put right. None in the small family, where a third of all words would do.
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

/// Share of the edge and frame that must be as they should.
const CLEAN_SHARE_MIN: f64 = 0.9;

/// Places looked at along each side.
const LOOKS: usize = 9;

/// A shorter side has no bits that could be read.
const SIDE_PX_MIN: f64 = 9.0;

/// Number of pixels from which squares are searched at half the size; corners are refined at full size.
const HALVED_FROM_PX: usize = 2_500_000;

/// Rows begin at multiples of this, as the library likes it.
const ROW_BYTES: usize = 96;

/// A smaller picture is not handed to the library, which divides it into tiles and expects some of
/// them. No tag could be read in it.
const PICTURE_PX_MIN: u32 = 32;

/// More tags of one picture are noise.
const FOUND_MAX: usize = 256;

/// Returns the tags of a family in a picture, in no order. Leaves out an id that appears twice: the
/// sheet's own tag cannot be told.
///
/// # Errors
/// If the finder has no memory for the picture, or its thread is gone.
pub fn find(frame: &ImageFrame, family: Family) -> Result<Vec<DetectedTag>, VisionError> {
    if frame.size_px().iter().any(|side| *side < PICTURE_PX_MIN) {
        return Ok(Vec::new());
    }
    let grey: Arc<[u8]> = frame.grey().into();
    let found = TagFinder::ask(frame.size_px(), &grey, family)?;
    let picture = GreyPicture {
        size_px: frame.size_px(),
        grey: &grey,
    };
    let believed = found
        .iter()
        .filter_map(|one| one.verified(family, &picture));
    let seen: Vec<DetectedTag> = believed.collect();
    let once = |one: &&DetectedTag| seen.iter().filter(|other| other.id == one.id).count() == 1;
    Ok(seen.iter().filter(once).copied().collect())
}

/// Reason that the finder does not look through a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagFinderError {
    /// The thread that owns the library has ended.
    #[error("its thread is gone; start the node again")]
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

/// Request to the finder, with the channel for its answer.
struct FindRequest {
    size_px: [u32; 2],
    grey: Arc<[u8]>,
    family: Family,
    answer: Sender<Result<Vec<RawDetection>, TagFinderError>>,
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
    fn ask(
        size_px: [u32; 2],
        grey: &Arc<[u8]>,
        family: Family,
    ) -> Result<Vec<RawDetection>, VisionError> {
        let gone = || TagFinderError::ThreadGone;
        let (answer, found) = channel();
        let ask = FindRequest {
            size_px,
            grey: Arc::clone(grey),
            family,
            answer,
        };
        let finder = FINDER.get_or_init(Self::begin).as_ref().ok_or_else(gone)?;
        finder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send(ask)
            .map_err(|_| gone())?;
        Ok(found.recv().map_err(|_| gone())??)
    }

    fn begin() -> Option<Mutex<Sender<FindRequest>>> {
        let (asks, asked) = channel::<FindRequest>();
        let thread = std::thread::Builder::new().name("tag finder".to_owned());
        let spawned = thread.spawn(move || {
            let mut finder = Self {
                small: None,
                large: None,
            };
            for ask in asked {
                // Whoever asked may have given up.
                let _ = ask.answer.send(finder.search(&ask));
            }
        });
        spawned.ok().map(|_| Mutex::new(asks))
    }

    fn search(&mut self, ask: &FindRequest) -> Result<Vec<RawDetection>, TagFinderError> {
        let image = image(ask)?;
        let detector = self.detector(ask.family)?;
        let is_large = ask.grey.len() > HALVED_FROM_PX;
        detector.set_decimation(if is_large { 2.0 } else { 1.0 });
        let found = detector.detect(&image);
        let found = found.iter().take(FOUND_MAX).map(|one| RawDetection {
            id: one.id(),
            hamming: one.hamming(),
            margin: one.decision_margin(),
            corners_px: one.corners(),
        });
        Ok(found.collect())
    }

    fn detector(&mut self, family: Family) -> Result<&mut Detector, TagFinderError> {
        let (place, known): (_, fn() -> Known) = match family {
            Family::Tag16h5 => (&mut self.small, Known::tag_16h5),
            Family::Tag36h11 => (&mut self.large, Known::tag_36h11),
        };
        if place.is_none() {
            let bits = bits_corrected(family);
            let built = Detector::builder().add_family_bits(known(), bits).build();
            let mut detector = built.map_err(TagFinderError::library)?;
            detector.set_thread_number(1);
            detector.set_refine_edges(true);
            *place = Some(detector);
        }
        place.as_mut().ok_or(TagFinderError::NoDetector)
    }
}

fn image(ask: &FindRequest) -> Result<Image, TagFinderError> {
    let [width, height] = ask.size_px.map(|side| side as usize);
    let made = Image::zeros_with_alignment(width, height, ROW_BYTES);
    let mut image = made.map_err(TagFinderError::library)?;
    let stride = image.stride().max(1);
    let rows = image.as_slice_mut().chunks_mut(stride);
    for (row, from) in rows.zip(ask.grey.chunks_exact(width)) {
        for (to, from) in row.iter_mut().zip(from) {
            *to = *from;
        }
    }
    Ok(image)
}

impl RawDetection {
    /// Returns the tag if the detection looks like a printed tag.
    fn verified(&self, family: Family, picture: &GreyPicture<'_>) -> Option<DetectedTag> {
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
    let mut turns = [[a, b, c], [b, c, d], [c, d, a], [d, a, b]].into_iter();
    turns.all(|[p, q, r]| {
        let (one, two) = ([q[0] - p[0], q[1] - p[1]], [r[0] - q[0], r[1] - q[1]]);
        // y runs down in pictures: lower left, lower right, upper right turns to the left there.
        one[0] * two[1] - one[1] * two[0] < 0.0 && one[0].hypot(one[1]) >= SIDE_PX_MIN
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
    let [black, white] = [1.0 - cell, 1.0 + cell].map(|half| around(picture, &h, half));
    let Some((black, white)) = black.zip(white) else {
        return false;
    };
    let (dark, bright) = (middle(&black), middle(&white));
    let between = f64::midpoint(dark, bright);
    let right = black.iter().filter(|v| **v < between).count()
        + white.iter().filter(|v| **v > between).count();
    let share = right as f64 / (black.len() + white.len()) as f64;
    bright - dark >= CONTRAST_MIN && share >= CLEAN_SHARE_MIN
}

fn middle(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the brightness along a square of this half side in the tag's own coordinates.
fn around(picture: &GreyPicture<'_>, h: &Matrix3<f64>, half: f64) -> Option<Vec<f64>> {
    let mut all = Vec::with_capacity(4 * LOOKS);
    for look in 0..LOOKS {
        let along = half * (2.0 * (look as f64 + 0.5) / LOOKS as f64 - 1.0);
        for at in [[along, -half], [along, half], [-half, along], [half, along]] {
            all.push(picture.at(map_point(h, at)?)?);
        }
    }
    Some(all)
}
