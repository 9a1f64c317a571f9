//! Suggests a better place for a sheet that is not flat. Such a sheet takes its shape along when it
//! is moved along its own axes, so a map of the shape at its present place does not show what it
//! would cover. Each place is examined separately, at points all over the sheet.

use nalgebra::Vector3;

use super::reach_map::{
    AROUND_MM, MARGIN_WORTH_DEG, MISSED_COST, PlacementSuggestion, ReachSpot, SheetCoverage, WORTH,
    inspect_point,
};
use super::tool_ik::ToolIk;
use base::units::JointVector;
use scene::Scene;

/// Distance from one place to the next.
const STEP_MM: f64 = 20.0;

/// Places on either side of the present one.
const STEPS: i32 = 10;
const _: () = assert!(STEP_MM * 10.0 <= AROUND_MM);

/// Points of the sheet along each side.
const POINTS: u32 = 5;

/// The sheet, shifted to one candidate place.
struct ShiftedSheet {
    move_mm: [f64; 2],
    by_m: Vector3<f64>,
}

/// Joints that reached each point of the sheet at the previous place.
type SeedJoints = Vec<Option<JointVector>>;

/// Returns the best place, if it is worth moving the sheet there.
pub(super) fn suggest(scene: &Scene, ik: &ToolIk<'_>) -> Option<PlacementSuggestion> {
    let cone_deg = ik.cone_rad.to_degrees();
    let mut seeds: SeedJoints = vec![None; (POINTS * POINTS) as usize];
    let present =
        ShiftedSheet::to(scene, [0.0, 0.0]).coverage(scene, ik, &mut seeds, f64::INFINITY)?;
    let mut best = (present.cost(cone_deg, 0.0) - WORTH, None);
    for row in -STEPS..=STEPS {
        for column in -STEPS..=STEPS {
            // Alternate the direction, so that each place is next to the previous one.
            let column = if row % 2 == 0 { column } else { -column };
            let sheet = ShiftedSheet::to(scene, [column, row].map(|n| f64::from(n) * STEP_MM));
            let Some(coverage) = sheet.coverage(scene, ik, &mut seeds, best.0) else {
                continue;
            };
            let [dx, dy] = sheet.move_mm;
            let cost = coverage.cost(cone_deg, dx.hypot(dy));
            if cost < best.0 {
                let origin_m = corner_m(scene, &sheet);
                best = (
                    cost,
                    Some(coverage.suggestion(sheet.move_mm, origin_m, cone_deg)),
                );
            }
        }
    }
    best.1
}

/// Returns the corner of the sheet at a place, as in a scene file.
fn corner_m(scene: &Scene, sheet: &ShiftedSheet) -> [f64; 3] {
    let [width_mm, height_mm] = scene.surface.size_mm();
    let (centre, [x, y]) = axes(scene);
    let corner = centre - x * (width_mm / 2e3) - y * (height_mm / 2e3) + sheet.by_m;
    corner.into()
}

/// Returns the sheet's centre, and its axes there, as in a scene file.
fn axes(scene: &Scene) -> (Vector3<f64>, [Vector3<f64>; 2]) {
    let centre = scene
        .surface
        .at(scene.surface.size_mm().map(|side| side / 2.0));
    let (x, normal) = (centre.x.into_inner(), centre.normal.into_inner());
    (centre.point_m.coords, [x, normal.cross(&x)])
}

impl ShiftedSheet {
    fn to(scene: &Scene, move_mm: [f64; 2]) -> Self {
        let (_, [x, y]) = axes(scene);
        let [dx, dy] = move_mm;
        Self {
            move_mm,
            by_m: x * (dx / 1e3) + y * (dy / 1e3),
        }
    }

    /// Returns the points of the sheet there; `None` as soon as the place cannot cost less than
    /// `max_cost`.
    fn coverage(
        &self,
        scene: &Scene,
        ik: &ToolIk<'_>,
        seeds: &mut SeedJoints,
        max_cost: f64,
    ) -> Option<SheetCoverage> {
        let size_mm = scene.surface.size_mm();
        let mut coverage = SheetCoverage::unreachable((POINTS * POINTS) as usize);
        let mut last_joints: Option<JointVector> = None;
        let (cone_deg, mut missed) = (ik.cone_rad.to_degrees(), 0);
        let cost_of_point = MISSED_COST / f64::from(POINTS * POINTS);
        for (index, (spot, seed)) in (0_u32..).zip(coverage.spots.iter_mut().zip(seeds.iter_mut()))
        {
            let fraction =
                [index % POINTS, index / POINTS].map(|n| f64::from(n) / f64::from(POINTS - 1));
            let at_mm = [fraction[0] * size_mm[0], fraction[1] * size_mm[1]];
            let found = inspect_point(scene, ik, at_mm, &self.by_m, [*seed, last_joints]);
            (*spot, *seed) =
                found.map_or((ReachSpot::default(), None), |(found, q)| (found, Some(q)));
            last_joints = seed.or(last_joints);
            missed += u32::from(spot.tilt_deg.is_none_or(|tilt| tilt > cone_deg));
            if f64::from(missed) * cost_of_point - MARGIN_WORTH_DEG > max_cost {
                return None;
            }
        }
        Some(coverage)
    }
}
