//! Pauses that come again after a length or a time of drawing, for pens that dry.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::drawing_pause::{DrawingPause, DrawnPauses};
use super::file::LimitsFile;
use super::scene_fault::SceneFault;
use super::{DesignReplacement, SheetStroke};
use base::plane::{self, Point};
use base::units::{Finite, short};
use design::DesignStroke;

/// Shortest length and time between two pauses.
const MM_MIN: f64 = 20.0;
const S_MIN: f64 = 5.0;

/// Time that a lift between two strokes takes, about.
const LIFT_S: f64 = 0.6;

/// How much is drawn between two pauses.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseEvery {
    /// This length of line.
    Millimetres(Finite),
    /// About this time of drawing, lifts included.
    Seconds(Finite),
}

impl PauseEvery {
    fn text(self) -> String {
        match self {
            Self::Millimetres(mm) => format!("the next {} mm", short(mm.get())),
            Self::Seconds(s) => format!("about the next {} s", short(s.get())),
        }
    }
}

/// A piece of a stroke, and whether the drawing pauses before it.
struct StrokePiece {
    points_mm: Vec<Point>,
    pauses: bool,
}

/// Counts what is drawn, and cuts strokes where a pause is due.
pub(super) struct PauseCounter {
    every: Option<PauseEvery>,
    /// What a millimetre and a lift count, in the unit of the limit.
    per_mm: f64,
    per_lift: f64,
    limit: f64,
    since: f64,
}

impl PauseCounter {
    /// Counts what a replacement asks for, if it does.
    ///
    /// # Errors
    /// Too short a length or time.
    pub(super) fn of(
        replacement: Option<&DesignReplacement>,
        limits: &LimitsFile,
    ) -> Result<Self, SceneFault> {
        let every = replacement.and_then(|drawing| drawing.pause_every);
        Self::new(every, limits.draw_mm_s.get())
    }

    fn new(every: Option<PauseEvery>, draw_mm_s: f64) -> Result<Self, SceneFault> {
        let (limit, least, unit) = match every {
            None => (f64::INFINITY, 0.0, ""),
            Some(PauseEvery::Millimetres(mm)) => (mm.get(), MM_MIN, "mm"),
            Some(PauseEvery::Seconds(s)) => (s.get(), S_MIN, "s"),
        };
        if limit < least {
            return Err(SceneFault::PauseEvery { limit, least, unit });
        }
        let (per_mm, per_lift) = match every {
            Some(PauseEvery::Seconds(_)) => (draw_mm_s.recip(), LIFT_S),
            _ => (1.0, 0.0),
        };
        Ok(Self {
            every,
            per_mm,
            per_lift,
            limit,
            since: 0.0,
        })
    }

    /// Begins anew where the design itself pauses.
    pub(super) const fn begin_at(&mut self, stroke: &DesignStroke) {
        if stroke.pause_before {
            self.since = 0.0;
        }
    }

    /// Returns a stroke on the sheet, cut where a pause is due; adds the pauses.
    pub(super) fn placed(
        &mut self,
        stroke: &DesignStroke,
        pen: usize,
        points_mm: Vec<Point>,
        pause: &mut Option<Arc<DrawingPause>>,
        pauses: &mut DrawnPauses,
    ) -> Vec<SheetStroke> {
        let text = self.every.map_or_else(String::new, PauseEvery::text);
        let pieces = self.cut(points_mm).into_iter();
        pieces
            .map(|piece| {
                if piece.pauses {
                    *pause = Some(DrawingPause::after(pause.as_deref(), text.clone()));
                    pauses.add(pause.as_ref());
                }
                SheetStroke {
                    points_mm: piece.points_mm,
                    pen,
                    source: stroke.source.clone(),
                    pause: pause.clone(),
                }
            })
            .collect()
    }

    fn cut(&mut self, points_mm: Vec<Point>) -> Vec<StrokePiece> {
        self.since += self.per_lift;
        let mut pauses = self.every.is_some() && self.since >= self.limit;
        if pauses {
            self.since = self.per_lift;
        }
        let drawn = plane::length(&points_mm) * self.per_mm;
        if self.since + drawn <= self.limit {
            self.since += drawn;
            return vec![StrokePiece { points_mm, pauses }];
        }
        let mut pieces = Vec::new();
        let mut piece: Vec<Point> = Vec::new();
        for point in points_mm {
            while let Some(&last) = piece.last() {
                let step_mm = plane::distance(last, point);
                let room_mm = ((self.limit - self.since) / self.per_mm).max(0.0);
                if step_mm <= room_mm {
                    self.since += step_mm * self.per_mm;
                    break;
                }
                let share = room_mm / step_mm;
                let [[ax, ay], [bx, by]] = [last, point];
                let cut_at = [ax + share * (bx - ax), ay + share * (by - ay)];
                piece.push(cut_at);
                let points_mm = std::mem::replace(&mut piece, vec![cut_at]);
                pieces.push(StrokePiece { points_mm, pauses });
                pauses = true;
                self.since = self.per_lift;
            }
            piece.push(point);
        }
        let points_mm = piece;
        pieces.push(StrokePiece { points_mm, pauses });
        pieces.retain(|piece| piece.points_mm.len() > 1 && plane::length(&piece.points_mm) > 0.0);
        pieces
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn pieces(every: PauseEvery, strokes: &[Vec<Point>]) -> Vec<(f64, bool)> {
        let mut counter = PauseCounter::new(Some(every), 40.0).unwrap();
        let pieces = strokes
            .iter()
            .flat_map(|stroke| counter.cut(stroke.clone()));
        pieces
            .map(|piece| (plane::length(&piece.points_mm), piece.pauses))
            .collect()
    }

    #[test]
    fn a_long_stroke_is_cut_where_a_pause_is_due_and_no_line_is_lost() {
        let every = PauseEvery::Millimetres(Finite::literal(50.0));
        let zigzag: Vec<Point> = (0..14).map(|i| [f64::from(i % 2) * 10.0, 0.0]).collect();
        let found = pieces(every, &[zigzag.clone(), zigzag]);
        let total: f64 = found.iter().map(|(mm, _)| mm).sum();
        assert!((total - 260.0).abs() < 1e-6, "{found:?}");
        let pauses = found.iter().filter(|(_, pauses)| *pauses).count();
        assert_eq!(pauses, 5, "{found:?}");
        assert!(found.iter().all(|(mm, _)| *mm <= 50.0 + 1e-6), "{found:?}");
    }

    #[test]
    fn a_time_counts_lines_and_lifts() {
        let every = PauseEvery::Seconds(Finite::literal(5.0));
        let dots = vec![vec![[0.0, 0.0], [0.4, 0.0]]; 20];
        let found = pieces(every, &dots);
        assert_eq!(found.len(), 20);
        assert_eq!(found.iter().filter(|(_, pauses)| *pauses).count(), 2);
        let none = PauseCounter::new(Some(PauseEvery::Seconds(Finite::literal(1.0))), 40.0);
        assert!(none.is_err());
    }
}
