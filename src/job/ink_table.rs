//! The length of line that a motion has drawn at each of its samples, and the rest of a drawing.

use base::plane::{along, distance, pieces};
use plan::{SpanKind, Trajectory};
use scene::{Scene, SheetStroke};

/// Number of samples after the end of its line at which a stroke counts as drawn: the joints have come
/// to rest.
const AFTER_SAMPLES: usize = 10;

/// Length of line drawn, by sample.
#[derive(Debug)]
pub struct InkTable {
    /// For each sample, the length drawn by then; it never decreases.
    mm: Vec<f64>,
    /// The sample at which each stroke is complete.
    done_at: Vec<usize>,
}

/// Progress of a drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InkProgress {
    /// Length of line drawn.
    pub mm: f64,
    /// Number of complete strokes.
    pub strokes: usize,
}

impl InkTable {
    /// Creates the table of a trajectory that draws these strokes, in this order.
    #[must_use]
    pub fn new(scene: &Scene, trajectory: &Trajectory, strokes: &[SheetStroke]) -> Self {
        let mut table = Self {
            mm: Vec::with_capacity(trajectory.samples.len()),
            done_at: Vec::with_capacity(strokes.len()),
        };
        let mut drawn_mm = 0.0;
        for span in &trajectory.spans {
            let stroke = span.item.and_then(|item| strokes.get(item));
            match stroke.filter(|_| span.kind == SpanKind::Draw) {
                Some(stroke) => {
                    let parts = parts(scene, trajectory, span);
                    let length_mm = stroke.length_mm();
                    table
                        .mm
                        .extend(parts.map(|fraction| drawn_mm + fraction * length_mm));
                    drawn_mm += length_mm;
                    table.done_at.push(span.end + AFTER_SAMPLES);
                }
                None => table.mm.resize(span.end.max(table.mm.len()), drawn_mm),
            }
        }
        table
    }

    /// Returns whether nothing is drawn at all.
    #[must_use]
    pub fn is_dry(&self) -> bool {
        self.done_at.is_empty()
    }

    /// Returns the length of all line of the drawing.
    #[must_use]
    pub fn total_mm(&self) -> f64 {
        self.mm.last().copied().unwrap_or(0.0)
    }

    /// Returns the progress once a sample was sent.
    #[must_use]
    pub fn progress_at(&self, sample: usize) -> InkProgress {
        let last = self.mm.len().saturating_sub(1);
        InkProgress {
            mm: self.mm.get(sample.min(last)).copied().unwrap_or(0.0),
            strokes: self.done_at.partition_point(|done| *done <= sample),
        }
    }

    /// Returns the end of the samples at which at most `mm` of line are drawn.
    #[must_use]
    pub fn samples_end(&self, mm: f64) -> usize {
        self.mm.partition_point(|drawn| *drawn <= mm + 1e-9)
    }
}

/// Returns, for each sample of a span that draws, the fraction of its path that the tip has travelled.
fn parts(
    scene: &Scene,
    trajectory: &Trajectory,
    span: &plan::TrajectorySpan,
) -> impl Iterator<Item = f64> {
    let first = span.first.saturating_sub(1);
    let samples = trajectory
        .reached()
        .get(first..span.end)
        .unwrap_or_default();
    let tip_m = scene.pen(span.pen).map(|pen| pen.tip_m).unwrap_or_default();
    let mut previous = None;
    let mut total_m = 0.0;
    let mut along_m: Vec<f64> = samples
        .iter()
        .map(|q| {
            let tip = scene.arm.chain.forward(q) * tip_m;
            total_m += previous.map_or(0.0, |from: nalgebra::Point3<f64>| (tip - from).norm());
            previous = Some(tip);
            total_m
        })
        .collect();
    // The first is the end of the previous span.
    if along_m.len() > span.end - span.first {
        along_m.remove(0);
    }
    along_m
        .into_iter()
        .map(move |m| if total_m > 0.0 { m / total_m } else { 1.0 })
}

/// Returns the rest of `strokes` once `drawn` is drawn: the stroke under way from `overlap_mm` before
/// the point where it was left, and all strokes after it. Omits remainders of 0.01 mm or less.
#[must_use]
pub fn remaining_strokes(
    strokes: &[SheetStroke],
    drawn: InkProgress,
    overlap_mm: f64,
) -> Vec<SheetStroke> {
    let before_mm: f64 = strokes
        .iter()
        .take(drawn.strokes)
        .map(SheetStroke::length_mm)
        .sum();
    let mut rest: Vec<SheetStroke> = strokes.iter().skip(drawn.strokes).cloned().collect();
    if let Some(first) = rest.first_mut() {
        let from_mm = (drawn.mm - before_mm).clamp(0.0, first.length_mm()) - overlap_mm;
        if from_mm > 0.0 {
            first.points_mm = line_from(&first.points_mm, from_mm);
        }
    }
    rest.retain(|stroke| stroke.points_mm.len() >= 2 && stroke.length_mm() > 0.01);
    rest
}

/// Returns the part of `strokes` on the paper once `drawn` is drawn: all complete strokes, and the
/// drawn part of the one under way.
#[must_use]
pub(super) fn inked(strokes: &[SheetStroke], drawn: InkProgress) -> Vec<Vec<[f64; 2]>> {
    let complete = strokes.iter().take(drawn.strokes);
    let before_mm: f64 = complete.clone().map(SheetStroke::length_mm).sum();
    let mut lines: Vec<_> = complete.map(|stroke| stroke.points_mm.clone()).collect();
    if let Some(stroke) = strokes.get(drawn.strokes) {
        let mut reversed = stroke.points_mm.clone();
        reversed.reverse();
        let left_mm = stroke.length_mm() - (drawn.mm - before_mm);
        let mut line = line_from(&reversed, left_mm.max(0.0));
        line.reverse();
        lines.push(line);
    }
    lines.retain(|line| line.len() >= 2);
    lines
}

/// Returns the part of a line that begins `from_mm` along it.
fn line_from(points_mm: &[[f64; 2]], from_mm: f64) -> Vec<[f64; 2]> {
    let mut passed_mm = 0.0;
    for (index, [a, b]) in pieces(points_mm).enumerate() {
        let piece_mm = distance(a, b);
        if passed_mm + piece_mm > from_mm {
            let begin = along(a, b, (from_mm - passed_mm) / piece_mm);
            let rest = points_mm.get(index + 1..).unwrap_or_default();
            return std::iter::once(begin).chain(rest.iter().copied()).collect();
        }
        passed_mm += piece_mm;
    }
    Vec::new()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::indexing_slicing,
    reason = "a failing test may panic; the numbers are exact"
)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(points_mm: &[[f64; 2]]) -> SheetStroke {
        SheetStroke {
            points_mm: points_mm.to_vec(),
            pen: 0,
            source: "test".to_owned(),
            pause: None,
        }
    }

    fn two() -> Vec<SheetStroke> {
        vec![
            line(&[[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]]),
            line(&[[0.0, 5.0], [7.0, 5.0]]),
        ]
    }

    #[test]
    fn what_is_left_begins_the_overlap_before_where_it_was_left() {
        let drawn = InkProgress {
            mm: 14.0,
            strokes: 0,
        };
        let rest = remaining_strokes(&two(), drawn, 3.0);
        assert_eq!(rest.len(), 2);
        assert_eq!(rest[0].points_mm, [[10.0, 1.0], [10.0, 10.0]]);
        let drawn = InkProgress {
            mm: 20.0,
            strokes: 1,
        };
        assert_eq!(remaining_strokes(&two(), drawn, 3.0), two()[1..]);
        let all = InkProgress {
            mm: 27.0,
            strokes: 2,
        };
        assert!(remaining_strokes(&two(), all, 3.0).is_empty());
    }

    #[test]
    fn the_table_follows_a_plan_from_nothing_to_all_of_its_line() {
        let scene = scene::SceneLibrary::new(None)
            .scene("default", None)
            .unwrap();
        let plan = plan::draw(&scene, &scene.rest_rad, &plan::SilentObserver).unwrap();
        let table = InkTable::new(&scene, &plan.trajectory, &plan.strokes);
        let samples = plan.trajectory.samples.len();
        assert_eq!(table.progress_at(0), InkProgress::default());
        let end = table.progress_at(samples - 1);
        assert!((end.mm - plan.report.pen_down_mm).abs() < 1e-6);
        assert_eq!(table.samples_end(end.mm), samples);
        let mm = (0..samples).map(|sample| table.progress_at(sample).mm);
        let mm: Vec<f64> = mm.collect();
        assert!(
            mm.windows(2)
                .all(|pair| pair[0] <= pair[1] && pair[1] - pair[0] < 0.6)
        );
    }

    #[test]
    fn what_is_on_the_paper_ends_where_the_pen_is() {
        let lines_at = |strokes, mm| inked(&two(), InkProgress { mm, strokes });
        let length_mm = |lines: &[Vec<[f64; 2]>]| -> f64 {
            lines.iter().map(|line| base::plane::length(line)).sum()
        };
        let total: f64 = two().iter().map(SheetStroke::length_mm).sum();
        let first = two()[0].length_mm();
        assert!(lines_at(0, 0.0).is_empty());
        for (strokes, drawn) in [
            (0, 3.0),
            (0, first - 1.0),
            (1, first),
            (1, first + 2.5),
            (2, total),
        ] {
            let lines = lines_at(strokes, drawn);
            assert!(
                (length_mm(&lines) - drawn).abs() < 1e-9,
                "{drawn}: {lines:?}"
            );
            assert_eq!(lines[0][0], two()[0].points_mm[0]);
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_more_than_the_overlap_is_drawn_twice(
            mm in 0.0..27.0_f64, overlap_mm in 0.0..5.0_f64,
        ) {
            let strokes = if mm >= 20.0 { 1 } else { 0 };
            let rest = remaining_strokes(&two(), InkProgress { mm, strokes }, overlap_mm);
            let rest_mm: f64 = rest.iter().map(SheetStroke::length_mm).sum();
            prop_assert!(rest_mm >= 27.0 - mm - 0.02);
            prop_assert!(rest_mm <= 27.0 - mm + overlap_mm + 1e-9);
        }
    }
}
