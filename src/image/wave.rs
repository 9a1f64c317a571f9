//! Draws a picture's tones as a line that swings: the darker, the wider.

use super::darkness::ToneSheet;
use super::tone_carry::ToneCarry;
use super::wave_coverage::WaveCoverage;
use base::plane::Point;

/// Distance between neighbouring lines, and length of a whole swing, in widths of the pen.
pub(super) const APART_WIDTHS: f64 = 5.0;
pub(super) const SWING_WIDTHS: f64 = 2.5;

/// Shares of a straight line's tone that a line begins at, and goes on at.
const BEGINS_AT: f64 = 0.6;
const GOES_ON_AT: f64 = 0.3;

/// Fewest lines over the shorter side of a picture: beyond that, less ink is a smaller swing.
const LINES_MIN: f64 = 12.0;

/// Places across and along a line at which its tone is read, in the finest pattern.
const READ_ACROSS: f64 = 3.0;
const READ_ALONG: f64 = 1.0;

/// Directions of a spiral in which its turns lie side by side.
const DIRECTIONS: usize = 120;

/// A place where the line swings to one side.
struct WavePlace {
    middle_mm: Point,
    /// Direction of the line, and across it.
    along: Point,
    across: Point,
    /// Which place of the neighbouring line it lies beside.
    beside: usize,
}

impl WavePlace {
    /// Returns the place this far along and across, within the sheet.
    fn moved(&self, along_mm: f64, across_mm: f64, sheet: &ToneSheet) -> Point {
        let moved = |axis: usize| {
            let at = |point: &Point| point.get(axis).copied().unwrap_or(0.0);
            let [middle, along, across] = [&self.middle_mm, &self.along, &self.across].map(at);
            (middle + along_mm * along + across_mm * across).clamp(0.0, at(&sheet.size_mm()))
        };
        [moved(0), moved(1)]
    }
}

/// Builds the paths of one wave from place to place.
struct WavePen<'s> {
    sheet: &'s ToneSheet,
    coverage: WaveCoverage,
    /// Number of places along and across at which a tone is read.
    reads: [usize; 2],
    /// What the line beside owes, and what the place before owes.
    beside: ToneCarry,
    before: f64,
    ink: f64,
    is_left: bool,
    last: Option<WavePlace>,
    piece: Vec<Point>,
    paths: Vec<Vec<Point>>,
}

impl<'s> WavePen<'s> {
    fn new(sheet: &'s ToneSheet, pattern: WavePattern, places: usize) -> Self {
        Self {
            sheet,
            coverage: pattern.coverage,
            reads: pattern.reads,
            beside: ToneCarry::new(places),
            before: 0.0,
            ink: pattern.ink,
            is_left: false,
            last: None,
            piece: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Returns the share of the paper that is covered where the picture is black.
    fn black(&self) -> f64 {
        self.ink * self.coverage.most()
    }

    /// Goes to the next place: draws as much as is wanted there and owed by what is beside and before it, or lifts the pen.
    fn go(&mut self, place: WavePlace) {
        self.is_left = !self.is_left;
        let Some(darkness) = self.darkness(&place) else {
            self.beside.clear(place.beside);
            return self.lift();
        };
        let wanted = darkness * self.black();
        let due = wanted + self.beside.take(place.beside) + self.before;
        let least = self.coverage.least();
        let bound = if self.piece.is_empty() {
            BEGINS_AT
        } else {
            GOES_ON_AT
        };
        let is_drawn = wanted > 0.0 && due >= least * bound;
        let drawn = if is_drawn {
            due.clamp(least, self.coverage.most())
        } else {
            0.0
        };
        let owed = (due - drawn).clamp(-1.0, 1.0) / 2.0;
        self.beside.owe(place.beside, owed);
        self.before = owed;
        if !is_drawn {
            return self.lift();
        }
        if self.piece.is_empty() {
            self.piece
                .push(place.moved(-self.coverage.end_mm(), 0.0, self.sheet));
        }
        let side = if self.is_left { 1.0 } else { -1.0 };
        let swing_mm = side * self.coverage.swing_mm(drawn);
        self.piece.push(place.moved(0.0, swing_mm, self.sheet));
        self.last = Some(place);
    }

    /// Returns the mean darkness of the part of the band that belongs to a place; `None` outside the picture.
    fn darkness(&self, place: &WavePlace) -> Option<f64> {
        self.sheet.contains(place.middle_mm).then(|| {
            let [along, across] = self.reads;
            let [long_mm, wide_mm] = [self.coverage.half_swing_mm(), self.coverage.apart_mm()];
            let from_middle = |index: usize, of: usize| (index as f64 + 0.5) / of as f64 - 0.5;
            let sum: f64 = (0..along * across)
                .map(|index| {
                    let along_mm = long_mm * from_middle(index % along, along);
                    let across_mm = wide_mm * from_middle(index / along, across);
                    self.sheet
                        .darkness(place.moved(along_mm, across_mm, self.sheet))
                })
                .sum();
            sum / (along * across) as f64
        })
    }

    fn lift(&mut self) {
        if let Some(last) = self.last.take() {
            self.piece
                .push(last.moved(self.coverage.end_mm(), 0.0, self.sheet));
            self.paths.push(std::mem::take(&mut self.piece));
        }
    }

    /// Ends a row: the next one begins beside it and owes nothing before.
    fn end_row(&mut self) {
        self.lift();
        self.before = 0.0;
    }
}

/// A pattern of lines that puts down a share of the ink: with less ink the lines lie farther apart and swing wider.
struct WavePattern {
    coverage: WaveCoverage,
    reads: [usize; 2],
    /// Share of the ink of this pattern.
    ink: f64,
}

impl WavePattern {
    fn of(sheet: &ToneSheet, pen_mm: f64, ink: f64) -> Self {
        let [width_mm, height_mm] = sheet.size_mm();
        let widest = width_mm.min(height_mm) / LINES_MIN / (APART_WIDTHS * pen_mm);
        let scale = ink.recip().min(widest).max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and the least share of ink is bounded"
        )]
        let reads = [READ_ALONG, READ_ACROSS].map(|finest| (finest * scale).round() as usize);
        Self {
            coverage: WaveCoverage::of(pen_mm, scale),
            reads,
            ink: ink * scale,
        }
    }
}

/// Returns the rows of a picture, and the share of the paper that is covered where it is black.
pub(crate) fn rows(sheet: &ToneSheet, pen_mm: f64, ink: f64) -> (Vec<Vec<Point>>, Option<f64>) {
    let [width_mm, height_mm] = sheet.size_mm();
    let pattern = WavePattern::of(sheet, pen_mm, ink);
    let coverage = &pattern.coverage;
    let [apart_mm, half_mm] = [coverage.apart_mm(), coverage.half_swing_mm()];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and the sheet is bounded"
    )]
    let [places, rows] = [width_mm / half_mm, height_mm / apart_mm].map(|count| count as usize);
    let mut pen = WavePen::new(sheet, pattern, places);
    // Rows fill the height.
    let apart_mm = height_mm / rows.max(1) as f64;
    for row in 0..rows.max(1) {
        let y_mm = (row as f64 + 0.5) * apart_mm;
        for place in 0..places {
            pen.go(WavePlace {
                middle_mm: [(place as f64 + 0.5) * half_mm, y_mm],
                along: [1.0, 0.0],
                across: [0.0, 1.0],
                beside: place,
            });
        }
        pen.end_row();
    }
    let black = pen.black();
    (pen.paths, Some(black))
}

/// Returns the spiral of a picture, and the share of the paper that is covered where it is black.
pub(crate) fn spiral(sheet: &ToneSheet, pen_mm: f64, ink: f64) -> (Vec<Vec<Point>>, Option<f64>) {
    let [width_mm, height_mm] = sheet.size_mm();
    let pattern = WavePattern::of(sheet, pen_mm, ink);
    let coverage = &pattern.coverage;
    let [apart_mm, half_mm] = [coverage.apart_mm(), coverage.half_swing_mm()];
    let reach_mm = width_mm.hypot(height_mm) / 2.0;
    let mut pen = WavePen::new(sheet, pattern, DIRECTIONS);
    let turn = std::f64::consts::TAU;
    let mut angle = turn / 2.0;
    loop {
        let radius_mm = apart_mm * angle / turn;
        if radius_mm > reach_mm {
            break;
        }
        let (sin, cos) = angle.sin_cos();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "less than the number of directions"
        )]
        let beside = ((angle % turn) / turn * DIRECTIONS as f64) as usize;
        pen.go(WavePlace {
            middle_mm: [
                width_mm / 2.0 + radius_mm * cos,
                height_mm / 2.0 + radius_mm * sin,
            ],
            along: [-sin, cos],
            across: [cos, sin],
            beside,
        });
        angle += half_mm / radius_mm;
    }
    pen.end_row();
    let black = pen.black();
    (pen.paths, Some(black))
}
