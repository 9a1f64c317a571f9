//! Gaps between lines of the pattern that a person measures: their numbers, their sketch, and their readings in the proposal.

use super::calibration_desk::{CalibrationDesk, CalibrationDeskError};
use super::calibration_record::CalibrationSession;
use super::{InkObservation, PatternReading, PlaceReading, TouchAssessment};
use scene::SheetStroke;

/// Standard deviation of a person's measurement of a gap by ruler or loupe.
pub const GAP_SIGMA_MM: f64 = 0.15;

/// A gap that differs by more from its plan was measured elsewhere.
const GAP_OFF_MM_MAX: f64 = 8.0;

/// Two opposite sides of a square of the pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternGap {
    /// Name of the square.
    pub square: String,
    /// True for its left and its right side.
    pub is_width: bool,
    /// Planned distance from the middle of one line to the middle of the other.
    pub planned_mm: f64,
    stroke: usize,
    from: (usize, [f64; 2]),
    to: (usize, [f64; 2]),
}

impl PatternGap {
    /// Returns the reading of a gap of this width.
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

/// Returns the gaps of a pattern that a person measures, in the order of their numbers: the width and the height of each square,
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
    let midpoints = pieces.map(|([ax, ay], [bx, by])| [(ax + bx) / 2.0, (ay + by) / 2.0]);
    let midpoints: Vec<(usize, [f64; 2])> = midpoints.enumerate().collect();
    let gap = |axis: usize| {
        let coordinate = |(_, at): &(usize, [f64; 2])| at.get(axis).copied().unwrap_or(0.0);
        let midpoints = || midpoints.iter().copied();
        let from = midpoints().min_by(|a, b| coordinate(a).total_cmp(&coordinate(b)));
        let to = midpoints().max_by(|a, b| coordinate(a).total_cmp(&coordinate(b)));
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

/// Distance between the left sides of neighbouring squares in the sketch, in characters; a square is ten wide.
const SKETCH_COLUMNS: f64 = 13.0;

/// Squares in one row of the sketch, each with its number from 0 and its x.
type SketchRow = Vec<(usize, f64)>;

/// Returns a sketch of the pattern from above, with the number of each gap.
#[must_use]
pub fn gap_sketch(gaps: &[PatternGap]) -> String {
    let rows = sketch_rows(gaps);
    let left = rows.iter().flatten().map(|(_, x)| *x);
    let left_mm = left.fold(f64::INFINITY, f64::min);
    let spacings_mm = rows.iter().flat_map(|row| {
        let next = row.iter().skip(1);
        row.iter().zip(next).map(|((_, a), (_, b))| b - a)
    });
    let spacing_mm = spacings_mm.fold(f64::INFINITY, f64::min).max(1.0);
    let mut text = String::new();
    for row in &rows {
        let mut push_line = |box_row: &dyn Fn(usize) -> String| {
            let mut line = String::new();
            for (index, x) in row {
                let column = column((x - left_mm) / spacing_mm);
                line = format!("{line:<column$}{}", box_row(*index));
            }
            text.push_str(&format!("  {line}\n"));
        };
        push_line(&|_| "+--------+".to_owned());
        push_line(&|index| format!("|<- {:>2} ->|", 2 * index + 1));
        push_line(&|index| format!("|  {:>2} ^v |", 2 * index + 2));
        push_line(&|_| "+--------+".to_owned());
        text.push('\n');
    }
    text
}

/// Returns the squares of a pattern in rows from the top, each row from the left.
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

/// Returns the column at which a square begins, given its place in units of the spacing.
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

    /// Returns whether nothing was drawn: the joints were only read at rest.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the next gap to measure, from 0; `None` if all were measured.
    #[must_use]
    pub fn next_gap(&self, after: usize) -> Option<usize> {
        let count = self.places.len() / 2;
        let is_open = |gap: &usize| self.readings.iter().all(|read| read.place != 2 * gap + 1);
        (after..count).find(is_open)
    }

    /// Returns it without any readings, for a person to measure.
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
    /// Adds a person's measurement of a gap, counted from 0, replacing an earlier one.
    ///
    /// # Errors
    /// Nothing was drawn for a person to measure, there is no such gap, or the measurement is implausible.
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
        let none = || refused("no pattern was drawn to measure by hand".to_owned());
        let ink = ink.ok_or_else(none)?;
        let planned = pattern.get(gap).filter(|_| 2 * gap + 1 < ink.places.len());
        let planned =
            planned.ok_or_else(|| refused(format!("the pattern has no gap {}", gap + 1)))?;
        let reading = planned.reading(mm);
        if !mm.is_finite() || reading.off_mm.abs() > GAP_OFF_MM_MAX {
            return Err(refused(format!(
                "gap {} was drawn {:.1} mm wide; {mm} mm cannot be right. Next: measure from the middle of one line to the middle of the other",
                gap + 1,
                planned.planned_mm
            )));
        }
        ink.readings.retain(|earlier| earlier.place != 2 * gap + 1);
        ink.readings.push(PlaceReading {
            place: 2 * gap + 1,
            from: Some(2 * gap),
            across: reading.across,
            off_mm: reading.off_mm,
            sigma_mm: reading.sigma_mm,
        });
        self.propose(session, &lock)
    }
}
