//! Gaps between lines of the pattern, as a person measures them: numbered, asked for, and added to the proposal.

use super::calibration_desk::{CalibrationDesk, CalibrationDeskError};
use super::calibration_record::CalibrationSession;
use super::{InkObservation, PatternReading, PlaceReading, TouchAssessment};
use scene::SheetStroke;

/// Standard deviation of a gap that a person measures by ruler or loupe.
pub const GAP_SIGMA_MM: f64 = 0.15;

/// A gap that differs by more from its plan was measured at another place.
const GAP_OFF_MM_MAX: f64 = 8.0;

/// Two sides of a square of the pattern that are opposite to each other.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternGap {
    /// Name of the square.
    pub square: String,
    /// True between its left and its right side.
    pub is_width: bool,
    /// As planned, from the middle of one line to the middle of the other.
    pub planned_mm: f64,
    stroke: usize,
    from: (usize, [f64; 2]),
    to: (usize, [f64; 2]),
}

impl PatternGap {
    /// Returns the reading of so wide a gap.
    #[must_use]
    pub fn reading(&self, mm: f64) -> PatternReading {
        let ((_, [ax, ay]), (_, [bx, by])) = (self.from, self.to);
        PatternReading {
            stroke: self.stroke,
            piece: self.to.0,
            at_mm: self.to.1,
            from: Some(self.from),
            across: [(bx - ax) / self.planned_mm, (by - ay) / self.planned_mm],
            off_mm: mm - self.planned_mm,
            sigma_mm: GAP_SIGMA_MM,
        }
    }
}

/// Returns the gaps of a pattern that a person measures, in the order of their numbers: of each square its width and its height,
/// each at the middle.
#[must_use]
pub fn gaps(strokes: &[SheetStroke]) -> Vec<PatternGap> {
    let strokes = strokes.iter().enumerate();
    let squares = strokes.filter(|(_, stroke)| stroke.points_mm.len() == 5);
    squares
        .flat_map(|(stroke, square)| gaps_of_square(stroke, square))
        .collect()
}

fn gaps_of_square(stroke: usize, square: &SheetStroke) -> [PatternGap; 2] {
    let pieces = square.points_mm.iter().zip(square.points_mm.iter().skip(1));
    let middles = pieces.map(|([ax, ay], [bx, by])| [(ax + bx) / 2.0, (ay + by) / 2.0]);
    let middles: Vec<(usize, [f64; 2])> = middles.enumerate().collect();
    let gap = |axis: usize| {
        let along = |(_, at): &(usize, [f64; 2])| at.get(axis).copied().unwrap_or(0.0);
        let middles = || middles.iter().copied();
        let from = middles().min_by(|a, b| along(a).total_cmp(&along(b)));
        let to = middles().max_by(|a, b| along(a).total_cmp(&along(b)));
        let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
        let ([ax, ay], [bx, by]) = (from.1, to.1);
        PatternGap {
            square: square.source.clone(),
            is_width: axis == 0,
            planned_mm: (bx - ax).hypot(by - ay),
            stroke,
            from,
            to,
        }
    };
    [gap(0), gap(1)]
}

/// Distance between the left sides of two squares beside each other in the sketch, in characters: a square has ten.
const SKETCH_COLUMNS: f64 = 13.0;

/// Squares in one row of the sketch, each with its number, from 0, and its place from the left.
type SketchRow = Vec<(usize, f64)>;

/// Returns the pattern from above, each gap with its number.
#[must_use]
pub fn gap_sketch(gaps: &[PatternGap]) -> String {
    let rows = sketch_rows(gaps);
    let all = || rows.iter().flatten().map(|(_, x)| *x);
    let left_mm = all().fold(f64::INFINITY, f64::min);
    let apart = rows.iter().flat_map(|row| {
        let next = row.iter().skip(1);
        row.iter().zip(next).map(|((_, a), (_, b))| b - a)
    });
    let apart_mm = apart.fold(f64::INFINITY, f64::min).max(1.0);
    let mut text = String::new();
    for row in &rows {
        let mut line = |of: &dyn Fn(usize) -> String| {
            let mut line = String::new();
            for (index, x) in row {
                let column = column((x - left_mm) / apart_mm);
                line = format!("{line:<column$}{}", of(*index));
            }
            text.push_str(&format!("  {line}\n"));
        };
        line(&|_| "+--------+".to_owned());
        line(&|index| format!("|<- {:>2} ->|", 2 * index + 1));
        line(&|index| format!("|  {:>2} ^v |", 2 * index + 2));
        line(&|_| "+--------+".to_owned());
        text.push('\n');
    }
    text
}

/// Returns the squares of a pattern in rows from the top, each from the left.
fn sketch_rows(gaps: &[PatternGap]) -> Vec<SketchRow> {
    let mut rows: Vec<(f64, SketchRow)> = Vec::new();
    for (index, square) in gaps.chunks(2).enumerate() {
        let [x, y] = square.first().map_or([0.0; 2], |gap| gap.from.1);
        match rows.iter_mut().find(|(row, _)| (row - y).abs() < 5.0) {
            Some((_, row)) => row.push((index, x)),
            None => rows.push((y, vec![(index, x)])),
        }
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, row) in &mut rows {
        row.sort_by(|a, b| a.1.total_cmp(&b.1));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Returns the column at which a square begins, from its place in distances between squares.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sketch has few columns, and `as` saturates"
)]
fn column(place: f64) -> usize {
    (place * SKETCH_COLUMNS).round() as usize
}

impl InkObservation {
    /// Returns whether a person reads it.
    #[must_use]
    pub fn is_by_hand(&self) -> bool {
        self.camera.is_none() && !self.is_at_rest()
    }

    /// Returns whether nothing was drawn: the joints were read where the arm stood still.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns which gap is the next to be measured, from 0; `None` where all were.
    #[must_use]
    pub fn next_gap(&self, after: usize) -> Option<usize> {
        let of = self.places.len() / 2;
        (after..of).find(|gap| self.readings.iter().all(|read| read.place != 2 * gap + 1))
    }

    /// Makes it one whose gaps are not measured yet.
    #[must_use]
    pub fn unmeasured(self) -> Self {
        Self {
            camera: None,
            readings: Vec::new(),
            ..self
        }
    }
}

impl CalibrationDesk<'_> {
    /// Adds a gap, counted from 0, as a person measured it, in the place of what was measured of it before.
    ///
    /// # Errors
    /// Nothing was drawn for a person to measure, there is no such gap, or it cannot be one of this pattern.
    pub fn add_gap(
        &self,
        pattern: &[PatternGap],
        gap: usize,
        mm: f64,
    ) -> Result<(CalibrationSession, TouchAssessment), CalibrationDeskError> {
        let lock = self.store.lock()?;
        let mut session = self.proposal()?;
        let refused = CalibrationDeskError::Refused;
        let ink = session.ink.as_mut().filter(|ink| ink.is_by_hand());
        let none = || refused("no pattern was drawn for a person to measure".to_owned());
        let ink = ink.ok_or_else(none)?;
        let known = pattern.get(gap).filter(|_| 2 * gap + 1 < ink.places.len());
        let known = known.ok_or_else(|| refused(format!("there is no gap {}", gap + 1)))?;
        let read = known.reading(mm);
        if !mm.is_finite() || read.off_mm.abs() > GAP_OFF_MM_MAX {
            return Err(refused(format!(
                "gap {} is planned {:.1} mm wide, and {mm} mm is not near that: measure from the middle of one line to the middle of the other",
                gap + 1,
                known.planned_mm
            )));
        }
        ink.readings.retain(|before| before.place != 2 * gap + 1);
        ink.readings.push(PlaceReading {
            place: 2 * gap + 1,
            from: Some(2 * gap),
            across: read.across,
            off_mm: read.off_mm,
            sigma_mm: read.sigma_mm,
        });
        self.propose(session, &lock)
    }
}
