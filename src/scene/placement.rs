//! Places a design's page on the sheet, and finds the largest size that it can have there.

use serde::{Deserialize, Serialize};

use super::file::{DesignFile, PenFile};
use super::library::DesignSheet;
use super::{ScenePage, SizeSource};
use base::units::{Finite, OutOfRange};
use design::Design;

/// Smallest and largest longer side of a page on a sheet, in mm.
pub const PAGE_SIDE_MM: std::ops::RangeInclusive<f64> = 1.0..=2000.0;

/// Place and size of a design in place of a scene's own. What is placed is the box around its lines,
/// whatever page its file states. The default is the centre of the sheet, without rotation, as large
/// as the file says, or else as the sheet holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DesignPlacement {
    /// Longer side of the box on the sheet.
    pub size_mm: Option<Finite>,
    /// Lower left corner of all its lines on the sheet, rotated; absent centres it.
    pub at_mm: Option<[Finite; 2]>,
    /// Rotation of the box about its centre, counter-clockwise.
    pub rotate_deg: Option<Finite>,
    /// True draws as large as the sheet holds at this place and rotation, with a margin for the width of the lines; `size_mm` is
    /// not used then.
    pub fits: bool,
    /// The same with the file's page in place of the box.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fits_page: bool,
}

impl DesignPlacement {
    /// Replaces the place, the rotation and the size of a scene's own design.
    pub(super) const fn apply_to(&self, design: &mut DesignFile) {
        (design.at_mm, design.rotate_deg) = (self.at_mm, self.rotate_deg);
        design.size_mm = self.size_mm;
    }
}

impl SizeSource {
    /// Returns where a design's size comes from: what the request says, or else the scene of its own
    /// design, or else the lengths in the file; a file without lengths fits the sheet. `placement` is
    /// that of a design in place of the scene's own, and `size_mm` the stated size.
    pub(super) const fn of(
        placement: Option<&DesignPlacement>,
        size_mm: Option<Finite>,
        states_lengths: bool,
    ) -> Self {
        match (placement, size_mm) {
            (Some(placement), _) if placement.fits || placement.fits_page => Self::Fitted,
            (Some(_), Some(_)) => Self::Asked,
            (None, Some(_)) => Self::Scene,
            (_, None) if states_lengths => Self::File,
            (_, None) => Self::Fitted,
        }
    }
}

/// The part of a design whose lower left corner `at_mm` puts, once it is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlacedPart {
    /// The page.
    Page,
    /// The lines alone.
    Lines,
}

impl PlacedPart {
    /// Returns the part that is placed: of a scene's own design its page, of one in its place the lines.
    pub(super) fn of(placement: Option<&DesignPlacement>) -> Self {
        match placement.is_none_or(|placement| placement.fits_page) {
            true => Self::Page,
            false => Self::Lines,
        }
    }

    /// Returns the points around which it lies.
    fn points(self, design: &Design) -> Vec<[f64; 2]> {
        let lines = design.strokes.iter().flat_map(|stroke| &stroke.points_mm);
        let lines = lines.filter(|_| self == Self::Lines).copied();
        let points: Vec<[f64; 2]> = lines.collect();
        match points.is_empty() {
            true => corners(design.page_mm).to_vec(),
            false => points,
        }
    }
}

const fn corners([width, height]: [f64; 2]) -> [[f64; 2]; 4] {
    [[0.0; 2], [width, 0.0], [width, height], [0.0, height]]
}

/// The affine map from a design's page to the sheet.
pub(super) struct PageOnSheet {
    scale: f64,
    rays: PageRays,
}

impl PageOnSheet {
    /// Places a page as a scene states.
    ///
    /// # Errors
    /// A size out of range.
    pub(super) fn new(
        file: &DesignFile,
        design: &Design,
        sheet: DesignSheet,
    ) -> Result<Self, OutOfRange> {
        let page_mm = design.page_mm;
        let long_mm = page_mm[0].max(page_mm[1]);
        let size_mm = file.size_mm.map(|size_mm| {
            OutOfRange::check(|| "design.size_mm".to_owned(), size_mm, &PAGE_SIDE_MM)
        });
        let scale = match size_mm.transpose()? {
            Some(size_mm) if long_mm > 0.0 => size_mm / long_mm,
            _ => 1.0,
        };
        let rays = PageRays::new(file, design, sheet);
        Ok(Self { scale, rays })
    }

    /// Describes how a page lies on the sheet; `drawn` is the box on the page of the lines that are drawn.
    pub(super) fn page(
        &self,
        file: &DesignFile,
        design: &Design,
        drawn: Option<[[f64; 2]; 2]>,
        from: SizeSource,
    ) -> ScenePage {
        let sides_mm = design.page_mm.map(|side| side * self.scale);
        let drawn = drawn.filter(|_| drawn != design.bounds_mm());
        let drawn = drawn.map(|[low, high]| (high[0] - low[0]).max(high[1] - low[1]));
        ScenePage {
            long_mm: sides_mm[0].max(sides_mm[1]),
            drawn_mm: drawn.map(|long| long * self.scale),
            from,
            at_mm: self.on_sheet(self.rays.corner),
            centre_mm: self.on_sheet(self.rays.centre),
            sides_mm,
            turn_deg: file.rotate_deg.map_or(0.0, Finite::get),
        }
    }

    /// Returns the size on the sheet of a length on the page.
    pub(super) const fn scaled_mm(&self, length_mm: f64) -> f64 {
        length_mm * self.scale
    }

    /// Maps a point of the page onto the sheet.
    pub(super) fn apply(&self, at_mm: [f64; 2]) -> [f64; 2] {
        self.on_sheet(self.rays.direction(at_mm))
    }

    /// Returns where what moves so for each unit of scale lies.
    fn on_sheet(&self, [dx, dy]: [f64; 2]) -> [f64; 2] {
        let [x, y] = self.rays.from_mm;
        [x + dx * self.scale, y + dy * self.scale]
    }
}

/// The path of each point of a page over the sheet as the page grows: a ray from one point of the
/// sheet.
struct PageRays {
    /// The point of the sheet that holds the page while it has no size.
    from_mm: [f64; 2],
    /// Motion of the page's centre for each unit of scale.
    centre: [f64; 2],
    /// Motion of the lower left corner of the placed part.
    corner: [f64; 2],
    half_mm: [f64; 2],
    sin: f64,
    cos: f64,
}

impl PageRays {
    fn new(file: &DesignFile, design: &Design, sheet: DesignSheet) -> Self {
        let turn_deg = file.rotate_deg.unwrap_or_default().get();
        let (sin, cos) = turn_deg.to_radians().sin_cos();
        let centred = Self {
            from_mm: sheet.size_mm.map(|side| side / 2.0),
            centre: [0.0; 2],
            corner: [0.0; 2],
            half_mm: design.page_mm.map(|side| side / 2.0),
            sin,
            cos,
        };
        let placed = sheet.placed.points(design).into_iter();
        let placed: Vec<[f64; 2]> = placed.map(|at_mm| centred.direction(at_mm)).collect();
        let corner = base::plane::bounds(&placed).map_or([0.0; 2], |(low, _)| low);
        match file.at_mm {
            Some(corner_mm) => Self {
                from_mm: corner_mm.map(Finite::get),
                centre: corner.map(|axis| -axis),
                ..centred
            },
            None => Self { corner, ..centred },
        }
    }

    /// Returns how far a point of the page moves for each unit of scale.
    fn direction(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let (x, y) = (x - self.half_mm[0], y - self.half_mm[1]);
        [
            self.centre[0] + x * self.cos - y * self.sin,
            self.centre[1] + x * self.sin + y * self.cos,
        ]
    }
}

/// Distance from the sheet's edge that `fits` leaves for how far the tip is off the path that it tracks, in mm.
const TRACKING_MARGIN_MM: f64 = 0.7;

/// Returns the distance from the sheet's edge within which `fits` puts no stroke, in mm: half of the widest line, and what
/// tracking is off.
pub(super) fn edge_margin_mm(pens: &[PenFile]) -> f64 {
    let widths = pens.iter().map(|pen| pen.width_mm.get());
    TRACKING_MARGIN_MM + widths.fold(0.0, f64::max) / 2.0
}

/// Returns the longest side of a design's page at which every stroke lies on the sheet and its margin from its edges, at
/// the requested place and rotation; `None` if no possible size does. A page whose corner is put nearer to an edge
/// has that edge's margin there. With `whole_page` its corners are on the sheet too.
pub(super) fn fitting_size_mm(
    file: &DesignFile,
    design: &Design,
    sheet: DesignSheet,
    whole_page: bool,
) -> Option<f64> {
    let rays = PageRays::new(file, design, sheet);
    let long_mm = design.page_mm[0].max(design.page_mm[1]);
    let mut scales = ScaleRange::of_page(long_mm)?;
    let corners = corners(design.page_mm);
    let corners = corners.iter().filter(|_| whole_page);
    let points = design.strokes.iter().flat_map(|stroke| &stroke.points_mm);
    let points = points.map(|at_mm| (at_mm, sheet.margin_mm));
    for (at_mm, margin_mm) in points.chain(corners.map(|at_mm| (at_mm, 0.0))) {
        let axes = rays.from_mm.into_iter().zip(rays.direction(*at_mm));
        for ((from_mm, step), side_mm) in axes.zip(sheet.size_mm) {
            let low_mm = margin_mm.min(from_mm).max(0.0);
            let high_mm = (side_mm - margin_mm).max(from_mm).min(side_mm);
            scales.narrow(from_mm, step, [low_mm, high_mm]);
        }
    }
    scales.largest().map(|scale| scale * long_mm)
}

/// Range of scales at which all points so far lie on the sheet.
struct ScaleRange {
    min: f64,
    max: f64,
}

impl ScaleRange {
    fn of_page(long_mm: f64) -> Option<Self> {
        (long_mm > 0.0).then(|| Self {
            min: PAGE_SIDE_MM.start() / long_mm,
            max: PAGE_SIDE_MM.end() / long_mm,
        })
    }

    /// Keeps the scales at which `from_mm + scale * step` is within `low_mm` to `high_mm`.
    fn narrow(&mut self, from_mm: f64, step: f64, [low_mm, high_mm]: [f64; 2]) {
        let ends = [(low_mm - from_mm) / step, (high_mm - from_mm) / step];
        if ends.iter().all(|end| end.is_finite()) {
            self.min = self.min.max(ends[0].min(ends[1]));
            self.max = self.max.min(ends[0].max(ends[1]));
        } else if !(low_mm..=high_mm).contains(&from_mm) {
            self.max = f64::NEG_INFINITY;
        }
    }

    /// Returns the largest scale, if there is any.
    fn largest(&self) -> Option<f64> {
        // For a point exactly on the sheet's corner, only rounding is left of the range.
        (self.min <= self.max * (1.0 + f64::EPSILON)).then_some(self.max)
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests;
