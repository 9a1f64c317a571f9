//! The motion by which poses and paths are judged: repeated visits of one point over the sheet from four sides.

use super::performance::{PerformanceTick, TipPerformance};
use base::units::JointVector;
use motion::MotionHandle;
use plan::{self, Plan, PlanError, SilentObserver, SpanKind, VisitPoint, VisitTarget};
use scene::Scene;

/// Rounds of four visits.
const ROUNDS: usize = 2;

/// Directions from which the point is visited, in the plane of the sheet.
pub(super) const SIDES: [[f64; 2]; 4] = [[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]];

/// Distance of each side's point, as a fraction of the sheet's shorter side.
const OFFSET_FRACTION: f64 = 0.25;

/// Dwell time at the point.
const DWELL_S: f64 = 0.6;

/// Time at the beginning of the dwell in which the arm still settles.
const SETTLING_S: f64 = 0.25;

/// Visits of one point.
pub(super) struct RepeatedVisits {
    pub(super) plan: Plan,
}

impl RepeatedVisits {
    /// Plans the visits.
    ///
    /// # Errors
    /// The tip cannot reach a point.
    pub(super) fn plan(scene: &Scene, from: &JointVector) -> Result<Self, PlanError> {
        let size_mm = scene.surface.size_mm();
        let centre = size_mm.map(|mm| mm / 2.0);
        let away_mm = OFFSET_FRACTION * size_mm[0].min(size_mm[1]);
        let visit = |at_mm, dwell_s| VisitPoint {
            name: "the middle of the sheet, or a point beside it".to_owned(),
            target: VisitTarget::Sheet {
                at_mm,
                height_mm: scene.heights.lift_mm,
            },
            pen: 0,
            dwell_s,
        };
        let side_point = |[x, y]: [f64; 2]| [centre[0] + x * away_mm, centre[1] + y * away_mm];
        let visit_pair = |side| [visit(side_point(side), 0.0), visit(centre, DWELL_S)];
        let visits: Vec<VisitPoint> = (0..ROUNDS)
            .flat_map(|_| SIDES.into_iter().flat_map(visit_pair))
            .collect();
        Ok(Self {
            plan: plan::visit(scene, from, &visits, &SilentObserver)?,
        })
    }

    /// Reads the arm at every tick until the future is dropped.
    pub(super) async fn watch(&self, motion: &MotionHandle, ticks: &mut Vec<PerformanceTick>) {
        let mut snapshots = motion.watch();
        let samples = &self.plan.trajectory.samples;
        while snapshots.changed().await.is_ok() {
            let snapshot = snapshots.borrow_and_update();
            let (Some(progress), Some(measured)) = (snapshot.progress, &snapshot.measured) else {
                continue;
            };
            let Some(goal) = samples.get(progress.sample) else {
                continue;
            };
            ticks.push(PerformanceTick {
                sample: progress.sample,
                goal_rad: *goal,
                measured_rad: measured.position_rad,
            });
        }
    }

    /// Judges the readings.
    pub(super) fn judge(&self, scene: &Scene, ticks: &[PerformanceTick]) -> Option<TipPerformance> {
        let period_s = self.plan.trajectory.period.as_secs_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a second in samples"
        )]
        let settling = (SETTLING_S / period_s) as usize;
        let spans = self.plan.trajectory.spans.iter();
        // Every second visit is of the point itself.
        let dwells = spans.filter(|span| {
            span.kind == SpanKind::Dwell && span.item.is_some_and(|item| item % 2 == 1)
        });
        let dwells: Vec<std::ops::Range<usize>> =
            dwells.map(|span| span.first + settling..span.end).collect();
        TipPerformance::of(scene, ticks, &dwells, period_s)
    }
}
