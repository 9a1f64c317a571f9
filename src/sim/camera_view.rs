//! View of a camera next to the simulated arm: a desk, the sheet with its tags and ink, the pens,
//! and a little noise. Pixels with several colours have sixteen samples.

use nalgebra::{Isometry3, Matrix3, Point3, Vector3};

use super::fault_injection::FaultRng;
use super::pen_ink::{InkLine, SimPen};
use super::printed_tags;
use base::plane::{along, distance, pieces};
use vision::{Family, FrameError, ImageFrame, PlacedCamera, SheetTag, TagLayout};

/// A sheet in front of a camera.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewedSheet {
    /// Transform from its frame, the lower left corner with x to the right, y up and z towards the reader, to
    /// the arm's base, in m.
    pub pose: Isometry3<f64>,
    /// Width and height.
    pub size_mm: [f64; 2],
    /// Tags printed on it, with ids below [`super::PRINTED`].
    pub tags: Option<TagLayout>,
    /// Other prints on the sheet, below tags and ink.
    pub blots: Vec<PrintedBlot>,
}

/// A rectangle of one grey.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintedBlot {
    /// Its centre on the sheet.
    pub at_mm: [f64; 2],
    /// Half its width and height.
    pub half_mm: [f64; 2],
    /// Counter-clockwise rotation.
    pub turn_deg: f64,
    /// Grey level; 0 is black.
    pub grey: u8,
}

/// The light, and its effect on a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SceneLight {
    /// Brightness; at 1 white paper is nearly white.
    pub level: f64,
    /// Relative increase of brightness over a focal length, to the right and down.
    pub slope: [f64; 2],
    /// Standard deviation of each pixel, in grey levels.
    pub noise_grey: f64,
    /// Seed of the noise.
    pub seed: u64,
}

/// A visible pen in the air or on the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ViewedPen {
    /// Its tip, in the arm's base frame.
    pub tip_m: Point3<f64>,
    /// From its tip to its other end.
    pub body_m: Vector3<f64>,
    /// sRGB.
    pub colour: [u8; 3],
}

/// Everything that a picture shows.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedView<'a> {
    /// The camera.
    pub eye: &'a PlacedCamera,
    /// The light.
    pub light: &'a SceneLight,
    /// The sheet.
    pub sheet: Option<&'a ViewedSheet>,
    /// The ink on the sheet.
    pub ink: &'a [InkLine],
    /// The pens that drew the ink, in the order in which they were laid.
    pub pens: &'a [SimPen],
    /// The pens that are held now.
    pub held: &'a [ViewedPen],
}

/// Samples along each side of a pixel.
const SAMPLES_PER_SIDE: usize = 4;

const PAPER: [u8; 3] = [236, 236, 232];
const BLACK: [u8; 3] = [24, 24, 26];
const WHITE: [u8; 3] = [240, 240, 240];
const DESK: [f64; 3] = [122.0, 108.0, 92.0];

/// Number of pixels between exact computations through the lens.
const EXACT_PX: u32 = 8;

/// Half the thickness of a pen.
const PEN_M: f64 = 0.004;

/// Cells of the ink's raster per mm.
const INK_PER_MM: f64 = 8.0;

/// Largest number of cells for a sheet's ink.
const INK_CELLS_MAX: usize = 16_000_000;

impl SimulatedView<'_> {
    /// Renders the picture.
    ///
    /// # Errors
    /// A lens with an invalid picture size.
    pub fn render(&self) -> Result<ImageFrame, FrameError> {
        let [width, height] = self.eye.lens.size_px;
        ImageFrame::pixels(width, height)?;
        let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
        let paper = self.sheet.and_then(|sheet| RenderedPaper::new(self, sheet));
        let rods: Vec<PenRod> = self.held.iter().filter_map(|pen| self.rod(pen)).collect();
        let mut rng = FaultRng::new(self.light.seed);
        let mut above = self.rays(0);
        for row in 0..height {
            let below = self.rays(row + 1);
            for (column, ([a, b], [c, d])) in (0..width).zip(pieces(&above).zip(pieces(&below))) {
                let colour = Self::pixel(paper.as_ref(), [a, b, c, d]);
                let point = [f64::from(column) + 0.5, f64::from(row) + 0.5];
                let colour = rods
                    .iter()
                    .fold(colour, |colour, rod| rod.over(colour, point));
                self.light.expose(colour, a, &mut rng, &mut rgb);
            }
            above = below;
        }
        ImageFrame::new(width, height, rgb)
    }

    /// Returns the directions of rays at the corners of a row's pixels. Interpolates between every eighth of them, where the
    /// lens differs from a straight line by less than a hundredth of a pixel.
    fn rays(&self, row: u32) -> Vec<[f64; 2]> {
        let [width, _] = self.eye.lens.size_px;
        let ray = |column: u32| self.eye.lens.ray([f64::from(column), f64::from(row)]);
        let exact: Vec<[f64; 2]> = (0..=width / EXACT_PX + 1)
            .map(|index| ray(index * EXACT_PX))
            .collect();
        let steps = |[a, b]: [[f64; 2]; 2]| {
            let fractions = (0..EXACT_PX).map(|step| f64::from(step) / f64::from(EXACT_PX));
            fractions.map(move |fraction| along(a, b, fraction))
        };
        let rays = pieces(&exact).flat_map(steps);
        rays.take(width as usize + 1).collect()
    }

    /// Returns the colour between four directions: a single sample if its corners and its centre agree.
    fn pixel(paper: Option<&RenderedPaper<'_>>, corners: [[f64; 2]; 4]) -> [f64; 3] {
        let [a, _, _, d] = corners;
        let desk = desk(a);
        let Some(paper) = paper.filter(|paper| paper.may_cover(a) || paper.may_cover(d)) else {
            return desk;
        };
        let centre = paper.colour(within(corners, [0.5, 0.5]));
        let is_same = |ray: &[f64; 2]| paper.colour(*ray) == centre;
        if corners.iter().all(is_same) {
            return centre.map_or(desk, |rgb| rgb.map(f64::from));
        }
        let mut sum = [0.0; 3];
        for down in 0..SAMPLES_PER_SIDE {
            for right in 0..SAMPLES_PER_SIDE {
                let ray = within(corners, [sample_offset(right), sample_offset(down)]);
                let colour = paper.colour(ray).map_or(desk, |rgb| rgb.map(f64::from));
                sum.iter_mut()
                    .zip(colour)
                    .for_each(|(sum, channel)| *sum += channel);
            }
        }
        let samples = (SAMPLES_PER_SIDE * SAMPLES_PER_SIDE) as f64;
        sum.map(|sum| sum / samples)
    }

    fn rod(&self, pen: &ViewedPen) -> Option<PenRod> {
        let px = |at: &Point3<f64>| {
            let at = self.eye.pose.inverse_transform_point(at);
            Some((self.eye.lens.project(&at)?, at.z))
        };
        let (from, near) = px(&pen.tip_m)?;
        let (to, far) = px(&(pen.tip_m + pen.body_m))?;
        let focal = self.eye.lens.focal_px[0];
        Some(PenRod {
            ends: [from, to],
            radius_px: [near, far].map(|z| PEN_M * focal / z),
            colour: pen.colour.map(f64::from),
        })
    }
}

/// Interpolates between four directions: upper left, upper right, lower left, lower right.
fn within([a, b, c, d]: [[f64; 2]; 4], [u, v]: [f64; 2]) -> [f64; 2] {
    along(along(a, b, u), along(c, d, u), v)
}

/// Returns the place of a sample within its pixel, from 0 to 1.
fn sample_offset(sample: usize) -> f64 {
    (sample as f64 + 0.5) / SAMPLES_PER_SIDE as f64
}

/// Returns the colour of a desk of wood, with grain along one direction.
fn desk([x, y]: [f64; 2]) -> [f64; 3] {
    let wave = |v: f64| (v - v.floor() - 0.5).abs() * 4.0 - 1.0;
    let grain = 2.5 * wave(x * 9.5 + 0.3 * wave(y * 1.4)) + 1.0 * wave(y * 3.7);
    DESK.map(|channel| channel + grain)
}

impl SceneLight {
    /// Appends a pixel as the sensor records it.
    fn expose(&self, colour: [f64; 3], [x, y]: [f64; 2], rng: &mut FaultRng, into: &mut Vec<u8>) {
        let lit = self.level * (1.0 + self.slope[0] * x + self.slope[1] * y);
        let noise = self.noise_grey * rng.normal();
        for channel in colour {
            let value = (channel * lit + noise).round().clamp(0.0, 255.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped to a byte"
            )]
            into.push(value as u8);
        }
    }
}

/// A pen in the picture: a line that gets thinner with its distance.
struct PenRod {
    ends: [[f64; 2]; 2],
    radius_px: [f64; 2],
    colour: [f64; 3],
}

impl PenRod {
    /// Blends the pen over the colour of a pixel.
    fn over(&self, under: [f64; 3], [x, y]: [f64; 2]) -> [f64; 3] {
        let [[ax, ay], [bx, by]] = self.ends;
        let (dx, dy) = (bx - ax, by - ay);
        let length2 = (dx * dx + dy * dy).max(1e-9);
        let along = (((x - ax) * dx + (y - ay) * dy) / length2).clamp(0.0, 1.0);
        let off = [x - ax - along * dx, y - ay - along * dy];
        let distance_px = (off[0] * off[0] + off[1] * off[1]).sqrt();
        let radius_px = self.radius_px[0] * (1.0 - along) + self.radius_px[1] * along;
        // The first tenth of a pen is its conical point.
        let radius_px = radius_px * (along * 10.0).min(1.0);
        let fraction = (radius_px - distance_px + 0.5).clamp(0.0, 1.0);
        let mut blended = under;
        blended
            .iter_mut()
            .zip(self.colour)
            .for_each(|(under, colour)| *under = *under * (1.0 - fraction) + colour * fraction);
        blended
    }
}

/// A sheet, prepared for sampling along rays.
struct RenderedPaper<'a> {
    sheet: &'a ViewedSheet,
    /// Transform from a ray to the sheet, in mm.
    to_sheet: Matrix3<f64>,
    tags: Vec<RotatedPlacement>,
    blots: Vec<RotatedPlacement>,
    ink: Option<InkRaster>,
}

/// Pose of an object on the sheet, and its radius.
struct RotatedPlacement {
    at_mm: [f64; 2],
    sin_cos: (f64, f64),
    radius_mm: f64,
}

impl RotatedPlacement {
    fn new(at_mm: [f64; 2], turn_deg: f64, radius_mm: f64) -> Self {
        Self {
            at_mm,
            sin_cos: turn_deg.to_radians().sin_cos(),
            radius_mm,
        }
    }

    /// Returns a place of the sheet in the object's frame; `None` beyond its radius.
    fn within(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        let (x, y) = (x - self.at_mm[0], y - self.at_mm[1]);
        if x * x + y * y > self.radius_mm * self.radius_mm {
            return None;
        }
        let (sin, cos) = self.sin_cos;
        Some([x * cos + y * sin, y * cos - x * sin])
    }
}

impl<'a> RenderedPaper<'a> {
    fn new(view: &SimulatedView<'_>, sheet: &'a ViewedSheet) -> Option<Self> {
        let in_camera = view.eye.pose.inverse() * sheet.pose;
        let x = in_camera.rotation * Vector3::x() / 1e3;
        let y = in_camera.rotation * Vector3::y() / 1e3;
        // Its back shows nothing.
        let faces_camera =
            (in_camera.rotation * Vector3::z()).dot(&in_camera.translation.vector) < 0.0;
        let to_sheet =
            Matrix3::from_columns(&[x, y, in_camera.translation.vector]).try_inverse()?;
        let tags = sheet.tags.iter().flat_map(|layout| &layout.tags);
        let blots = sheet.blots.iter().map(|blot| {
            let [x, y] = blot.half_mm;
            RotatedPlacement::new(blot.at_mm, blot.turn_deg, x.hypot(y))
        });
        faces_camera.then(|| Self {
            sheet,
            to_sheet,
            // A tag with its edge extends no further from its centre than its side.
            tags: tags
                .map(|tag| RotatedPlacement::new(tag.at_mm, tag.turn_deg, tag.size_mm))
                .collect(),
            blots: blots.collect(),
            ink: InkRaster::new(sheet.size_mm, view.ink, view.pens),
        })
    }

    fn at_mm(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        let at = self.to_sheet * Vector3::new(x, y, 1.0);
        (at.z > 1e-9).then(|| [at.x / at.z, at.y / at.z])
    }

    /// Returns whether a pixel at this ray may show a part of the sheet.
    fn may_cover(&self, ray: [f64; 2]) -> bool {
        const MARGIN_MM: f64 = 3.0;
        let [width, height] = self.sheet.size_mm;
        self.at_mm(ray).is_some_and(|[x, y]| {
            (-MARGIN_MM..width + MARGIN_MM).contains(&x)
                && (-MARGIN_MM..height + MARGIN_MM).contains(&y)
        })
    }

    fn colour(&self, ray: [f64; 2]) -> Option<[u8; 3]> {
        let [x, y] = self.at_mm(ray)?;
        let [width, height] = self.sheet.size_mm;
        if !((0.0..width).contains(&x) && (0.0..height).contains(&y)) {
            return None;
        }
        let ink = self.ink.as_ref().and_then(|ink| ink.colour([x, y]));
        Some(ink.or_else(|| self.printed([x, y])).unwrap_or(PAPER))
    }

    fn printed(&self, at_mm: [f64; 2]) -> Option<[u8; 3]> {
        let tag = self.sheet.tags.as_ref().and_then(|layout| {
            let mut tags = layout.tags.iter().zip(&self.tags);
            tags.find_map(|(tag, place)| tag_colour(layout.family, tag, place.within(at_mm)?))
        });
        tag.or_else(|| {
            let mut blots = self.sheet.blots.iter().zip(&self.blots).rev();
            blots.find_map(|(blot, place)| {
                let [x, y] = place.within(at_mm)?;
                let is_on = x.abs() <= blot.half_mm[0] && y.abs() <= blot.half_mm[1];
                is_on.then_some([blot.grey; 3])
            })
        })
    }
}

/// Returns the colour of a tag, or of the white edge around it, at a place in its own frame.
fn tag_colour(family: Family, tag: &SheetTag, [x, y]: [f64; 2]) -> Option<[u8; 3]> {
    let cells = f64::from(family.cells_per_side());
    let per_mm = cells / tag.size_mm;
    let (column, row) = (x * per_mm + cells / 2.0, cells / 2.0 - y * per_mm);
    if ![column, row]
        .iter()
        .all(|at| (-1.0..=cells + 1.0).contains(at))
    {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a few cells")]
    let [column, row] = [column, row].map(|at| at.floor() as i32);
    let is_white = printed_tags::is_white(family, tag.id, column, row)?;
    Some(if is_white { WHITE } else { BLACK })
}

/// A fine grid with the pen that last drew at each place.
struct InkRaster {
    columns: usize,
    rows: usize,
    /// 0 for paper, otherwise the pen's index plus one.
    cells: Vec<u8>,
    colours: Vec<[u8; 3]>,
}

impl InkRaster {
    fn new([width, height]: [f64; 2], ink: &[InkLine], pens: &[SimPen]) -> Option<Self> {
        let (columns, rows) = (whole(width * INK_PER_MM)?, whole(height * INK_PER_MM)?);
        if ink.is_empty() || columns.saturating_mul(rows) > INK_CELLS_MAX {
            return None;
        }
        let mut raster = Self {
            columns,
            rows,
            cells: vec![0; columns * rows],
            colours: pens.iter().map(|pen| rgb(&pen.colour)).collect(),
        };
        for line in ink {
            let pen = pens.get(line.pen);
            let half = pen.map_or(0.5, |pen| pen.width_mm) / 2.0;
            let mark = u8::try_from(line.pen + 1).unwrap_or(u8::MAX);
            pieces(&line.points_mm).for_each(|[from, to]| raster.draw(from, to, half, mark));
        }
        Some(raster)
    }

    fn draw(&mut self, a: [f64; 2], b: [f64; 2], half: f64, mark: u8) {
        let length_mm = distance(a, b);
        // Two discs for each cell of length, so that they overlap.
        let Some(steps) = whole((length_mm * INK_PER_MM * 2.0).ceil().max(1.0)) else {
            return;
        };
        for step in 0..=steps {
            let at = along(a, b, step as f64 / steps as f64);
            self.disc(at.map(|v| v * INK_PER_MM), half * INK_PER_MM, mark);
        }
    }

    fn disc(&mut self, [x, y]: [f64; 2], radius: f64, mark: u8) {
        let low = |v: f64| whole((v - radius).floor().max(0.0)).unwrap_or(0);
        let high =
            |v: f64, most: usize| whole((v + radius).ceil().max(0.0)).map_or(0, |v| v.min(most));
        for row in low(y)..high(y, self.rows) {
            for column in low(x)..high(x, self.columns) {
                let off = [column as f64 + 0.5 - x, row as f64 + 0.5 - y];
                let cell = self.cells.get_mut(row * self.columns + column);
                if let Some(cell) = cell.filter(|_| off[0].hypot(off[1]) <= radius) {
                    *cell = mark;
                }
            }
        }
    }

    fn colour(&self, [x, y]: [f64; 2]) -> Option<[u8; 3]> {
        let (column, row) = (whole(x * INK_PER_MM)?, whole(y * INK_PER_MM)?);
        let index = row.checked_mul(self.columns)?.checked_add(column)?;
        let mark = *self.cells.get(index).filter(|_| column < self.columns)?;
        let pen = usize::from(mark.checked_sub(1)?);
        Some(self.colours.get(pen).copied().unwrap_or(BLACK))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded above, and not negative"
)]
fn whole(value: f64) -> Option<usize> {
    (0.0..1e9).contains(&value).then_some(value as usize)
}

/// Parses `#rrggbb`; returns black for anything else.
pub(super) fn rgb(colour: &str) -> [u8; 3] {
    let channel = |from: usize| u8::from_str_radix(colour.get(from..from + 2)?, 16).ok();
    match (channel(1), channel(3), channel(5)) {
        (Some(r), Some(g), Some(b)) => [r, g, b],
        _ => BLACK,
    }
}
