//! Drawn lines in a picture: how far each lies beside where it was to be, across it.

use nalgebra::{Isometry3, Point3};

use super::grey_picture::GreyPicture;
use super::{ImageFrame, LensModel, SheetTag, TagLayout};

/// A line that was to be drawn, in the sheet's frame.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedLine {
    /// Its corners, in the order in which it was drawn.
    pub points_mm: Vec<[f64; 2]>,
}

/// A drawn line beside where it was to be, at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InkOffset {
    /// Index of the expected line.
    pub line: usize,
    /// Index of its piece between corners.
    pub piece: usize,
    /// Planned place of the line.
    pub at_mm: [f64; 2],
    /// Unit vector to the left of the direction in which it was to be drawn.
    pub across: [f64; 2],
    /// From there to the ink along `across`.
    pub off_mm: f64,
    /// Standard deviation of that.
    pub sigma_mm: f64,
}

/// Lines of a picture, read.
#[derive(Clone, Debug, PartialEq)]
pub struct InkReading {
    /// Places with one clear line, in the order of the expected lines.
    pub offsets: Vec<InkOffset>,
    /// Number of places that were looked at.
    pub places: usize,
    /// Common offset of all lines, to half a millimetre.
    pub shift_mm: [f64; 2],
}

/// A sheet in a picture, and the prints on it that are no ink.
#[derive(Clone, Copy, Debug)]
pub struct PicturedSheet<'a> {
    /// The picture.
    pub frame: &'a ImageFrame,
    /// The lens that took it.
    pub lens: &'a LensModel,
    /// From the sheet's frame to the camera's, in m.
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

/// A place nearer than this to a corner shows two lines.
const CORNER_MM: f64 = 2.0;

/// A profile is the mean of so many beside one another, within a place's share of its line.
const PROFILES: usize = 5;

/// Farthest that all lines lie beside their places together.
const SHIFT_MM_MAX: f64 = 8.0;

/// Steps of the search for that, and the cells of its map.
const SHIFT_STEP_MM: f64 = 0.5;

/// A line is darker than its paper by this share at least, and by so many standard deviations of the noise.
const DARK_SHARE_MIN: f64 = 0.10;
const DARK_SIGMAS_MIN: f64 = 8.0;

/// A second line so dark makes a place unclear.
const SECOND_SHARE_MAX: f64 = 0.3;

/// A mark that is wider than a line by this factor and so many pixels, at half of its darkness, is a shadow, a blot or two lines.
const WIDTH_FACTOR_MAX: f64 = 1.5;
const WIDTH_PX_MAX: f64 = 1.2;

/// No line's middle is found better than this part of a pixel.
const PIXEL_SHARE: f64 = 0.1;

/// Rounds in which the paper's brightness beside a line is found.
const PAPER_ROUNDS: usize = 4;

/// Finds how far each of these lines lies beside its place. Places without one clear line are left out.
#[must_use]
pub fn read_ink(sheet: &PicturedSheet<'_>, lines: &[ExpectedLine]) -> InkReading {
    let picture = SheetPicture::new(sheet);
    let places: Vec<LinePlace> = lines.iter().enumerate().flat_map(places_of).collect();
    let shift_mm = common_shift(&picture, &places);
    let found = places.iter().filter_map(|place| {
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
    });
    InkReading {
        offsets: found.collect(),
        places: places.len(),
        shift_mm,
    }
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
    let of_piece = |(piece, (from, to)): (usize, (&[f64; 2], &[f64; 2]))| {
        places_of_piece(line, piece, *from, *to)
    };
    pieces.flat_map(of_piece).collect()
}

fn places_of_piece(line: usize, piece: usize, from: [f64; 2], to: [f64; 2]) -> Vec<LinePlace> {
    let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    let length = dx.hypot(dy);
    let along = [dx / length, dy / length];
    let inner = length - 2.0 * CORNER_MM;
    let last = (inner / PLACE_MM).floor();
    let first_mm = CORNER_MM + (inner - last * PLACE_MM) / 2.0;
    let place = |step: u32| {
        let far = first_mm + f64::from(step) * PLACE_MM;
        LinePlace {
            line,
            piece,
            at_mm: [from[0] + along[0] * far, from[1] + along[1] * far],
            along,
            across: [-along[1], along[0]],
        }
    };
    (0..count_to(last)).map(place).collect()
}

/// Number of whole steps from 0 up to `last`; none where that is negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; a sheet has few millimetres"
)]
fn count_to(last: f64) -> u32 {
    (last + 1.0).max(0.0) as u32
}

/// Brightness of a sheet by its own coordinates.
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

    /// Returns the pixel in which a place of the sheet lies.
    fn px(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        let seen = self.sheet.sheet * Point3::new(x / 1e3, y / 1e3, 0.0);
        self.sheet.lens.project(&seen)
    }

    /// Returns the brightness at a place of the sheet, between the four pixels around it; `None` beyond the picture and on tags.
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
            let on = |axis: fn(&[f64; 2]) -> f64| {
                axis(&from) + axis(&place.along) * along_mm + axis(&place.across) * across_mm
            };
            [on(|v| v[0]), on(|v| v[1])]
        };
        let px_mm = {
            let ([ax, ay], [bx, by]) = (self.px(from)?, self.px(at(0.0, 1.0))?);
            1.0 / (bx - ax).hypot(by - ay).max(1e-6)
        };
        let samples = (0..=2 * half_steps()).map(|step| {
            let across_mm = (f64::from(step) - f64::from(half_steps())) * STEP_MM;
            let beside = (0..PROFILES).map(|index| {
                let along_mm = (ratio(index) - 0.5) * PLACE_MM;
                self.at(at(along_mm, across_mm))
            });
            let sum: f64 = beside.sum::<Option<f64>>()?;
            Some((across_mm, sum / ratio_of(PROFILES)))
        });
        Some(LineProfile {
            samples: samples.collect::<Option<_>>()?,
            px_mm,
            width_mm_max: WIDTH_FACTOR_MAX * self.sheet.line_mm + WIDTH_PX_MAX * px_mm,
        })
    }
}

fn covers(tag: &SheetTag, [x, y]: [f64; 2]) -> bool {
    // The square around a turned tag with its white edge.
    let is_straight = tag.turn_deg % 90.0 == 0.0;
    let half_mm = tag.size_mm * if is_straight { 0.52 } else { 0.75 };
    (x - tag.at_mm[0]).abs() < half_mm && (y - tag.at_mm[1]).abs() < half_mm
}

fn half_steps() -> u32 {
    count_to(SEARCH_MM / STEP_MM + 0.5) - 1
}

fn ratio_of(count: usize) -> f64 {
    count as f64
}

fn ratio(index: usize) -> f64 {
    (ratio_of(index) + 0.5) / ratio_of(PROFILES)
}

/// Brightness across a line, by the distance from where it is looked for.
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
    /// Returns where the one clear line lies and the standard deviation of that; `None` without one.
    fn line(&self) -> Option<(f64, f64)> {
        let (paper, noise) = self.paper()?;
        let dark = self.samples.iter().map(|(at, grey)| paper.at(*at) - grey);
        let dark: Vec<f64> = dark.collect();
        let least = (DARK_SIGMAS_MIN * noise).max(DARK_SHARE_MIN * paper.at(0.0));
        let mut marks = marks_above(&dark, least / 2.0);
        marks.sort_by(|a, b| b.peak.total_cmp(&a.peak));
        let line = *marks.first().filter(|mark| mark.peak >= least)?;
        let second = marks.get(1);
        let is_alone = second.is_none_or(|next| next.peak < SECOND_SHARE_MAX * line.peak);
        let is_whole = line.first > 0 && line.last + 1 < dark.len();
        let is_one = match marks_above(&dark, line.peak / 2.0).as_slice() {
            [half] => ratio_of(half.last + 1 - half.first) * STEP_MM <= self.width_mm_max,
            _ => false,
        };
        (is_alone && is_whole && is_one).then(|| self.centre(&dark, &line, noise))?
    }

    /// Returns the middle of a mark by its darkness, with a pixel on both sides.
    fn centre(&self, dark: &[f64], line: &DarkMark, noise: f64) -> Option<(f64, f64)> {
        let margin = count_to(self.px_mm / STEP_MM) as usize;
        let range = line.first.saturating_sub(margin)..(line.last + margin + 1).min(dark.len());
        let of_it = || {
            let samples = self.samples.iter().zip(dark);
            let samples = samples.take(range.end).skip(range.start);
            samples.map(|((at, _), dark)| (*at, *dark))
        };
        let mass: f64 = of_it().map(|(_, dark)| dark).sum();
        let middle = of_it().map(|(at, dark)| at * dark).sum::<f64>() / mass;
        let spread: f64 = of_it().map(|(at, _)| (at - middle).powi(2)).sum();
        // Samples within a pixel share its noise.
        let shared = (self.px_mm / STEP_MM).max(1.0);
        let sigma_mm = noise * (spread * shared).sqrt() / mass;
        let floor_mm = PIXEL_SHARE * self.px_mm;
        (mass > 0.0 && middle.is_finite()).then(|| (middle, sigma_mm.hypot(floor_mm)))
    }

    /// Returns the brightness of the paper, as a straight line through what is not darker, and the noise around it.
    fn paper(&self) -> Option<(PaperShade, f64)> {
        let mut kept: Vec<(f64, f64)> = self.samples.clone();
        let mut shade = PaperShade::fit(&kept)?;
        for _ in 0..PAPER_ROUNDS {
            let rms = shade.rms(&kept);
            let light = |(at, grey): &&(f64, f64)| grey - shade.at(*at) > -rms.max(0.5);
            kept = self.samples.iter().filter(light).copied().collect();
            shade = PaperShade::fit(&kept)?;
        }
        // A line takes a part of its profile; where most of it is dark there is no paper.
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
        let count = ratio_of(samples.len());
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

    fn at(&self, at: f64) -> f64 {
        self.grey + self.slope * at
    }

    fn rms(&self, samples: &[(f64, f64)]) -> f64 {
        let off = samples.iter().map(|(at, grey)| grey - self.at(*at));
        let squares = off.map(|off| off.powi(2));
        (squares.sum::<f64>() / ratio_of(samples.len().max(1))).sqrt()
    }
}

fn marks_above(dark: &[f64], least: f64) -> Vec<DarkMark> {
    let mut marks: Vec<DarkMark> = Vec::new();
    for (index, dark) in dark.iter().enumerate().filter(|(_, dark)| **dark > least) {
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

/// Returns by how much all lines together lie beside their places: the shift under which most of them is dark.
fn common_shift(picture: &SheetPicture<'_>, places: &[LinePlace]) -> [f64; 2] {
    let steps = half_of(SHIFT_MM_MAX / SHIFT_STEP_MM);
    let shift = |step: i32| f64::from(step) * SHIFT_STEP_MM;
    let shifts = (-steps..=steps).flat_map(|x| (-steps..=steps).map(move |y| [shift(x), shift(y)]));
    let dark = |[x, y]: [f64; 2]| -> f64 {
        let of = places.iter().step_by(3);
        of.map(|place| {
            let at = |across: f64| {
                let [along_x, along_y] = place.across;
                picture.at([
                    place.at_mm[0] + x + along_x * across,
                    place.at_mm[1] + y + along_y * across,
                ])
            };
            // Darker than the paper on both of its sides: a shadow's edge is not.
            match (at(0.0), at(-BESIDE_MM), at(BESIDE_MM)) {
                (Some(here), Some(left), Some(right)) => (left.min(right) - here).max(0.0),
                _ => 0.0,
            }
        })
        .sum()
    };
    let scored = shifts.map(|shift| (dark(shift), shift));
    // Of equal ones the smallest: without any ink nothing is shifted.
    let best = scored.max_by(|(a, at), (b, bt)| {
        let far = |[x, y]: &[f64; 2]| x.hypot(*y);
        a.total_cmp(b).then(far(bt).total_cmp(&far(at)))
    });
    best.map_or([0.0; 2], |(_, shift)| shift)
}

/// Distance beside a line at which its paper is looked at.
const BESIDE_MM: f64 = 1.5;

#[expect(clippy::cast_possible_truncation, reason = "a few steps")]
fn half_of(steps: f64) -> i32 {
    steps.round() as i32
}
