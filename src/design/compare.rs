//! Compares ink with a design, by the distances of the ink from the design and of the design from
//! the ink.

use base::plane::{self, Point, distance};
use base::segment_index::SegmentIndex;

/// Distance between two samples of a line.
pub const STEP_MM: f64 = 0.1;

/// Design farther than this from any ink counts as missing.
pub const MISSING_MM: f64 = 1.0;

/// Share of a design that may be without ink in a drawing that succeeded.
const MISSING_SHARE_MAX: f64 = 0.01;

/// Length of design that may always be without ink, however short the design is.
const MISSING_LEAST_MM: f64 = 1.0;

/// Largest number of samples on a side; longer lines are sampled in larger steps.
const SAMPLES_MAX: f64 = 400_000.0;

/// Distances between two drawings of lines, in both directions.
///
/// All values are 0 if both drawings are empty; distances are infinite if one is, but those of ink
/// that there is not are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InkDeviation {
    /// 95th percentile of all samples, of ink and design together.
    pub p95_mm: f64,
    /// Distance of the farthest sample.
    pub max_mm: f64,
    /// 95th percentile of the samples of the ink alone.
    pub off_p95_mm: f64,
    /// Distance of the farthest ink from the design.
    pub off_max_mm: f64,
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
    /// Describes the largest distance of the ink and what has none, or the absence of anything to
    /// compare with.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.max_mm.is_finite() {
            true => format!(
                "the ink is at most {:.2} mm (95 %: {:.2} mm) from the strokes{}",
                self.off_max_mm,
                self.off_p95_mm,
                self.missing_text("the strokes")
            ),
            false => "there is no ink to compare with the strokes".to_owned(),
        }
    }

    /// Returns the length of design that may be without ink in a drawing that succeeded.
    #[must_use]
    pub fn missing_allowed_mm(&self) -> f64 {
        (self.design_mm * MISSING_SHARE_MAX).max(MISSING_LEAST_MM)
    }

    /// Returns whether more of the design is without ink than is allowed, or all of it.
    #[must_use]
    pub fn is_ink_missing(&self) -> bool {
        self.missing_mm > self.missing_allowed_mm() || self.is_without_ink()
    }

    /// Returns whether there is a design and no ink at all.
    #[must_use]
    pub fn is_without_ink(&self) -> bool {
        !self.max_mm.is_finite() && self.ink_mm == 0.0
    }

    /// Describes how much of `what` has no ink; empty if all has.
    #[must_use]
    pub fn missing_text(&self, what: &str) -> String {
        // Less would be written as 0.
        if self.missing_mm < 0.05 {
            return String::new();
        }
        format!(
            ", and {:.1} mm of {what} has no ink within {MISSING_MM:.0} mm",
            self.missing_mm
        )
    }
}

/// Compares what a pen drew with what it should have drawn. Measures the distance from samples
/// along the ink to the nearest line of the design, and from samples along the design to the
/// nearest ink, so that missing ink counts like excess ink. Both are polylines in one frame, in mm;
/// those that are not finite are ignored.
#[must_use]
pub fn deviation_mm(design: &[Vec<Point>], ink: &[Vec<Point>]) -> InkDeviation {
    let (design, ink) = (SegmentIndex::new(design), SegmentIndex::new(ink));
    let mut all_mm = distances(&ink, &design);
    let from_design = distances(&design, &ink);
    let missing_count = from_design.iter().filter(|mm| **mm > MISSING_MM).count();
    let missing_fraction = fraction(missing_count, from_design.len());
    let (off_p95_mm, off_max_mm) = p95_and_max(&mut all_mm);
    all_mm.extend(from_design);
    let (p95_mm, max_mm) = p95_and_max(&mut all_mm);
    let count = all_mm.len();
    let sum: f64 = all_mm.iter().sum();
    InkDeviation {
        p95_mm,
        max_mm,
        off_p95_mm,
        off_max_mm,
        mean_mm: if count == 0 { 0.0 } else { sum / as_f64(count) },
        missing_mm: missing_fraction * design.length_mm(),
        ink_mm: ink.length_mm(),
        design_mm: design.length_mm(),
    }
}

/// Sorts samples, and returns their 95th percentile and the largest; 0 for none.
fn p95_and_max(all_mm: &mut [f64]) -> (f64, f64) {
    all_mm.sort_by(f64::total_cmp);
    let rank = (all_mm.len() * 95).div_ceil(100).saturating_sub(1);
    let at = |rank: usize| all_mm.get(rank).copied().unwrap_or(0.0);
    (at(rank), at(all_mm.len().saturating_sub(1)))
}

fn fraction(part: usize, total: usize) -> f64 {
    as_f64(part) / as_f64(total.max(1))
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// Returns the distance to `to` of each sample along `from`.
fn distances(from: &SegmentIndex, to: &SegmentIndex) -> Vec<f64> {
    let step_mm = STEP_MM.max(from.length_mm() / SAMPLES_MAX);
    let mut all = Vec::new();
    for [a, b] in from.segments() {
        let steps = (distance(a, b) / step_mm).ceil().max(1.0);
        let mut step = 0.0;
        // Both ends are included: a joint between segments counts twice, which hardly matters.
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
    fn missing_and_excess_ink_both_count() {
        let full = [vec![[0.0, 0.0], [100.0, 0.0]]];
        let half = [vec![[0.0, 0.0], [50.0, 0.0]]];
        let less = deviation_mm(&full, &half);
        assert!((less.max_mm - 50.0).abs() < 1e-9);
        assert!((less.missing_mm - 49.0).abs() < 0.2, "{}", less.missing_mm);
        assert!(less.off_max_mm < 1e-9 && less.off_p95_mm < 1e-9);
        assert_eq!(
            less.missing_text("the design"),
            ", and 49.0 mm of the design has no ink within 1 mm"
        );
        let more = deviation_mm(&half, &full);
        assert!((more.max_mm - 50.0).abs() < 1e-9 && more.missing_mm == 0.0);
        assert!((more.off_max_mm - 50.0).abs() < 1e-9 && more.off_p95_mm > 44.0);
        assert_eq!(more.missing_text("the design"), "");
    }

    #[test]
    fn nothing_on_one_side_is_infinitely_far() {
        let design = [vec![[0.0, 0.0], [10.0, 0.0]]];
        let none = deviation_mm(&design, &[]);
        assert!(none.max_mm.is_infinite() && none.missing_mm == 10.0);
        assert_eq!(deviation_mm(&[], &[]), InkDeviation::default());
    }

    #[test]
    fn ink_is_missing_beyond_a_hundredth_and_a_millimetre() {
        let line = |length_mm: f64| vec![vec![[0.0, 0.0], [length_mm, 0.0]]];
        for (design_mm, ink_mm, is_missing) in [
            (300.0, 300.0, false),
            // A millimetre beyond the end of the ink counts as inked.
            (300.0, 296.5, false),
            (300.0, 295.5, true),
            (20.0, 18.2, false),
            (20.0, 17.5, true),
        ] {
            let found = deviation_mm(&line(design_mm), &line(ink_mm));
            assert_eq!(found.is_ink_missing(), is_missing, "{design_mm} {ink_mm}");
            assert!(!found.is_without_ink());
        }
        let dot = deviation_mm(&line(0.5), &[]);
        assert!(dot.is_ink_missing() && dot.is_without_ink());
        assert!(!deviation_mm(&[], &line(9.0)).is_without_ink());
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
