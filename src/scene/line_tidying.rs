//! Tidies a design's lines: drops points that add little, and joins near ends.

use std::ops::RangeInclusive;

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
}

impl LineTidying {
    pub(super) fn of(file: &DesignFile) -> Result<Self, SceneFault> {
        Ok(Self {
            simplify_mm: distance_mm("simplify_mm", file.simplify_mm, 0.0)?,
            join_mm: distance_mm("join_mm", file.join_mm, JOIN_MM)?,
        })
    }

    /// Returns the line without the points that are nearer than the bound to the rest.
    pub(super) fn simplified(&self, points_mm: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
        match self.simplify_mm > 0.0 {
            true => design::simplified(&points_mm, self.simplify_mm),
            false => points_mm,
        }
    }

    /// Returns a note on how many points are left, if lines are simplified.
    pub(super) fn note(&self, points: usize, left: usize) -> Option<String> {
        (self.simplify_mm > 0.0).then(|| {
            format!(
                "simplified within {} mm: {left} of {points} points are left",
                self.simplify_mm
            )
        })
    }
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
