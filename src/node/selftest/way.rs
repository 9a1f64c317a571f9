//! Motion to be stopped: a tip that travels over the sheet, from one end of the drawing area to the other, as fast as
//! its scene allows.

use nalgebra::Point3;

use base::units::JointVector;
use plan::{self, Plan, PlanError, SilentObserver, SpanKind, Trajectory, VisitPoint, VisitTarget};
use scene::Scene;

/// Dwell time at either end.
const STANDS_S: f64 = 0.05;

/// End points where nothing is drawn, as shares of the sheet's width.
const ENDS: [f64; 2] = [0.25, 0.75];

/// The motion, and where it is to be stopped.
pub(super) struct SelfTestPath {
    pub(super) plan: Plan,
    /// In the middle of the sheet, where it is at its fastest.
    pub(super) stop_at: usize,
    /// Speed of the tip there.
    pub(super) mm_s: f64,
}

impl SelfTestPath {
    /// First to the nearer end, and then to the other.
    ///
    /// # Errors
    /// Why the tip cannot be there.
    pub(super) fn plan(scene: &Scene, from: &JointVector) -> Result<Self, PlanError> {
        let pen = scene.strokes.first().map_or(0, |stroke| stroke.pen);
        let here = tip_m(scene, pen, from).map(|tip| scene.surface.project(&tip).at_mm);
        let away = |at_mm: &[f64; 2]| here.map_or(0.0, |here| apart_mm(at_mm, &here));
        let mut ends = ends(scene);
        ends.sort_by(|one, other| away(one).total_cmp(&away(other)));
        let visits = ends.map(|at_mm| VisitPoint {
            name: "an end of the self-test's way".to_owned(),
            target: VisitTarget::Sheet {
                at_mm,
                height_mm: scene.heights.lift_mm,
            },
            pen,
            dwell_s: STANDS_S,
        });
        let plan = plan::visit(scene, from, &visits, &SilentObserver)?;
        let stop_at = middle(&plan.trajectory);
        let mm_s = speed_mm_s(scene, pen, &plan.trajectory, stop_at);
        Ok(Self {
            plan,
            stop_at,
            mm_s,
        })
    }
}

/// The two points of what is drawn that are furthest apart, along the sheet or up it.
fn ends(scene: &Scene) -> [[f64; 2]; 2] {
    let points = || scene.strokes.iter().flat_map(|stroke| &stroke.points_mm);
    let across = |axis: usize| {
        let along = |at: &&[f64; 2]| at.get(axis).copied().unwrap_or_default();
        let by = |one: &&[f64; 2], other: &&[f64; 2]| along(one).total_cmp(&along(other));
        Some([*points().min_by(by)?, *points().max_by(by)?])
    };
    let drawn = [0, 1].map(across).into_iter().flatten();
    let longest = drawn.max_by(|[a, b], [c, d]| apart_mm(a, b).total_cmp(&apart_mm(c, d)));
    let [width_mm, height_mm] = scene.surface.size_mm();
    longest.unwrap_or(ENDS.map(|share| [width_mm * share, height_mm / 2.0]))
}

fn apart_mm([a, b]: &[f64; 2], [x, y]: &[f64; 2]) -> f64 {
    (a - x).hypot(b - y)
}

/// Returns the middle sample of the last travel over the sheet, or of the trajectory if it has no travel.
fn middle(trajectory: &Trajectory) -> usize {
    let travels = trajectory.spans.iter();
    let over = travels.rev().find(|span| span.kind == SpanKind::Travel);
    let all = trajectory.samples.len();
    over.map_or(all / 2, |span| usize::midpoint(span.first, span.end))
}

fn tip_m(scene: &Scene, pen: usize, q: &JointVector) -> Option<Point3<f64>> {
    Some(scene.arm.chain.forward(q) * scene.pen(pen)?.tip_m)
}

fn speed_mm_s(scene: &Scene, pen: usize, trajectory: &Trajectory, sample: usize) -> f64 {
    let tip = |sample: usize| tip_m(scene, pen, trajectory.samples.get(sample)?);
    let both = tip(sample).zip(tip(sample.saturating_sub(1)));
    let way_m = both.map_or(0.0, |(now, before)| (now - before).norm());
    way_m * 1e3 / trajectory.period.as_secs_f64()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    /// The bound is about a tip at 100 mm/s: that is what is stopped, and wherever it begins.
    #[test]
    fn the_tip_is_as_fast_as_it_may_travel_where_it_is_stopped() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let mut from = scene.rest_rad;
        for _ in 0..3 {
            let way = SelfTestPath::plan(&scene, &from).unwrap();
            let limit = scene.limits.travel_mm_s;
            assert!(way.mm_s > 0.9 * limit && way.mm_s <= limit, "{}", way.mm_s);
            from = *way.plan.trajectory.samples.get(way.stop_at).unwrap();
        }
    }

    #[test]
    fn where_nothing_is_drawn_the_way_is_over_the_middle_of_the_sheet() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let mut scene = Scene::clone(&scene);
        scene.strokes.clear();
        let way = SelfTestPath::plan(&scene, &scene.rest_rad).unwrap();
        assert!(way.mm_s > 50.0, "{}", way.mm_s);
    }
}
