//! The motion that is stopped: the tip travels over the sheet, from one end of the drawing area to the other, as fast as
//! its scene allows.

use nalgebra::Point3;

use base::units::JointVector;
use plan::{self, Plan, PlanError, SilentObserver, SpanKind, Trajectory, VisitPoint, VisitTarget};
use scene::Scene;

/// Dwell time at either end.
const DWELL_S: f64 = 0.05;

/// End points where nothing is drawn, as fractions of the sheet's width.
const DEFAULT_ENDS: [f64; 2] = [0.25, 0.75];

/// The motion, and the sample at which it is stopped.
pub(super) struct SelfTestPath {
    pub(super) plan: Plan,
    /// Sample in the middle of the sheet, where the tip is fastest.
    pub(super) stop_at: usize,
    /// Speed of the tip there.
    pub(super) mm_s: f64,
}

impl SelfTestPath {
    /// Plans a motion to the nearer end and then to the other.
    ///
    /// # Errors
    /// The tip cannot reach an end.
    pub(super) fn plan(scene: &Scene, from: &JointVector) -> Result<Self, PlanError> {
        let pen = scene.strokes.first().map_or(0, |stroke| stroke.pen);
        let tip_mm = tip_m(scene, pen, from).map(|tip| scene.surface.project(&tip).at_mm);
        let away_mm = |at_mm: &[f64; 2]| tip_mm.map_or(0.0, |tip| distance_mm(at_mm, &tip));
        let mut ends = ends(scene);
        ends.sort_by(|first, second| away_mm(first).total_cmp(&away_mm(second)));
        let visits = ends.map(|at_mm| VisitPoint {
            name: "an end of the self-test's path".to_owned(),
            target: VisitTarget::Sheet {
                at_mm,
                height_mm: scene.heights.lift_mm,
            },
            pen,
            dwell_s: DWELL_S,
        });
        let plan = plan::visit(scene, from, &visits, &SilentObserver)?;
        let stop_at = middle_sample(&plan.trajectory);
        let mm_s = speed_mm_s(scene, pen, &plan.trajectory, stop_at);
        Ok(Self {
            plan,
            stop_at,
            mm_s,
        })
    }
}

/// Returns the two drawn points that are furthest apart along the sheet's x or y axis.
fn ends(scene: &Scene) -> [[f64; 2]; 2] {
    let points = || scene.strokes.iter().flat_map(|stroke| &stroke.points_mm);
    let extremes = |axis: usize| {
        let coordinate = |at: &&[f64; 2]| at.get(axis).copied().unwrap_or_default();
        let order = |first: &&[f64; 2], second: &&[f64; 2]| {
            coordinate(first).total_cmp(&coordinate(second))
        };
        Some([*points().min_by(order)?, *points().max_by(order)?])
    };
    let extents = [0, 1].map(extremes).into_iter().flatten();
    let longest = extents.max_by(|[a, b], [c, d]| distance_mm(a, b).total_cmp(&distance_mm(c, d)));
    let [width_mm, height_mm] = scene.surface.size_mm();
    longest.unwrap_or(DEFAULT_ENDS.map(|fraction| [width_mm * fraction, height_mm / 2.0]))
}

fn distance_mm([a, b]: &[f64; 2], [x, y]: &[f64; 2]) -> f64 {
    (a - x).hypot(b - y)
}

/// Returns the middle sample of the last travel over the sheet, or of the trajectory if it has no travel.
fn middle_sample(trajectory: &Trajectory) -> usize {
    let spans = trajectory.spans.iter();
    let travel = spans.rev().find(|span| span.kind == SpanKind::Travel);
    let count = trajectory.samples.len();
    travel.map_or(count / 2, |span| usize::midpoint(span.first, span.end))
}

fn tip_m(scene: &Scene, pen: usize, q: &JointVector) -> Option<Point3<f64>> {
    Some(scene.arm.chain.forward(q) * scene.pen(pen)?.tip_m)
}

fn speed_mm_s(scene: &Scene, pen: usize, trajectory: &Trajectory, sample: usize) -> f64 {
    let tip = |sample: usize| tip_m(scene, pen, trajectory.samples.get(sample)?);
    let positions = tip(sample).zip(tip(sample.saturating_sub(1)));
    let distance_m = positions.map_or(0.0, |(now, before)| (now - before).norm());
    distance_m * 1e3 / trajectory.period.as_secs_f64()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    /// The bound is for a tip at 100 mm/s, so the stopped tip must be that fast wherever the motion begins.
    #[test]
    fn the_tip_is_as_fast_as_it_may_travel_where_it_is_stopped() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let mut from = scene.rest_rad;
        for _ in 0..3 {
            let path = SelfTestPath::plan(&scene, &from).unwrap();
            let limit = scene.limits.travel_mm_s;
            let mm_s = path.mm_s;
            assert!(mm_s > 0.9 * limit && mm_s <= limit, "{mm_s}");
            from = *path.plan.trajectory.samples.get(path.stop_at).unwrap();
        }
    }

    #[test]
    fn where_nothing_is_drawn_the_path_crosses_the_middle_of_the_sheet() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let mut scene = Scene::clone(&scene);
        scene.strokes.clear();
        let path = SelfTestPath::plan(&scene, &scene.rest_rad).unwrap();
        assert!(path.mm_s > 50.0, "{}", path.mm_s);
    }
}
