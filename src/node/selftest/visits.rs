//! Motion by which poses and paths are judged: one point over the sheet, visited from four sides again and again.

use super::performance::{PerformanceTick, TipPerformance};
use base::units::JointVector;
use motion::MotionHandle;
use plan::{self, Plan, PlanError, SilentObserver, SpanKind, VisitPoint, VisitTarget};
use scene::Scene;

/// Rounds of four visits.
const ROUNDS: usize = 2;

/// Sides from which it is visited, along the sheet.
pub(super) const SIDES: [[f64; 2]; 4] = [[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]];

/// Distance of each side's point, as a share of the sheet's shorter side.
const AWAY_SHARE: f64 = 0.25;

/// Time for which the arm stands at the point.
const STANDS_S: f64 = 0.6;

/// Part of it at the beginning in which the arm still settles.
const SETTLES_S: f64 = 0.25;

/// Visits of one point.
pub(super) struct RepeatedVisits {
    pub(super) plan: Plan,
}

impl RepeatedVisits {
    /// Plans the visits.
    ///
    /// # Errors
    /// Why the tip cannot be there.
    pub(super) fn plan(scene: &Scene, from: &JointVector) -> Result<Self, PlanError> {
        let size_mm = scene.surface.size_mm();
        let middle = size_mm.map(|mm| mm / 2.0);
        let away_mm = AWAY_SHARE * size_mm[0].min(size_mm[1]);
        let visit = |at_mm, dwell_s| VisitPoint {
            name: "the middle of the sheet, or a point beside it".to_owned(),
            target: VisitTarget::Sheet {
                at_mm,
                height_mm: scene.heights.lift_mm,
            },
            pen: 0,
            dwell_s,
        };
        let beside = |[x, y]: [f64; 2]| [middle[0] + x * away_mm, middle[1] + y * away_mm];
        let pair = |side| [visit(beside(side), 0.0), visit(middle, STANDS_S)];
        let visits: Vec<VisitPoint> = (0..ROUNDS)
            .flat_map(|_| SIDES.into_iter().flat_map(pair))
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
            let seen = snapshots.borrow_and_update();
            let (Some(progress), Some(measured)) = (seen.progress, seen.measured.as_ref()) else {
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

    /// Judges what was read.
    pub(super) fn judge(&self, scene: &Scene, ticks: &[PerformanceTick]) -> Option<TipPerformance> {
        let period_s = self.plan.trajectory.period.as_secs_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a second in samples"
        )]
        let settles = (SETTLES_S / period_s) as usize;
        let spans = self.plan.trajectory.spans.iter();
        // Each second visit is of the point itself.
        let stands = spans.filter(|span| {
            span.kind == SpanKind::Dwell && span.item.is_some_and(|item| item % 2 == 1)
        });
        let stands: Vec<std::ops::Range<usize>> =
            stands.map(|span| span.first + settles..span.end).collect();
        TipPerformance::of(scene, ticks, &stands, period_s)
    }
}
