//! A design that reaches beyond its sheet: how far, how many of its strokes, and what would fit.

use super::{ScenePage, ScenePen};
use base::units::short;

/// Most points of the strokes that are kept for a picture.
const POINTS_MAX: usize = 200_000;

/// Tolerance for rounding, in tenths of a millimetre.
const ROUNDING: f64 = 1e-3;

/// A design that does not fit its sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct DesignOverflow {
    /// The scene's title.
    pub title: String,
    /// The sheet's width and height.
    pub sheet_mm: [f64; 2],
    /// The page as it would lie on the sheet.
    pub page: ScenePage,
    /// Lines of the design, for a picture.
    pub lines: Vec<OverflowStroke>,
    /// Number of strokes that leave the sheet.
    pub count: usize,
    /// Number of all strokes.
    pub of: usize,
    /// Distance of the farthest point beyond the edge.
    pub by_mm: f64,
    /// Place of that point.
    pub at_mm: [f64; 2],
    /// Longest side of the page that fits at the requested place and rotation, if any does.
    pub fits_mm: Option<f64>,
    /// Notes on what of the design is not drawn.
    pub notes: Vec<String>,
    /// The problem as a sentence.
    pub why: String,
}

/// A stroke of a design that does not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct OverflowStroke {
    /// On the sheet's plane.
    pub points_mm: Vec<[f64; 2]>,
    /// True if the stroke leaves the sheet.
    pub is_outside: bool,
    /// The pen's colour, sRGB.
    pub colour: [u8; 3],
    /// The pen's width.
    pub width_mm: f64,
}

/// Collects strokes and finds those that leave the sheet.
#[derive(Default)]
pub(super) struct OverflowCollector {
    lines: Vec<OverflowStroke>,
    points: usize,
    count: usize,
    worst: Option<(f64, [f64; 2], String)>,
}

impl OverflowCollector {
    /// Adds a stroke, and returns whether it leaves the sheet.
    pub(super) fn add(
        &mut self,
        points_mm: &[[f64; 2]],
        source: &str,
        pen: Option<&ScenePen>,
        sheet_mm: [f64; 2],
    ) -> bool {
        let excess_mm = |point: &[f64; 2]| beyond_mm(*point, sheet_mm);
        let excesses = points_mm.iter().map(|point| (excess_mm(point), *point));
        let farthest = excesses.max_by(|(a, _), (b, _)| a.total_cmp(b));
        let worst = farthest.filter(|(by_mm, _)| *by_mm > 0.0);
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
        let worst = self.worst.as_ref();
        if worst.is_none_or(|(worst_mm, ..)| by_mm > *worst_mm) {
            self.worst = Some((by_mm, at_mm, source.to_owned()));
        }
        true
    }

    /// Returns the overflow; `None` if every stroke lies on the sheet.
    pub(super) fn finish(
        self,
        sheet_mm: [f64; 2],
        total: usize,
        placement: impl FnOnce() -> OverflowPlacement,
    ) -> Option<DesignOverflow> {
        let (by_mm, at_mm, source) = self.worst?;
        let placement = placement();
        let ([x, y], [width, height]) = (at_mm.map(tenths), sheet_mm.map(short));
        let strokes = match (self.count, total) {
            (1, 1) => "the only stroke reaches".to_owned(),
            (1, total) => format!("1 of {total} strokes reaches"),
            (count, total) => format!("{count} of {total} strokes reach"),
        };
        let edge = farthest_edge(at_mm, sheet_mm);
        let why = format!(
            "design: {strokes} beyond the sheet of {width} by {height} mm, the worst by {} mm over its {edge} edge ({source}, at ({x}, {y}) mm); {}",
            length_text(by_mm),
            placement.remedy()
        );
        Some(DesignOverflow {
            title: placement.title,
            sheet_mm,
            page: placement.page,
            lines: self.lines,
            count: self.count,
            of: total,
            by_mm,
            at_mm,
            fits_mm: placement.fits_mm,
            notes: placement.notes,
            why,
        })
    }
}

/// Place of a design that does not fit, and the size that would.
pub(super) struct OverflowPlacement {
    /// The scene's title.
    pub(super) title: String,
    /// The page.
    pub(super) page: ScenePage,
    /// Longest side that fits there.
    pub(super) fits_mm: Option<f64>,
    /// Corner of the page; `None` if it is centred on the sheet.
    pub(super) at_mm: Option<[f64; 2]>,
    /// True if the height of the letters says how large it is.
    pub(super) is_letter_height: bool,
    /// Notes on what of the design is not drawn.
    pub(super) notes: Vec<String>,
}

impl OverflowPlacement {
    fn remedy(&self) -> String {
        let at = self.at_mm.map(|at_mm| at_mm.map(short));
        let at = at.map(|[x, y]| format!(" at ({x}, {y}) mm"));
        let turn_deg = self.page.turn_deg;
        let rotation = (turn_deg != 0.0).then(|| format!(" turned by {}°", short(turn_deg)));
        let place = [at, rotation].into_iter().flatten().collect::<String>();
        let long_mm = length_text(self.page.long_mm);
        let size = match self.is_letter_height {
            true => "design.letter_height_mm (or --letter-height)",
            false => "design.size_mm (or --size)",
        };
        match self.fits_mm {
            // Round down to a tenth, so that the stated size does fit.
            Some(fits_mm) if fits_mm < self.page.long_mm => format!(
                "its longer side is {long_mm} mm, and at most {} mm fit{place}: make {size} smaller",
                (fits_mm * 10.0 + ROUNDING).floor() / 10.0
            ),
            Some(fits_mm) => format!(
                "its longer side is {long_mm} mm, and only {fits_mm:.1} mm would fit{place}: move design.at_mm (or --at)"
            ),
            None => format!("no size of it fits{place}: move design.at_mm (or --at)"),
        }
    }
}

/// Writes a length with as many digits, from one to six, as tell it from the nearest tenth of a millimetre.
fn length_text(length_mm: f64) -> String {
    let tenths = tenths(length_mm);
    let digits = format!("{length_mm:.3}");
    match digits.trim_end_matches('0').trim_end_matches('.') {
        _ if is_long(length_mm) => tenths,
        "0" if length_mm > 0.0 => format!("{length_mm:.6}"),
        short if short.len() > tenths.len() => short.to_owned(),
        _ => tenths,
    }
}

fn is_long(length_mm: f64) -> bool {
    length_mm.abs() >= 1e6
}

/// Writes a length with one decimal, or as a short number where that would be many digits.
fn tenths(length_mm: f64) -> String {
    match is_long(length_mm) {
        true => short(length_mm),
        false => format!("{length_mm:.1}"),
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
    let excess_mm = |at: f64, side: f64| (-at).max(at - side).max(0.0);
    excess_mm(x, width).max(excess_mm(y, height))
}
