//! A small picture of what a job has drawn, as lines.

use job::PastJob;
use serde::Serialize;

use scene::SheetStroke;
use tools::first_part;

/// Most points of a thumbnail; more would not be visible.
const POINTS_MAX: usize = 240;

/// What a job planned to draw, and how much of it is drawn.
#[derive(Debug, Serialize)]
pub(super) struct JobThumbnail {
    /// Lowest and highest point.
    box_mm: [f64; 4],
    /// Planned lines, each as x, y, x, y.
    plan: Vec<Vec<f64>>,
    /// Drawn lines.
    ink: Vec<Vec<f64>>,
}

impl JobThumbnail {
    /// Returns the thumbnail of a job; `None` if it planned no line.
    pub(super) fn of(past: &PastJob) -> Option<Self> {
        let points = || past.strokes.iter().flat_map(|stroke| &stroke.points_mm);
        points().next()?;
        let around = |[left, low, right, high]: [f64; 4], [x, y]: &[f64; 2]| {
            [left.min(*x), low.min(*y), right.max(*x), high.max(*y)]
        };
        let none = [
            f64::INFINITY,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NEG_INFINITY,
        ];
        let every = points().count().div_ceil(POINTS_MAX).max(1);
        let drawn = first_part(&past.strokes, past.drawn.mm);
        Some(Self {
            box_mm: points().fold(none, around).map(tenth),
            plan: thinned(&past.strokes, every),
            ink: thinned(&drawn, every),
        })
    }
}

fn thinned(strokes: &[SheetStroke], every: usize) -> Vec<Vec<f64>> {
    let line = |stroke: &SheetStroke| {
        let last = stroke.points_mm.len().saturating_sub(1);
        let points = stroke.points_mm.iter().enumerate();
        let kept = points.filter(|(at, _)| at.is_multiple_of(every) || *at == last);
        kept.flat_map(|(_, point)| point.map(tenth)).collect()
    };
    // Of a drawing with more strokes than points, only the first are shown.
    strokes.iter().take(POINTS_MAX).map(line).collect()
}

fn tenth(mm: f64) -> f64 {
    (mm * 10.0).round() / 10.0
}
