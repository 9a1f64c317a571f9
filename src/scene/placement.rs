//! Place of a design's page on the sheet, and the largest size that it can have there.

use serde::{Deserialize, Serialize};

use super::file::DesignFile;
use super::{ScenePage, SizeSource};
use base::units::{Finite, OutOfRange};
use design::Design;

/// Smallest and largest longer side of a page on a sheet, in mm.
pub const PAGE_SIDE_MM: std::ops::RangeInclusive<f64> = 1.0..=2000.0;

/// Place and size of a design on the sheet, instead of the scene's own. The default is the
/// middle of the sheet, not turned, as large as the design's file says, or else the scene.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DesignPlacement {
    /// Longer side of the page on the sheet.
    pub size_mm: Option<Finite>,
    /// Lower left corner of the page on the sheet before it is turned, as `at_mm` of a scene; absent centres the page.
    pub at_mm: Option<[Finite; 2]>,
    /// Turn of the page about its centre, counter-clockwise, as `rotate_deg` of a scene.
    pub rotate_deg: Option<Finite>,
    /// True draws as large as the sheet holds at this place and turn; `size_mm` is not used then.
    pub fits: bool,
}

impl DesignPlacement {
    /// Returns whether it says how large the design is.
    pub(super) const fn is_sized(&self) -> bool {
        self.fits || self.size_mm.is_some()
    }

    /// Puts its place and turn in place of what a scene says of its own design.
    pub(super) const fn apply_to(&self, design: &mut DesignFile) {
        (design.at_mm, design.rotate_deg) = (self.at_mm, self.rotate_deg);
        if self.is_sized() {
            design.size_mm = self.size_mm;
        }
    }
}

/// The affine map from a design's page to the sheet.
pub(super) struct PageOnSheet {
    scale: f64,
    ray: PageRays,
}

impl PageOnSheet {
    /// Lays a page as a scene says.
    ///
    /// # Errors
    /// A size that is not possible.
    pub(super) fn new(
        file: &DesignFile,
        page_mm: [f64; 2],
        sheet_mm: [f64; 2],
    ) -> Result<Self, OutOfRange> {
        let long_mm = page_mm[0].max(page_mm[1]);
        let size_mm = file.size_mm.map(|size_mm| {
            OutOfRange::check(|| "design.size_mm".to_owned(), size_mm, &PAGE_SIDE_MM)
        });
        let scale = match size_mm.transpose()? {
            Some(size_mm) if long_mm > 0.0 => size_mm / long_mm,
            _ => 1.0,
        };
        let ray = PageRays::new(file, page_mm, sheet_mm);
        Ok(Self { scale, ray })
    }

    /// Describes how a page lies on the sheet.
    pub(super) fn page(
        &self,
        file: &DesignFile,
        page_mm: [f64; 2],
        sheet_mm: [f64; 2],
        from: SizeSource,
    ) -> ScenePage {
        let sides_mm = page_mm.map(|side| side * self.scale);
        let [[sheet_w, sheet_h], [page_w, page_h]] = [sheet_mm, sides_mm];
        let centred = [(sheet_w - page_w) / 2.0, (sheet_h - page_h) / 2.0];
        ScenePage {
            long_mm: page_w.max(page_h),
            from,
            at_mm: file.at_mm.map_or(centred, |at| at.map(Finite::get)),
            sides_mm,
            turn_deg: file.rotate_deg.map_or(0.0, Finite::get),
        }
    }

    /// Returns the place of a page's point on the sheet.
    pub(super) fn apply(&self, at_mm: [f64; 2]) -> [f64; 2] {
        let ([fx, fy], [dx, dy]) = (self.ray.from_mm, self.ray.direction(at_mm));
        [fx + dx * self.scale, fy + dy * self.scale]
    }
}

/// The way of each point of a page over the sheet as the page grows: a ray from one point of the sheet.
struct PageRays {
    /// The point of the sheet that holds the page while it has no size.
    from_mm: [f64; 2],
    /// The page's centre as it grows by one.
    centre: [f64; 2],
    middle_mm: [f64; 2],
    sin: f64,
    cos: f64,
}

impl PageRays {
    fn new(file: &DesignFile, [width, height]: [f64; 2], sheet_mm: [f64; 2]) -> Self {
        let middle_mm = [width / 2.0, height / 2.0];
        let (from_mm, centre) = match file.at_mm {
            Some(corner_mm) => (corner_mm.map(Finite::get), middle_mm),
            None => (sheet_mm.map(|side| side / 2.0), [0.0; 2]),
        };
        let turn_deg = file.rotate_deg.unwrap_or_default().get();
        let (sin, cos) = turn_deg.to_radians().sin_cos();
        Self {
            from_mm,
            centre,
            middle_mm,
            sin,
            cos,
        }
    }

    /// Returns how far a point of the page moves for each unit of scale.
    fn direction(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let (x, y) = (x - self.middle_mm[0], y - self.middle_mm[1]);
        [
            self.centre[0] + x * self.cos - y * self.sin,
            self.centre[1] + x * self.sin + y * self.cos,
        ]
    }
}

/// Returns the longest side of a design's page at which every stroke lies on the sheet, at the place and turn that are
/// asked for; `None` if no possible size does.
pub(super) fn fitting_size_mm(
    file: &DesignFile,
    design: &Design,
    sheet_mm: [f64; 2],
) -> Option<f64> {
    let rays = PageRays::new(file, design.page_mm, sheet_mm);
    let long_mm = design.page_mm[0].max(design.page_mm[1]);
    let mut scales = ScaleRange::of_page(long_mm)?;
    let points = design.strokes.iter().flat_map(|stroke| &stroke.points_mm);
    for at_mm in points {
        let ways = rays.from_mm.into_iter().zip(rays.direction(*at_mm));
        for ((from_mm, step), side_mm) in ways.zip(sheet_mm) {
            scales.narrow(from_mm, step, side_mm);
        }
    }
    scales.most().map(|scale| scale * long_mm)
}

/// Scales of a page at which all points seen so far lie on the sheet.
struct ScaleRange {
    least: f64,
    most: f64,
}

impl ScaleRange {
    fn of_page(long_mm: f64) -> Option<Self> {
        (long_mm > 0.0).then(|| Self {
            least: PAGE_SIDE_MM.start() / long_mm,
            most: PAGE_SIDE_MM.end() / long_mm,
        })
    }

    /// Keeps the scales at which `from_mm + scale * step` is within 0 to `side_mm`.
    fn narrow(&mut self, from_mm: f64, step: f64, side_mm: f64) {
        let ends = [(0.0 - from_mm) / step, (side_mm - from_mm) / step];
        if ends.iter().all(|end| end.is_finite()) {
            self.least = self.least.max(ends[0].min(ends[1]));
            self.most = self.most.min(ends[0].max(ends[1]));
        } else if !(0.0..=side_mm).contains(&from_mm) {
            self.most = f64::NEG_INFINITY;
        }
    }

    /// Returns the largest scale, if there is any.
    fn most(&self) -> Option<f64> {
        // A point on the sheet's very corner leaves its ray nothing but rounding.
        (self.least <= self.most * (1.0 + f64::EPSILON)).then_some(self.most)
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests;
