//! Compares ink with a design: distances of the ink from the design, and of the design from the ink.

use base::plane::{self, Point, distance};
use base::segment_index::SegmentIndex;

/// Lines are looked at each so far.
pub const STEP_MM: f64 = 0.1;

/// Design farther than this from any ink counts as missing.
pub const MISSING_MM: f64 = 1.0;

/// Largest number of samples on a side; longer lines are sampled in larger steps.
const SAMPLES_MAX: f64 = 400_000.0;

/// Distances between two drawings of lines, in both directions.
///
/// With nothing on both sides all is 0; with nothing on one side the distances are infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InkDeviation {
    /// 95 of 100 samples, of ink and design together, lie nearer than this.
    pub p95_mm: f64,
    /// The farthest sample.
    pub max_mm: f64,
    /// The mean over all samples.
    pub mean_mm: f64,
    /// Length of design with no ink within [`MISSING_MM`].
    pub missing_mm: f64,
    /// Length of all ink.
    pub ink_mm: f64,
    /// Length of the whole design.
    pub design_mm: f64,
}

impl InkDeviation {
    /// Describes the largest distance of the ink, or the absence of anything to compare with.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.max_mm.is_finite() {
            true => format!(
                "the ink is at most {:.2} mm (95 %: {:.2} mm) from the strokes",
                self.max_mm, self.p95_mm
            ),
            false => "there is no ink to compare with the strokes".to_owned(),
        }
    }
}

/// Compares what a pen drew with what it should have drawn: for samples along the ink the
/// distance to the nearest line of the design, for samples along the design the distance to the
/// nearest ink, so that ink too few counts like ink too many. Polylines in one frame, in mm; those
/// that are not finite are left out.
#[must_use]
pub fn deviation_mm(design: &[Vec<Point>], ink: &[Vec<Point>]) -> InkDeviation {
    let (design, ink) = (SegmentIndex::new(design), SegmentIndex::new(ink));
    let mut from_ink = distances(&ink, &design);
    let from_design = distances(&design, &ink);
    let missing = from_design.iter().filter(|mm| **mm > MISSING_MM).count();
    let share = fraction(missing, from_design.len());
    from_ink.extend(from_design);
    from_ink.sort_by(f64::total_cmp);
    let count = from_ink.len();
    let rank = (count * 95).div_ceil(100).saturating_sub(1);
    let sum: f64 = from_ink.iter().sum();
    InkDeviation {
        p95_mm: from_ink.get(rank).copied().unwrap_or(0.0),
        max_mm: from_ink.last().copied().unwrap_or(0.0),
        mean_mm: if count == 0 { 0.0 } else { sum / as_f64(count) },
        missing_mm: share * design.length_mm(),
        ink_mm: ink.length_mm(),
        design_mm: design.length_mm(),
    }
}

fn fraction(part: usize, whole: usize) -> f64 {
    as_f64(part) / as_f64(whole.max(1))
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// For each sample along `from`, how far `to` is.
fn distances(from: &SegmentIndex, to: &SegmentIndex) -> Vec<f64> {
    let step_mm = STEP_MM.max(from.length_mm() / SAMPLES_MAX);
    let mut all = Vec::new();
    for [a, b] in from.segments() {
        let steps = (distance(a, b) / step_mm).ceil().max(1.0);
        let mut step = 0.0;
        // Both ends: where pieces join a sample counts twice, which changes nothing to speak of.
        while step <= steps {
            all.push(to.distance_mm(plane::along(a, b, step / steps)));
            step += 1.0;
        }
    }
    all
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_same_lines_do_not_deviate() {
        let lines = [vec![[0.0, 0.0], [30.0, 0.0], [30.0, 20.0]]];
        let same = deviation_mm(&lines, &lines);
        assert!(same.max_mm < 1e-9 && same.missing_mm == 0.0);
        assert_eq!((same.ink_mm, same.design_mm), (50.0, 50.0));
    }

    #[test]
    fn a_shifted_line_deviates_by_its_shift() {
        let design = [vec![[0.0, 0.0], [100.0, 0.0]]];
        let ink = [vec![[0.0, 0.3], [100.0, 0.3]]];
        let found = deviation_mm(&design, &ink);
        assert!((found.p95_mm - 0.3).abs() < 1e-9 && (found.max_mm - 0.3).abs() < 1e-9);
        assert!((found.mean_mm - 0.3).abs() < 1e-9);
    }

    #[test]
    fn ink_too_few_and_ink_too_many_both_count() {
        let whole = [vec![[0.0, 0.0], [100.0, 0.0]]];
        let half = [vec![[0.0, 0.0], [50.0, 0.0]]];
        let few = deviation_mm(&whole, &half);
        assert!((few.max_mm - 50.0).abs() < 1e-9);
        assert!((few.missing_mm - 49.0).abs() < 0.2, "{}", few.missing_mm);
        let many = deviation_mm(&half, &whole);
        assert!((many.max_mm - 50.0).abs() < 1e-9 && many.missing_mm == 0.0);
    }

    #[test]
    fn nothing_on_one_side_is_infinitely_far() {
        let design = [vec![[0.0, 0.0], [10.0, 0.0]]];
        let none = deviation_mm(&design, &[]);
        assert!(none.max_mm.is_infinite() && none.missing_mm == 10.0);
        assert_eq!(deviation_mm(&[], &[]), InkDeviation::default());
    }

    fn path() -> impl Strategy<Value = Vec<Point>> {
        prop::collection::vec([-60.0..60.0_f64, -60.0..60.0_f64], 2..6)
    }

    proptest! {
        #[test]
        fn the_index_finds_what_a_search_of_all_finds(a in path(), b in path()) {
            let lines = SegmentIndex::new(&[a]);
            for sample in b {
                let all = lines.segments().map(|segment| plane::distance_to_piece(sample, segment));
                let nearest = all.fold(f64::INFINITY, f64::min);
                prop_assert!((lines.distance_mm(sample) - nearest).abs() < 1e-9);
            }
        }
    }
}
