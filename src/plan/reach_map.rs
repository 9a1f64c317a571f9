//! Maps possible places for a sheet: the tilt that a pen needs at each point of the sheet's plane,
//! or of the shape that it is rolled around, and the best place for the sheet.

use nalgebra::Vector3;
use serde::Serialize;

use super::PlanObserver;
use super::cartesian_path::{ToolPose, to_count};
use super::error::PlanError;
use super::suggest_placement;
use super::tool_ik::ToolIk;
use base::units::JointVector;
use kin::IkSolution;
use scene::{Scene, Surface};

/// A map of the sheet's plane, or of the shape that it lies on as far as that faces the same way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReachMap {
    /// Distance from one point of the map to the next.
    pub step_mm: f64,
    /// The map's lower left point, in the sheet's coordinates.
    pub low_mm: [f64; 2],
    /// Number of points side by side, and one above the other.
    pub size: [usize; 2],
    /// The points, row by row from the lowest.
    pub spots: Vec<ReachSpot>,
    /// Fraction of the sheet, where it lies, that can be drawn on with at most some lean: pairs of
    /// degrees and fractions, 0 to 1, the pen's own cone last.
    pub shares: Vec<(f64, f64)>,
    /// A better place for the sheet, if there is one.
    pub suggestion: Option<PlacementSuggestion>,
}

/// A point of the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReachSpot {
    /// Tilt of the pen; absent if the tip cannot get there, pressed or lifted.
    pub tilt_deg: Option<f64>,
    /// Distance of the joints from their limits.
    pub margin_deg: f64,
}

/// A better place for the sheet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacementSuggestion {
    /// By how much to move it along its own axes.
    pub move_mm: [f64; 2],
    /// The sheet's origin at that place, as in a scene file.
    pub origin_m: [f64; 3],
    /// Fraction of the sheet that can be drawn on within the pen's cone there.
    pub share: f64,
    /// Largest lean of the pen there.
    pub tilt_max_deg: f64,
    /// The least distance to a joint's limit there.
    pub margin_least_deg: f64,
}

/// Margin of the map on every side of the sheet.
pub(super) const AROUND_MM: f64 = 200.0;
/// Most points of the map, for any size of the sheet.
const SPOTS_MAX: f64 = 6000.0;
const STEP_MM_MIN: f64 = 10.0;
/// Number of other seeds, where no neighbour leads to a point.
const RESTARTS: usize = 6;
const TILTS_DEG: [f64; 4] = [0.5, 5.0, 10.0, 30.0];
const SLACK_DEG: f64 = 1e-6;

/// Maps where a pen can reach around a sheet, on the shape that it lies on.
///
/// # Errors
/// Cancelled, or a pen that the scene lacks.
pub fn reach(
    scene: &Scene,
    pen: usize,
    observer: &dyn PlanObserver,
) -> Result<ReachMap, PlanError> {
    let Some(ik) = scene.pens.get(pen).map(|pen| ToolIk::new(scene, pen)) else {
        let why = format!("needs a pen {pen}; choose a scene that has it");
        return Err(PlanError::unfit(None, "the map", why));
    };
    let mut map = empty_map(scene);
    map.inspect_all(scene, &ik, observer)?;
    let cone_deg = ik.cone_rad.to_degrees();
    let here = map.coverage(scene, [0, 0]);
    let tilts = TILTS_DEG.into_iter().filter(|tilt| *tilt < cone_deg);
    map.shares = tilts
        .chain([cone_deg])
        .map(|tilt| (tilt, here.share(tilt + SLACK_DEG)))
        .collect();
    map.suggestion = if scene.surface.is_flat() {
        map.suggest(scene, cone_deg)
    } else {
        suggest_placement::suggest(scene, &ik)
    };
    Ok(map)
}

fn empty_map(scene: &Scene) -> ReachMap {
    let [width, height] = scene.surface.size_mm().map(|side| side + 2.0 * AROUND_MM);
    let step_mm = (width * height / SPOTS_MAX).sqrt().max(STEP_MM_MIN).ceil();
    let steps = (AROUND_MM / step_mm).floor();
    let size = [width, height].map(|side| to_count(side / step_mm) + 1);
    ReachMap {
        step_mm,
        low_mm: [-steps * step_mm; 2],
        spots: vec![ReachSpot::default(); size.iter().product()],
        size,
        shares: Vec::new(),
        suggestion: None,
    }
}

/// Returns the worse lean and margin at a point of pressed and lifted, with the sheet moved by
/// `by_m`.
pub(super) fn inspect_point(
    scene: &Scene,
    ik: &ToolIk<'_>,
    at_mm: [f64; 2],
    by_m: &Vector3<f64>,
    seeds: [Option<JointVector>; 2],
) -> Option<(ReachSpot, JointVector)> {
    let over = |height_mm: f64| {
        let pose = ToolPose::over(&scene.surface, at_mm, height_mm);
        ToolPose {
            point_m: pose.point_m + by_m,
            ..pose
        }
    };
    let (pressed, lifted) = (over(-scene.heights.press_mm), over(scene.heights.lift_mm));
    let restart_seeds = ik.arm.chain.restart_seeds(RESTARTS);
    let mut best: Option<(f64, ReachSpot, JointVector)> = None;
    let seeds = seeds.into_iter().flatten().chain([scene.ready_rad]);
    for seed in seeds.chain(restart_seeds) {
        let down = ik.solve(&pressed, &seed);
        let both = down.and_then(|down| Ok((down, ik.solve(&lifted, &down.q_rad)?)));
        let Ok((down, up)) = both else { continue };
        let (tilt_deg, margin_deg) = tilt_margin_deg(ik, &down, &up);
        let spot = ReachSpot {
            tilt_deg: Some(tilt_deg),
            margin_deg,
        };
        let cost = tilt_deg - margin_deg.min(MARGIN_WORTH_DEG) * 0.1;
        if best.as_ref().is_none_or(|(lowest, ..)| cost < *lowest) {
            best = Some((cost, spot, down.q_rad));
        }
        if tilt_deg < 0.1 {
            break;
        }
    }
    best.map(|(_, spot, q)| (spot, q))
}

/// Returns the larger lean and the smaller margin of two solutions.
fn tilt_margin_deg(ik: &ToolIk<'_>, down: &IkSolution, up: &IkSolution) -> (f64, f64) {
    let margin = ik.margin_rad(&down.q_rad).min(ik.margin_rad(&up.q_rad));
    let tilt = down.off_rad.max(up.off_rad);
    (tilt.to_degrees(), margin.to_degrees())
}

/// Cost of a whole sheet out of reach, where a degree of tilt costs 1.
pub(super) const MISSED_COST: f64 = 1000.0;

/// Margin of the joints beyond which more has no value.
pub(super) const MARGIN_WORTH_DEG: f64 = 20.0;

/// The spots that a sheet covers at one place.
pub(super) struct SheetCoverage {
    pub(super) spots: Vec<ReachSpot>,
}

impl SheetCoverage {
    /// Returns a coverage of this many unreachable spots.
    pub(super) fn unreachable(spots: usize) -> Self {
        Self {
            spots: vec![ReachSpot::default(); spots],
        }
    }

    pub(super) fn share(&self, tilt_deg: f64) -> f64 {
        let within = |spot: &&ReachSpot| spot.tilt_deg.is_some_and(|tilt| tilt <= tilt_deg);
        self.spots.iter().filter(within).count() as f64 / self.spots.len().max(1) as f64
    }

    pub(super) fn tilt_max_deg(&self) -> f64 {
        let tilts = self.spots.iter().filter_map(|spot| spot.tilt_deg);
        tilts.fold(0.0, f64::max)
    }

    pub(super) fn margin_least_deg(&self) -> f64 {
        let margins = self.spots.iter().map(|spot| spot.margin_deg);
        margins.fold(f64::INFINITY, f64::min)
    }

    /// Suggests the place at which a sheet covers these spots.
    pub(super) fn suggestion(
        &self,
        move_mm: [f64; 2],
        origin_m: [f64; 3],
        cone_deg: f64,
    ) -> PlacementSuggestion {
        PlacementSuggestion {
            move_mm,
            origin_m,
            share: self.share(cone_deg),
            tilt_max_deg: self.tilt_max_deg(),
            margin_least_deg: self.margin_least_deg(),
        }
    }

    /// Returns the cost of the place; smaller is better.
    pub(super) fn cost(&self, cone_deg: f64, moved_mm: f64) -> f64 {
        let missed = 1.0 - self.share(cone_deg);
        missed * MISSED_COST + self.tilt_max_deg() - self.margin_least_deg().min(MARGIN_WORTH_DEG)
            + moved_mm * 0.01
    }
}

/// Returns whether the shape, continued to this point, faces as the sheet's centre does, within a
/// quarter turn, and has not wrapped around onto itself.
fn faces_like_centre(surface: &Surface, at_mm: [f64; 2]) -> bool {
    let centre = surface.at(surface.size_mm().map(|side| side / 2.0));
    let here = surface.at(at_mm);
    let projected_mm = surface.project(&here.point_m).at_mm;
    let is_same = |(a, b): (f64, &f64)| (a - b).abs() < SAME_MM;
    here.normal.dot(&centre.normal) > -SLACK_DEG
        && projected_mm.into_iter().zip(&at_mm).all(is_same)
}

/// Tolerance for projecting a continued place back onto the shape, whose tip follows a smooth one near it.
const SAME_MM: f64 = 1.0;

impl ReachMap {
    /// Inspects all spots row by row, each starting from its neighbours' joints.
    #[expect(clippy::indexing_slicing, reason = "every index is a row and a column")]
    fn inspect_all(
        &mut self,
        scene: &Scene,
        ik: &ToolIk<'_>,
        observer: &dyn PlanObserver,
    ) -> Result<(), PlanError> {
        let mut joints: Vec<Option<JointVector>> = vec![None; self.spots.len()];
        let [columns, rows] = self.size;
        for row in 0..rows {
            if observer.cancelled() {
                return Err(PlanError::Cancelled);
            }
            for column in 0..columns {
                let index = row * columns + column;
                let left = column.checked_sub(1).and(index.checked_sub(1));
                let below = index.checked_sub(columns);
                let seeds =
                    [left, below].map(|at| at.and_then(|at| joints.get(at).copied().flatten()));
                let at_mm = self.point_mm(column, row);
                if faces_like_centre(&scene.surface, at_mm)
                    && let Some((spot, q)) =
                        inspect_point(scene, ik, at_mm, &Vector3::zeros(), seeds)
                {
                    (self.spots[index], joints[index]) = (spot, Some(q));
                }
            }
            observer.progress(row + 1, rows);
        }
        Ok(())
    }

    /// Returns the place of a spot, in the sheet's coordinates.
    #[must_use]
    pub fn point_mm(&self, column: usize, row: usize) -> [f64; 2] {
        let [x, y] = self.low_mm;
        let [dx, dy] = [column, row].map(|steps| steps as f64 * self.step_mm);
        [x + dx, y + dy]
    }

    /// Returns the spots under the sheet if it were moved by these steps along each axis.
    fn coverage(&self, scene: &Scene, [dx, dy]: [i64; 2]) -> SheetCoverage {
        let [width, height] = scene.surface.size_mm();
        let moved_mm = [dx as f64 * self.step_mm, dy as f64 * self.step_mm];
        let slack = self.step_mm * 1e-6;
        let is_under_sheet = |[x, y]: [f64; 2]| {
            (-slack..=width + slack).contains(&(x - moved_mm[0]))
                && (-slack..=height + slack).contains(&(y - moved_mm[1]))
        };
        let columns = self.size[0].max(1);
        let spots = self.spots.iter().enumerate();
        let covered = spots
            .filter(|(index, _)| is_under_sheet(self.point_mm(index % columns, index / columns)));
        SheetCoverage {
            spots: covered.map(|(_, spot)| *spot).collect(),
        }
    }

    /// Returns the best place, if it is worth moving the sheet there.
    fn suggest(&self, scene: &Scene, cone_deg: f64) -> Option<PlacementSuggestion> {
        #[expect(clippy::cast_possible_truncation, reason = "20 at the most")]
        let max_steps = (AROUND_MM / self.step_mm) as i64;
        let here = self.coverage(scene, [0, 0]).cost(cone_deg, 0.0);
        let mut best = (here - WORTH, [0, 0]);
        for dy in -max_steps..=max_steps {
            for dx in -max_steps..=max_steps {
                let moved_mm = ((dx * dx + dy * dy) as f64).sqrt() * self.step_mm;
                let cost = self.coverage(scene, [dx, dy]).cost(cone_deg, moved_mm);
                if cost < best.0 {
                    best = (cost, [dx, dy]);
                }
            }
        }
        let (_, [dx, dy]) = best;
        if (dx, dy) == (0, 0) {
            return None;
        }
        let move_mm = [dx as f64 * self.step_mm, dy as f64 * self.step_mm];
        let coverage = self.coverage(scene, [dx, dy]);
        let origin_m = scene.surface.at(move_mm).point_m;
        Some(coverage.suggestion(move_mm, origin_m.into(), cone_deg))
    }
}

/// Least improvement worth a suggestion: degrees of tilt or margin.
pub(super) const WORTH: f64 = 3.0;
