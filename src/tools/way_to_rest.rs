//! Plans the way to rest: by way of the ready pose or, where that is refused, straight there.

use std::sync::Arc;

use super::motion_job::{JobContext, JobError};
use super::reply::refused;
use super::team;
use base::units::JointVector;
use plan::{Plan, PlanError};
use scene::Scene;

impl JobContext {
    /// Plans the motion to rest. A ready pose that a sheet or a keep-out blocks does not keep the arm from it.
    ///
    /// # Errors
    /// Both ways are refused; the answer says why, way by way.
    pub(super) async fn plan_to_rest(&self, scene: &Arc<Scene>) -> Result<Plan, JobError> {
        let (ready_rad, rest_rad) = (scene.ready_rad, scene.rest_rad);
        let by_ready = match self.plan_way(scene, vec![ready_rad, rest_rad]).await? {
            Ok(plan) => return Ok(plan),
            Err(refusal) => refusal,
        };
        let straight = match self.plan_way(scene, vec![rest_rad]).await? {
            Ok(plan) => {
                tracing::warn!(
                    "the arm goes straight to rest, because the way through `poses.ready_rad` is refused: {}",
                    by_ready.reason
                );
                return Ok(plan);
            }
            Err(refusal) => refusal,
        };
        let reason = format!(
            "there is no path to the rest pose. Through `poses.ready_rad`: {}. Straight to `poses.rest_rad`: {}",
            by_ready.reason, straight.reason
        );
        Err(JobError::Answered(refused(straight.code, reason)))
    }

    /// Plans a way over poses and lets the gate judge it; the inner error is its refusal.
    async fn plan_way(
        &self,
        scene: &Arc<Scene>,
        poses: Vec<JointVector>,
    ) -> Result<Result<Plan, RefusedWay>, JobError> {
        let go = move |scene: &Scene, start: &JointVector, watch: &dyn plan::PlanObserver| {
            plan::go_to(scene, start, &poses, watch)
        };
        let plan = match self.plan(scene, go).await {
            Ok(plan) => plan,
            Err(JobError::Plan(error)) if error != PlanError::Cancelled => {
                return Ok(Err(RefusedWay {
                    code: "plan_refused",
                    reason: error.to_string(),
                }));
            }
            Err(error) => return Err(error),
        };
        let scene = self.arm.with_confirmed_pen(scene);
        let judged = team::preview(&self.node, &self.arm, &scene, &plan.trajectory).await;
        Ok(match judged? {
            Ok(()) => Ok(plan),
            Err(error) => Err(RefusedWay {
                code: "gate_refused",
                reason: error.to_string(),
            }),
        })
    }
}

/// A way to rest that is refused.
struct RefusedWay {
    code: &'static str,
    reason: String,
}
