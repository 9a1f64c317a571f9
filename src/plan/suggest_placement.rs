//! Suggests a better place for a sheet that is not flat. Moved along its own axes, such a sheet
//! takes its shape along, so a map of the shape at its present place does not show what it would
//! cover. Each place is examined on its own, at points all over the sheet.

use nalgebra::Vector3;

use super::reach_map::{
    AROUND_MM, MARGIN_WORTH_DEG, MISSED_COST, PlacementSuggestion, ReachSpot, SheetCoverage, WORTH,
    inspect_point,
};
use super::tool_ik::ToolIk;
use base::units::JointVector;
use scene::Scene;

/// From one place to the next.
const STEP_MM: f64 = 20.0;

/// Places on either side of where the sheet lies.
const STEPS: i32 = 10;
const _: () = assert!(STEP_MM * 10.0 <= AROUND_MM);

/// Points of the sheet, side by side and one above the other.
const POINTS: u32 = 5;

/// The sheet, shifted to one candidate place.
struct ShiftedSheet {
    move_mm: [f64; 2],
    by_m: Vector3<f64>,
}

/// Joints that led to each point of the sheet at the place before.
type SeedJoints = Vec<Option<JointVector>>;

/// The best place, if it is worth moving the sheet there.
pub(super) fn suggest(scene: &Scene, hand: &ToolIk<'_>) -> Option<PlacementSuggestion> {
    let cone_deg = hand.cone_rad.to_degrees();
    let mut known: SeedJoints = vec![None; (POINTS * POINTS) as usize];
    let here =
        ShiftedSheet::to(scene, [0.0, 0.0]).coverage(scene, hand, &mut known, f64::INFINITY)?;
    let mut best = (here.cost(cone_deg, 0.0) - WORTH, None);
    for row in -STEPS..=STEPS {
        for column in -STEPS..=STEPS {
            // To and fro, so that the place before is beside this one.
            let column = if row % 2 == 0 { column } else { -column };
            let moved = ShiftedSheet::to(scene, [column, row].map(|n| f64::from(n) * STEP_MM));
            let Some(under) = moved.coverage(scene, hand, &mut known, best.0) else {
                continue;
            };
            let [dx, dy] = moved.move_mm;
            let cost = under.cost(cone_deg, dx.hypot(dy));
            if cost < best.0 {
                let origin_m = corner_m(scene, &moved);
                best = (
                    cost,
                    Some(under.suggestion(moved.move_mm, origin_m, cone_deg)),
                );
            }
        }
    }
    best.1
}

/// Returns the corner of the sheet at a place, as a scene's file names it.
fn corner_m(scene: &Scene, moved: &ShiftedSheet) -> [f64; 3] {
    let [width_mm, height_mm] = scene.surface.size_mm();
    let (middle, [x, y]) = axes(scene);
    let corner = middle - x * (width_mm / 2e3) - y * (height_mm / 2e3) + moved.by_m;
    corner.into()
}

/// The sheet's middle, and its axes there: those that its file names.
fn axes(scene: &Scene) -> (Vector3<f64>, [Vector3<f64>; 2]) {
    let middle = scene
        .surface
        .at(scene.surface.size_mm().map(|side| side / 2.0));
    let (x, normal) = (middle.x.into_inner(), middle.normal.into_inner());
    (middle.point_m.coords, [x, normal.cross(&x)])
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

    /// The points of the sheet there; `None` as soon as the place cannot cost less than `most`.
    fn coverage(
        &self,
        scene: &Scene,
        hand: &ToolIk<'_>,
        known: &mut SeedJoints,
        most: f64,
    ) -> Option<SheetCoverage> {
        let size_mm = scene.surface.size_mm();
        let mut under = SheetCoverage::unreachable((POINTS * POINTS) as usize);
        let mut beside: Option<JointVector> = None;
        let (cone_deg, mut missed) = (hand.cone_rad.to_degrees(), 0);
        let cost_of_one = MISSED_COST / f64::from(POINTS * POINTS);
        for (index, (to, way)) in (0_u32..).zip(under.spots.iter_mut().zip(known.iter_mut())) {
            let share =
                [index % POINTS, index / POINTS].map(|n| f64::from(n) / f64::from(POINTS - 1));
            let at_mm = [share[0] * size_mm[0], share[1] * size_mm[1]];
            let found = inspect_point(scene, hand, at_mm, &self.by_m, [*way, beside]);
            (*to, *way) = found.map_or((ReachSpot::default(), None), |(spot, q)| (spot, Some(q)));
            beside = way.or(beside);
            missed += u32::from(to.tilt_deg.is_none_or(|tilt| tilt > cone_deg));
            if f64::from(missed) * cost_of_one - MARGIN_WORTH_DEG > most {
                return None;
            }
        }
        Some(under)
    }
}
