//! A design that reaches beyond its sheet: how far, how many of its strokes, and what would fit.

use super::{ScenePage, ScenePen, SizeSource};
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
    /// Longest side that fits at the requested rotation with a margin, if any does: at the requested place, or in the middle
    /// of the sheet.
    pub fits_mm: Option<f64>,
    /// True if that is for the middle of the sheet, in place of the requested place.
    pub fits_centred: bool,
    /// The nearest place of its lower left corner at which its size fits, if one was asked for and is
    /// why it does not.
    pub moves_to_mm: Option<[f64; 2]>,
    /// True for the scene's own design, which its file places.
    pub is_own: bool,
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
    bounds: Option<[[f64; 2]; 2]>,
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
        self.bounds = including(self.bounds, points_mm);
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
        let [low, high] = self.bounds?;
        let placement = placement();
        let sides_mm = [high[0] - low[0], high[1] - low[1]];
        let is_larger = sides_mm[0] > sheet_mm[0] || sides_mm[1] > sheet_mm[1];
        let is_fitted = placement.page.from == SizeSource::Fitted;
        let moves_to_mm = (placement.at_mm)
            .filter(|_| !is_larger && !is_fitted)
            .map(|at_mm| placement.moved_mm(at_mm, [low, high], sheet_mm));
        let [width, height] = sheet_mm.map(short);
        let reason = match is_larger {
            true => {
                let [x, y] = sides_mm.map(length_text);
                format!("design: {x} × {y} mm is larger than the sheet of {width} × {height} mm")
            }
            false => format!(
                "design: it reaches {} mm beyond the {} edge of the sheet of {width} × {height} mm ({source})",
                length_text(by_mm),
                farthest_edge(at_mm, sheet_mm)
            ),
        };
        let (fits_mm, fits_centred) = placement.fitting(is_larger);
        let why = reason + &placement.remedy(moves_to_mm, fits_mm, fits_centred);
        Some(DesignOverflow {
            title: placement.title,
            sheet_mm,
            page: placement.page,
            lines: self.lines,
            count: self.count,
            of: total,
            by_mm,
            at_mm,
            fits_mm,
            fits_centred,
            moves_to_mm,
            is_own: placement.is_own,
            notes: placement.notes,
            why,
        })
    }
}

/// Returns the box around a box and points.
pub(super) fn including(
    bounds: Option<[[f64; 2]; 2]>,
    points: &[[f64; 2]],
) -> Option<[[f64; 2]; 2]> {
    let all = bounds.iter().flatten().chain(points);
    base::plane::bounds(all).map(|(low, high)| [low, high])
}

/// Place of a design that does not fit, and the size that would.
pub(super) struct OverflowPlacement {
    /// The scene's title.
    pub(super) title: String,
    /// The page.
    pub(super) page: ScenePage,
    /// Longest side that fits there.
    pub(super) fits_mm: Option<f64>,
    /// Longest side that fits in the middle of the sheet.
    pub(super) fits_centred_mm: Option<f64>,
    /// Distance from the sheet's edges that is kept.
    pub(super) margin_mm: f64,
    /// Corner of the page; `None` if it is centred on the sheet.
    pub(super) at_mm: Option<[f64; 2]>,
    /// True for the scene's own design.
    pub(super) is_own: bool,
    /// True if the height of the letters says how large it is.
    pub(super) is_letter_height: bool,
    /// Notes on what of the design is not drawn.
    pub(super) notes: Vec<String>,
}

impl OverflowPlacement {
    /// Returns the corner from which everything lies on the sheet, and off its edges as far as there is room.
    fn moved_mm(
        &self,
        [x, y]: [f64; 2],
        [low, high]: [[f64; 2]; 2],
        [width, height]: [f64; 2],
    ) -> [f64; 2] {
        let shift = |low: f64, high: f64, side: f64| {
            let margin_mm = self.margin_mm.min((side - (high - low)) / 2.0);
            (margin_mm - low).max(0.0) + (side - margin_mm - high).min(0.0)
        };
        let moved = [
            x + shift(low[0], high[0], width),
            y + shift(low[1], high[1], height),
        ];
        moved.map(|mm| (mm * 100.0).round() / 100.0)
    }

    /// Returns the largest side that fits, and whether the requested place is given up for it: the place of what has to be
    /// made smaller anyway may leave room for a dot alone.
    fn fitting(&self, is_larger: bool) -> (Option<f64>, bool) {
        let is_fitted = self.page.from == SizeSource::Fitted;
        let is_better = self.fits_centred_mm > self.fits_mm;
        match self.at_mm.is_some() && (is_larger || is_fitted) && is_better {
            true => (self.fits_centred_mm, true),
            false => (self.fits_mm, false),
        }
    }

    /// Returns what a person changes, moving before making smaller.
    fn remedy(
        &self,
        moves_to_mm: Option<[f64; 2]>,
        fits_mm: Option<f64>,
        fits_centred: bool,
    ) -> String {
        let key = |words: &str| match self.is_own {
            true => format!(": {words}"),
            false => String::new(),
        };
        let size_key = match self.is_letter_height {
            true => "make `design.letter_height_mm` smaller",
            false => "make `design.size_mm` smaller",
        };
        let (place, size_words) = match fits_centred {
            true => (
                "in the middle of the sheet",
                format!("{size_key}, and leave `design.at_mm` out"),
            ),
            false => ("there", size_key.to_owned()),
        };
        let place_words = key("change `design.at_mm`");
        match (moves_to_mm, fits_mm) {
            (Some([x, y]), _) => {
                format!("; it fits at ({}, {}) mm{place_words}", short(x), short(y))
            }
            // Round down to a tenth, so that the stated size does fit.
            (None, Some(fits_mm)) => {
                let fits_mm = (fits_mm * 10.0 + ROUNDING).floor() / 10.0;
                let words = key(&size_words);
                format!("; at {fits_mm} mm on its longer side, it fits {place}{words}")
            }
            (None, None) => format!("; it does not fit {place} at any size{place_words}"),
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
