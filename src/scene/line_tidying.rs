//! Tidies a design's lines: drops points that add little, and joins near ends.

use std::ops::RangeInclusive;

use super::DesignReplacement;
use super::file::DesignFile;
use super::scene_fault::SceneFault;
use base::units::Finite;

/// Distances on the sheet within which lines may be tidied.
pub const TIDYING_MM: RangeInclusive<f64> = 0.0..=2.0;
/// Default distance within which ends are joined.
const JOIN_MM: f64 = 0.1;

/// Distances on the sheet within which a design's lines are tidied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LineTidying {
    simplify_mm: f64,
    pub(super) join_mm: f64,
    has_random_starts: bool,
}

impl LineTidying {
    pub(super) fn of(
        file: &DesignFile,
        replacement: Option<&DesignReplacement>,
    ) -> Result<Self, SceneFault> {
        Ok(Self {
            simplify_mm: distance_mm("simplify_mm", file.simplify_mm, 0.0)?,
            join_mm: distance_mm("join_mm", file.join_mm, JOIN_MM)?,
            has_random_starts: replacement.is_some_and(|drawing| drawing.random_starts),
        })
    }

    /// Returns the line without the points that are nearer than the bound to the rest.
    pub(super) fn simplified(&self, points_mm: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
        match self.simplify_mm > 0.0 {
            true => design::simplified(&points_mm, self.simplify_mm),
            false => points_mm,
        }
    }

    /// Returns a closed line from another of its points on, if that is asked for. Which one depends on its number alone, so that
    /// the same drawing is the same plan.
    pub(super) fn begun(&self, mut points_mm: Vec<[f64; 2]>, number: usize) -> Vec<[f64; 2]> {
        let is_closed = points_mm.len() > 2 && points_mm.first() == points_mm.last();
        if self.has_random_starts && is_closed {
            points_mm.pop();
            let start = scattered(number) % points_mm.len();
            points_mm.rotate_left(start);
            points_mm.extend(points_mm.first().copied());
        }
        points_mm
    }

    /// Returns a note on how many points are left, if lines are simplified.
    pub(super) fn note(&self, points: usize, left: usize) -> Option<String> {
        (self.simplify_mm > 0.0).then(|| {
            format!(
                "lines simplified within {} mm: {left} of {points} points are left",
                self.simplify_mm
            )
        })
    }
}

/// Returns a number that follows from another one without a pattern, by the mixer of SplitMix64.
fn scattered(number: usize) -> usize {
    let mix = |value: u64, shift: u32, by: u64| (value ^ (value >> shift)).wrapping_mul(by);
    let value = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let value = mix(
        mix(value, 30, 0xBF58_476D_1CE4_E5B9),
        27,
        0x94D0_49BB_1331_11EB,
    );
    usize::try_from((value ^ (value >> 31)) >> 32).unwrap_or_default()
}

fn distance_mm(key: &str, stated_mm: Option<Finite>, default: f64) -> Result<f64, SceneFault> {
    let mm = stated_mm.map_or(default, Finite::get);
    match TIDYING_MM.contains(&mm) {
        true => Ok(mm),
        false => Err(SceneFault::Tidying {
            key: key.to_owned(),
            mm,
        }),
    }
}

#[cfg(test)]
#[allow(
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "a failing test may panic; a point is moved, not computed"
)]
mod tests {
    use super::*;

    #[test]
    fn closed_lines_begin_at_scattered_points_and_stay_the_same_lines() {
        let tidying = LineTidying {
            simplify_mm: 0.0,
            join_mm: 0.0,
            has_random_starts: true,
        };
        let ring: Vec<[f64; 2]> = (0..=12).map(|step| [f64::from(step % 12), 0.0]).collect();
        let starts: Vec<_> = (0..200)
            .map(|number| {
                let begun = tidying.begun(ring.clone(), number);
                assert_eq!(begun, tidying.begun(ring.clone(), number));
                assert_eq!((begun.len(), begun[0]), (13, begun[12]));
                for pair in begun.windows(2) {
                    let step = (pair[1][0] - pair[0][0]).rem_euclid(12.0);
                    assert!((step - 1.0).abs() < 1e-9, "{begun:?}");
                }
                begun[0]
            })
            .collect();
        for point in &ring[..12] {
            let here = starts.iter().filter(|start| *start == point).count();
            assert!((5..40).contains(&here), "{here} of 200 begin at {point:?}");
        }
        let open = vec![[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]];
        assert_eq!(tidying.begun(open.clone(), 7), open);
        let as_drawn = LineTidying {
            has_random_starts: false,
            ..tidying
        };
        assert_eq!(as_drawn.begun(ring.clone(), 7), ring);
    }
}
