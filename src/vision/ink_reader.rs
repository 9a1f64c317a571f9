//! Measures drawn lines in a picture: how far each lies from its planned place, across the line.

use nalgebra::{Isometry3, Point3};

use super::grey_picture::GreyPicture;
use super::{ImageFrame, LensModel, SheetTag, TagLayout};

/// A planned line, in the sheet's frame.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedLine {
    /// Its corners, in drawing order.
    pub points_mm: Vec<[f64; 2]>,
}

/// Offset of a drawn line from its planned place, at one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InkOffset {
    /// Index of the expected line.
    pub line: usize,
    /// Index of the line's segment.
    pub piece: usize,
    /// Planned place of the point.
    pub at_mm: [f64; 2],
    /// Unit vector to the left of the planned drawing direction.
    pub across: [f64; 2],
    /// Distance from `at_mm` to the ink along `across`.
    pub off_mm: f64,
    /// Standard deviation of `off_mm`.
    pub sigma_mm: f64,
}

/// Result of reading the lines of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct InkReading {
    /// Offsets at the places with one clear line, in the order of the expected lines.
    pub offsets: Vec<InkOffset>,
    /// Number of places that were examined.
    pub places: usize,
    /// Common offset of all lines around which they were read, in steps of half a millimetre.
    pub shift_mm: [f64; 2],
}

/// A sheet in a picture, with the printed tags on it that are not ink.
#[derive(Clone, Copy, Debug)]
pub struct PicturedSheet<'a> {
    /// The picture.
    pub frame: &'a ImageFrame,
    /// The lens that took it.
    pub lens: &'a LensModel,
    /// Transform from the sheet's frame to the camera's, in m.
    pub sheet: &'a Isometry3<f64>,
    /// Printed tags.
    pub tags: &'a TagLayout,
    /// Width of the lines that were drawn on it.
    pub line_mm: f64,
}

/// Half the length of a profile across a line.
const SEARCH_MM: f64 = 3.0;

/// Distance between samples of a profile.
const STEP_MM: f64 = 0.1;

/// Distance between places along a line.
const PLACE_MM: f64 = 1.0;

/// Distance kept from a corner, near which a profile would show two lines.
const CORNER_MM: f64 = 2.0;

/// Number of parallel profiles that are averaged at each place, spread over `PLACE_MM` of the line.
const PROFILES: usize = 5;

/// Largest common offset of all lines.
const SHIFT_MM_MAX: f64 = 8.0;

/// Shifts around the common one at which the lines are read; the one that shows the most places counts, the first among equals.
const AROUND_MM: [[f64; 2]; 9] = [
    [0.0, 0.0],
    [1.5, 0.0],
    [-1.5, 0.0],
    [0.0, 1.5],
    [0.0, -1.5],
    [1.5, 1.5],
    [1.5, -1.5],
    [-1.5, 1.5],
    [-1.5, -1.5],
];

/// Step of the search for the common offset.
const SHIFT_STEP_MM: f64 = 0.5;

/// A line is darker than its paper by at least this fraction, and by at least so many standard deviations of the noise.
const DARK_FRACTION_MIN: f64 = 0.10;
const DARK_SIGMAS_MIN: f64 = 8.0;

/// Darkness of a second line, as a fraction of the first, from which a place counts as unclear.
const SECOND_FRACTION_MAX: f64 = 0.3;

/// A mark that exceeds the line width by this factor plus so many pixels, at half its darkness, is a shadow, a blot or two lines.
const WIDTH_FACTOR_MAX: f64 = 1.5;
const WIDTH_PX_MAX: f64 = 1.2;

/// Smallest uncertainty of a line's centre, in pixels.
const CENTRE_SIGMA_PX_MIN: f64 = 0.1;

/// Number of iterations of the fit of the paper's brightness next to a line.
const PAPER_ROUNDS: usize = 4;

/// Measures how far each of these lines lies from its planned place. Places without one clear line are left out.
#[must_use]
pub fn read_ink(sheet: &PicturedSheet<'_>, lines: &[ExpectedLine]) -> InkReading {
    let picture = SheetPicture::new(sheet);
    let places: Vec<LinePlace> = lines.iter().enumerate().flat_map(places_of).collect();
    let common_mm = common_shift(&picture, &places);
    let around = |[x, y]: [f64; 2]| [common_mm[0] + x, common_mm[1] + y];
    // Play has drawn lines of opposite directions on two sides of their places, and the darkest shift may be that of one side.
    let (shift_mm, offsets) = AROUND_MM
        .map(around)
        .map(|shift_mm| (shift_mm, read_places(&picture, &places, shift_mm)))
        .into_iter()
        .rev()
        .max_by_key(|(_, offsets)| offsets.len())
        .unwrap_or_default();
    InkReading {
        offsets,
        places: places.len(),
        shift_mm,
    }
}

/// Returns the offsets of the places where one clear line lies around a shift.
fn read_places(
    picture: &SheetPicture<'_>,
    places: &[LinePlace],
    shift_mm: [f64; 2],
) -> Vec<InkOffset> {
    let offset = |place: &LinePlace| {
        let profile = picture.profile(place, shift_mm)?;
        let (off_mm, sigma_mm) = profile.line()?;
        let [x, y] = place.across;
        Some(InkOffset {
            line: place.line,
            piece: place.piece,
            at_mm: place.at_mm,
            across: place.across,
            off_mm: off_mm + shift_mm[0] * x + shift_mm[1] * y,
            sigma_mm,
        })
    };
    places.iter().filter_map(offset).collect()
}

#[derive(Clone, Copy)]
struct LinePlace {
    line: usize,
    piece: usize,
    at_mm: [f64; 2],
    along: [f64; 2],
    across: [f64; 2],
}

fn places_of((line, expected): (usize, &ExpectedLine)) -> Vec<LinePlace> {
    let ends = expected.points_mm.iter().skip(1);
    let pieces = expected.points_mm.iter().zip(ends).enumerate();
    let places_on = |(piece, (from, to)): (usize, (&[f64; 2], &[f64; 2]))| {
        places_of_piece(line, piece, *from, *to)
    };
    pieces.flat_map(places_on).collect()
}

fn places_of_piece(line: usize, piece: usize, from: [f64; 2], to: [f64; 2]) -> Vec<LinePlace> {
    let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    let length = dx.hypot(dy);
    let along = [dx / length, dy / length];
    let inner = length - 2.0 * CORNER_MM;
    let last = (inner / PLACE_MM).floor();
    let first_mm = CORNER_MM + (inner - last * PLACE_MM) / 2.0;
    let place = |step: u32| {
        let along_mm = first_mm + f64::from(step) * PLACE_MM;
        LinePlace {
            line,
            piece,
            at_mm: [from[0] + along[0] * along_mm, from[1] + along[1] * along_mm],
            along,
            across: [-along[1], along[0]],
        }
    };
    (0..count_up_to(last)).map(place).collect()
}

/// Returns the number of whole steps from 0 up to and including `last`; 0 if that is negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; a sheet has few millimetres"
)]
fn count_up_to(last: f64) -> u32 {
    (last + 1.0).max(0.0) as u32
}

/// Brightness of a sheet at its own coordinates.
struct SheetPicture<'a> {
    sheet: PicturedSheet<'a>,
    grey: Vec<u8>,
}

impl<'a> SheetPicture<'a> {
    fn new(sheet: &PicturedSheet<'a>) -> Self {
        Self {
            sheet: *sheet,
            grey: sheet.frame.grey(),
        }
    }

    /// Returns the picture coordinates of a place on the sheet.
    fn px(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        let camera_m = self.sheet.sheet * Point3::new(x / 1e3, y / 1e3, 0.0);
        self.sheet.lens.project(&camera_m)
    }

    /// Returns the brightness at a place on the sheet, interpolated between pixels; `None` beyond the picture and on tags.
    fn at(&self, at_mm: [f64; 2]) -> Option<f64> {
        if self.sheet.tags.tags.iter().any(|tag| covers(tag, at_mm)) {
            return None;
        }
        let picture = GreyPicture {
            size_px: self.sheet.frame.size_px(),
            grey: &self.grey,
        };
        picture.at(self.px(at_mm)?)
    }

    fn profile(&self, place: &LinePlace, shift_mm: [f64; 2]) -> Option<LineProfile> {
        let from = [place.at_mm[0] + shift_mm[0], place.at_mm[1] + shift_mm[1]];
        let at = |along_mm: f64, across_mm: f64| {
            let coordinate = |axis: fn(&[f64; 2]) -> f64| {
                axis(&from) + axis(&place.along) * along_mm + axis(&place.across) * across_mm
            };
            [coordinate(|v| v[0]), coordinate(|v| v[1])]
        };
        let px_mm = {
            let ([ax, ay], [bx, by]) = (self.px(from)?, self.px(at(0.0, 1.0))?);
            1.0 / (bx - ax).hypot(by - ay).max(1e-6)
        };
        let samples = (0..=2 * half_steps()).map(|step| {
            let across_mm = (f64::from(step) - f64::from(half_steps())) * STEP_MM;
            let parallel = (0..PROFILES).map(|index| {
                let along_mm = (profile_fraction(index) - 0.5) * PLACE_MM;
                self.at(at(along_mm, across_mm))
            });
            let sum: f64 = parallel.sum::<Option<f64>>()?;
            Some((across_mm, sum / count_f64(PROFILES)))
        });
        Some(LineProfile {
            samples: samples.collect::<Option<_>>()?,
            px_mm,
            width_mm_max: WIDTH_FACTOR_MAX * self.sheet.line_mm + WIDTH_PX_MAX * px_mm,
        })
    }
}

fn covers(tag: &SheetTag, [x, y]: [f64; 2]) -> bool {
    // A square that holds the tag with its white edge, also if it is rotated.
    let is_straight = tag.turn_deg % 90.0 == 0.0;
    let half_mm = tag.size_mm * if is_straight { 0.52 } else { 0.75 };
    (x - tag.at_mm[0]).abs() < half_mm && (y - tag.at_mm[1]).abs() < half_mm
}

fn half_steps() -> u32 {
    count_up_to(SEARCH_MM / STEP_MM + 0.5) - 1
}

fn count_f64(count: usize) -> f64 {
    count as f64
}

/// Returns the place of a parallel profile, from 0 to 1 over all of them.
fn profile_fraction(index: usize) -> f64 {
    (count_f64(index) + 0.5) / count_f64(PROFILES)
}

/// Brightness across a line, by the distance from its expected place.
struct LineProfile {
    samples: Vec<(f64, f64)>,
    px_mm: f64,
    width_mm_max: f64,
}

/// A dark mark of a profile: its first and last sample, and its darkest value.
#[derive(Clone, Copy)]
struct DarkMark {
    first: usize,
    last: usize,
    peak: f64,
}

impl LineProfile {
    /// Returns the position of the one clear line and its standard deviation; `None` without one.
    fn line(&self) -> Option<(f64, f64)> {
        let (paper, noise) = self.paper()?;
        let dark = self.samples.iter().map(|(at, grey)| paper.at(*at) - grey);
        let dark: Vec<f64> = dark.collect();
        let dark_min = (DARK_SIGMAS_MIN * noise).max(DARK_FRACTION_MIN * paper.at(0.0));
        let mut marks = marks_above(&dark, dark_min / 2.0);
        marks.sort_by(|a, b| b.peak.total_cmp(&a.peak));
        let line = *marks.first().filter(|mark| mark.peak >= dark_min)?;
        let second = marks.get(1);
        let is_alone = second.is_none_or(|next| next.peak < SECOND_FRACTION_MAX * line.peak);
        let is_complete = line.first > 0 && line.last + 1 < dark.len();
        let is_one = match marks_above(&dark, line.peak / 2.0).as_slice() {
            [half] => count_f64(half.last + 1 - half.first) * STEP_MM <= self.width_mm_max,
            _ => false,
        };
        (is_alone && is_complete && is_one).then(|| self.centre(&dark, &line, noise))?
    }

    /// Returns the centre of a mark, weighted by darkness over the mark and a pixel on either side, and its standard deviation.
    fn centre(&self, dark: &[f64], line: &DarkMark, noise: f64) -> Option<(f64, f64)> {
        let margin = count_up_to(self.px_mm / STEP_MM) as usize;
        let range = line.first.saturating_sub(margin)..(line.last + margin + 1).min(dark.len());
        let samples = || {
            let all = self.samples.iter().zip(dark);
            let within = all.take(range.end).skip(range.start);
            within.map(|((at, _), dark)| (*at, *dark))
        };
        let mass: f64 = samples().map(|(_, dark)| dark).sum();
        let centre = samples().map(|(at, dark)| at * dark).sum::<f64>() / mass;
        let spread: f64 = samples().map(|(at, _)| (at - centre).powi(2)).sum();
        // Samples within one pixel have the same noise.
        let samples_per_px = (self.px_mm / STEP_MM).max(1.0);
        let sigma_mm = noise * (spread * samples_per_px).sqrt() / mass;
        let floor_mm = CENTRE_SIGMA_PX_MIN * self.px_mm;
        (mass > 0.0 && centre.is_finite()).then(|| (centre, sigma_mm.hypot(floor_mm)))
    }

    /// Fits the brightness of the paper by a straight line through the lighter samples. Returns it with the noise around it.
    fn paper(&self) -> Option<(PaperShade, f64)> {
        let mut kept: Vec<(f64, f64)> = self.samples.clone();
        let mut shade = PaperShade::fit(&kept)?;
        for _ in 0..PAPER_ROUNDS {
            let rms = shade.rms(&kept);
            let is_light = |(at, grey): &&(f64, f64)| grey - shade.at(*at) > -rms.max(0.5);
            kept = self.samples.iter().filter(is_light).copied().collect();
            shade = PaperShade::fit(&kept)?;
        }
        // A line darkens only a part of its profile; if most of it is dark, there is no paper.
        (kept.len() * 2 > self.samples.len()).then(|| (shade, shade.rms(&kept).max(0.5)))
    }
}

/// Brightness of paper that changes evenly along a profile.
#[derive(Clone, Copy)]
struct PaperShade {
    grey: f64,
    slope: f64,
}

impl PaperShade {
    fn fit(samples: &[(f64, f64)]) -> Option<Self> {
        let count = count_f64(samples.len());
        let mean = |of: fn(&(f64, f64)) -> f64| samples.iter().map(of).sum::<f64>() / count;
        let (at, grey) = (mean(|s| s.0), mean(|s| s.1));
        let moment = |of: &dyn Fn(&(f64, f64)) -> f64| samples.iter().map(of).sum::<f64>();
        let spread = moment(&|s| (s.0 - at).powi(2));
        let slope = moment(&|s| (s.0 - at) * (s.1 - grey)) / spread;
        slope.is_finite().then_some(Self {
            grey: grey - slope * at,
            slope,
        })
    }

    fn at(&self, across_mm: f64) -> f64 {
        self.grey + self.slope * across_mm
    }

    fn rms(&self, samples: &[(f64, f64)]) -> f64 {
        let squares = samples
            .iter()
            .map(|(at, grey)| (grey - self.at(*at)).powi(2));
        (squares.sum::<f64>() / count_f64(samples.len().max(1))).sqrt()
    }
}

/// Returns the contiguous ranges of samples that are darker than `min`.
fn marks_above(dark: &[f64], min: f64) -> Vec<DarkMark> {
    let mut marks: Vec<DarkMark> = Vec::new();
    for (index, dark) in dark.iter().enumerate().filter(|(_, dark)| **dark > min) {
        match marks.last_mut().filter(|mark| mark.last + 1 == index) {
            Some(mark) => {
                mark.last = index;
                mark.peak = mark.peak.max(*dark);
            }
            None => marks.push(DarkMark {
                first: index,
                last: index,
                peak: *dark,
            }),
        }
    }
    marks
}

/// Returns the common offset of all lines from their places: the shift under which the lines are darkest.
fn common_shift(picture: &SheetPicture<'_>, places: &[LinePlace]) -> [f64; 2] {
    let steps = round_steps(SHIFT_MM_MAX / SHIFT_STEP_MM);
    let shift = |step: i32| f64::from(step) * SHIFT_STEP_MM;
    let shifts = (-steps..=steps).flat_map(|x| (-steps..=steps).map(move |y| [shift(x), shift(y)]));
    let darkness = |[x, y]: [f64; 2]| -> f64 {
        let sampled = places.iter().step_by(3);
        let contrasts = sampled.map(|place| {
            let at = |across: f64| {
                let [across_x, across_y] = place.across;
                picture.at([
                    place.at_mm[0] + x + across_x * across,
                    place.at_mm[1] + y + across_y * across,
                ])
            };
            // A line is darker than the paper on both sides; the edge of a shadow is not.
            match (at(0.0), at(-PAPER_OFFSET_MM), at(PAPER_OFFSET_MM)) {
                (Some(here), Some(left), Some(right)) => (left.min(right) - here).max(0.0),
                _ => 0.0,
            }
        });
        contrasts.sum()
    };
    let scored = shifts.map(|shift| (darkness(shift), shift));
    // Among equals the smallest shift wins, so that nothing is shifted without ink.
    let best = scored.max_by(|(a, a_at), (b, b_at)| {
        let norm = |[x, y]: &[f64; 2]| x.hypot(*y);
        a.total_cmp(b).then(norm(b_at).total_cmp(&norm(a_at)))
    });
    best.map_or([0.0; 2], |(_, shift)| shift)
}

/// Distance from a line at which the paper's brightness is sampled.
const PAPER_OFFSET_MM: f64 = 1.5;

#[expect(clippy::cast_possible_truncation, reason = "a few steps")]
fn round_steps(steps: f64) -> i32 {
    steps.round() as i32
}
