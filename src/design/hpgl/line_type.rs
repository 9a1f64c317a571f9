//! Reads line types of HP-GL: patterns of dashes, gaps and dots.

use super::commands::HpglCommand;

/// Dashes and gaps of line types 1 to 8, in hundredths of a pattern; a dash of 0 is a dot.
const PATTERNS: [&[f64]; 8] = [
    &[0.0, 100.0],
    &[50.0, 50.0],
    &[70.0, 30.0],
    &[80.0, 10.0, 0.0, 10.0],
    &[70.0, 10.0, 10.0, 10.0],
    &[50.0, 10.0, 10.0, 10.0, 10.0, 10.0],
    &[70.0, 10.0, 0.0, 10.0, 0.0, 10.0],
    &[50.0, 10.0, 0.0, 10.0, 10.0, 10.0, 0.0, 10.0],
];

/// Default length of a pattern, in hundredths of the distance between the scaling points.
const LENGTH_PERCENT: f64 = 4.0;

/// Pattern of the lines that follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum LineType {
    #[default]
    Solid,
    /// LT0: a dot at each point, no line.
    Dots,
    /// Dashes and gaps in turn, in mm.
    Dashed(Vec<f64>),
}

impl LineType {
    /// Reads LT; `None` for an unknown type.
    pub(super) fn of(command: &HpglCommand, frame_mm: [f64; 2]) -> Option<Self> {
        if command.numbers.is_empty() {
            return Some(Self::Solid);
        }
        let index = match command.choice(0, 0) {
            0 => return Some(Self::Dots),
            // Negative types fit complete patterns between two points; the pattern is the same.
            kind => usize::try_from(kind.unsigned_abs() - 1).ok()?,
        };
        let length = command.number(1, LENGTH_PERCENT);
        let length_mm = match command.choice(2, 0) {
            1 => length,
            _ => frame_mm[0].hypot(frame_mm[1]) * length / 100.0,
        };
        let parts = PATTERNS.get(index)?.iter();
        let parts_mm = parts.map(|part| part * length_mm / 100.0);
        Some(Self::Dashed(parts_mm.collect()))
    }
}
