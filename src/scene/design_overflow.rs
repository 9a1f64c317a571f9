//! A design that reaches beyond its sheet: how far, how many of its strokes, and what would fit.

use super::{ScenePage, ScenePen};

/// More of the strokes that reach out are not named one by one; nor more points shown.
const POINTS_MAX: usize = 200_000;

/// Of a tenth of a millimetre.
const ROUNDING: f64 = 1e-3;

/// A design that does not fit its sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct DesignOverflow {
    /// The scene's title.
    pub title: String,
    /// The sheet's width and height.
    pub sheet_mm: [f64; 2],
    /// Its page as it would lie there.
    pub page: ScenePage,
    /// Lines of the design, for a picture.
    pub lines: Vec<OverflowStroke>,
    /// Number of strokes that leave the sheet.
    pub count: usize,
    /// Of how many.
    pub of: usize,
    /// Distance of the farthest point beyond the edge.
    pub by_mm: f64,
    /// Place of that point.
    pub at_mm: [f64; 2],
    /// The longest side of its page that fits at the place and turn that were asked for, if any does.
    pub fits_mm: Option<f64>,
    /// All of it as a sentence.
    pub why: String,
}

/// A stroke of such a design.
#[derive(Clone, Debug, PartialEq)]
pub struct OverflowStroke {
    /// On the sheet's plane.
    pub points_mm: Vec<[f64; 2]>,
    /// True if the stroke leaves the sheet.
    pub is_outside: bool,
    /// The pen's, sRGB.
    pub colour: [u8; 3],
    /// The pen's.
    pub width_mm: f64,
}

/// Strokes found so far that leave the sheet.
#[derive(Default)]
pub(super) struct OverflowCollector {
    lines: Vec<OverflowStroke>,
    points: usize,
    count: usize,
    worst: Option<(f64, [f64; 2], String)>,
}

impl OverflowCollector {
    /// Takes a stroke in, whether it reaches out or not; says whether it does.
    pub(super) fn take(
        &mut self,
        points_mm: &[[f64; 2]],
        source: &str,
        pen: Option<&ScenePen>,
        sheet_mm: [f64; 2],
    ) -> bool {
        let by = |point: &[f64; 2]| beyond_mm(*point, sheet_mm);
        let farthest = points_mm.iter().max_by(|a, b| by(a).total_cmp(&by(b)));
        let worst = farthest.map(|at| (by(at), *at)).filter(|(by, _)| *by > 0.0);
        self.points += points_mm.len();
        if self.points <= POINTS_MAX {
            self.lines.push(OverflowStroke {
                points_mm: points_mm.to_vec(),
                is_outside: worst.is_some(),
                colour: pen.map_or([0; 3], |pen| pen.colour),
                width_mm: pen.map_or(0.5, |pen| pen.width_mm),
            });
        }
        let Some((by_mm, at_mm)) = worst else {
            return false;
        };
        self.count += 1;
        if self.worst.as_ref().is_none_or(|(most, ..)| by_mm > *most) {
            self.worst = Some((by_mm, at_mm, source.to_owned()));
        }
        true
    }

    /// None where nothing reaches out.
    pub(super) fn all(
        self,
        sheet_mm: [f64; 2],
        of: usize,
        placed: impl FnOnce() -> OverflowPlacement,
    ) -> Option<DesignOverflow> {
        let (by_mm, at_mm, source) = self.worst?;
        let placed = placed();
        let ([x, y], [width, height]) = (at_mm, sheet_mm);
        let strokes = match (self.count, of) {
            (1, 1) => "the only stroke reaches".to_owned(),
            (1, of) => format!("1 of {of} strokes reaches"),
            (count, of) => format!("{count} of {of} strokes reach"),
        };
        let edge = farthest_edge(at_mm, sheet_mm);
        let why = format!(
            "design: {strokes} beyond the sheet of {width} by {height} mm, the worst by {by_mm:.1} mm over its {edge} edge ({source}, at ({x:.1}, {y:.1}) mm); {}",
            placed.remedy()
        );
        Some(DesignOverflow {
            title: placed.title,
            sheet_mm,
            page: placed.page,
            lines: self.lines,
            count: self.count,
            of,
            by_mm,
            at_mm,
            fits_mm: placed.fits_mm,
            why,
        })
    }
}

/// Place of a design that does not fit, and the size that would.
pub(super) struct OverflowPlacement {
    /// The scene's title.
    pub(super) title: String,
    /// Its page.
    pub(super) page: ScenePage,
    /// The longest that fits there.
    pub(super) fits_mm: Option<f64>,
    /// Its corner; absent in the middle of the sheet.
    pub(super) at_mm: Option<[f64; 2]>,
}

impl OverflowPlacement {
    fn remedy(&self) -> String {
        let at = self.at_mm.map(|[x, y]| format!(" at ({x}, {y}) mm"));
        let turned =
            (self.page.turn_deg != 0.0).then(|| format!(" turned by {}°", self.page.turn_deg));
        let place = [at, turned].into_iter().flatten().collect::<String>();
        let long_mm = self.page.long_mm;
        match self.fits_mm {
            // Down to a tenth, so that the size that is named does fit.
            Some(fits_mm) if fits_mm < long_mm => format!(
                "its longer side is {long_mm:.1} mm, and at most {} mm fit{place}: make design.size_mm (or --size) smaller",
                (fits_mm * 10.0 + ROUNDING).floor() / 10.0
            ),
            Some(fits_mm) => format!(
                "its longer side is {long_mm:.1} mm, and only {fits_mm:.1} mm would fit{place}: move design.at_mm (or --at)"
            ),
            None => format!("no size of it fits{place}: move design.at_mm (or --at)"),
        }
    }
}

/// Returns the name of the edge that a point lies farthest beyond.
fn farthest_edge([x, y]: [f64; 2], [width, height]: [f64; 2]) -> &'static str {
    let beyond = [
        (-x, "left"),
        (x - width, "right"),
        (-y, "lower"),
        (y - height, "upper"),
    ];
    let farthest = beyond.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    farthest.map_or("", |(_, edge)| edge)
}

/// Returns the distance of a point beyond the sheet's edge; 0 on the sheet.
fn beyond_mm([x, y]: [f64; 2], [width, height]: [f64; 2]) -> f64 {
    let over = |at: f64, side: f64| (-at).max(at - side).max(0.0);
    over(x, width).max(over(y, height))
}
