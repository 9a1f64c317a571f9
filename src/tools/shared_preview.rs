//! A preview of a drawing of several arms: who draws what, and what the gate says of it.

use std::sync::Arc;

use super::job_motion::measurement;
use super::motion_job::JobError;
use super::preview::RuleViolation;
use super::team::StandingArms;
use super::{AttachedArm, Node, RemoteCallWatch, planner_thread};
use base::units::JointVector;
use base::wording::{count, seconds};
use call::{Refusal, refusal};
use gate::RefusedTrajectory;
use plan::{PlanError, PlanObserver, SharedPlan, Trajectory};
use scene::{Scene, SharedScene};

/// A drawing of several arms as it would be drawn, or everything that refuses it.
#[derive(Clone, Debug)]
pub struct SharedPreview {
    /// The plan; `None` if there is none.
    pub plan: Option<SharedPlan>,
    /// Everything that the planner and the gate refuse.
    pub refusals: Vec<RuleViolation>,
}

/// What the gate says of motions.
type Judge<'a> = &'a dyn Fn(&[(&Arc<Scene>, &Trajectory)]) -> Result<(), RefusedTrajectory>;

impl SharedPreview {
    /// Plans a drawing for all arms, and lets the gate check their motions together.
    ///
    /// # Errors
    /// Planning was cancelled, or there is nothing to draw.
    pub fn new(
        shared: &SharedScene,
        starts: &[JointVector],
        watch: &dyn PlanObserver,
    ) -> Result<Self, PlanError> {
        Self::judged_by(
            &|moving| gate::preview_together(moving, &[]),
            shared,
            starts,
            watch,
        )
    }

    /// Plans a drawing for arms from where they are, and lets the gate check it beside those of the scene that stand.
    pub(super) async fn from_here(
        node: &Node,
        arms: Vec<Arc<AttachedArm>>,
        shared: &Arc<SharedScene>,
        watch: &RemoteCallWatch,
    ) -> Result<Self, JobError> {
        let (Some(first), Some(part)) = (arms.first().cloned(), shared.parts.first()) else {
            return Err(refusal!("scene `{}` has no arm", shared.name).into());
        };
        let start = |arm: &Arc<AttachedArm>| Ok(measurement(arm)?.position_rad);
        let starts = arms
            .iter()
            .map(start)
            .collect::<Result<Vec<_>, Refusal>>()?;
        let standing = StandingArms::beside_all(node, arms, &part.scene).await?;
        let planned = Arc::clone(shared);
        planner_thread::preview(&first, watch, move |watch| {
            let judge: Judge<'_> = &|moving| standing.judge_all(moving);
            Self::judged_by(judge, &planned, &starts, watch)
        })
        .await
    }

    fn judged_by(
        judge: Judge<'_>,
        shared: &SharedScene,
        starts: &[JointVector],
        watch: &dyn PlanObserver,
    ) -> Result<Self, PlanError> {
        let plan = match plan::together(shared, starts, watch) {
            Ok(plan) => plan,
            Err(PlanError::Refused(refusals)) => {
                return Ok(Self {
                    plan: None,
                    refusals: refusals.iter().map(RuleViolation::of_planner).collect(),
                });
            }
            Err(error) => return Err(error),
        };
        let parts = shared.parts.iter().zip(&plan.plans);
        let moving: Vec<_> = parts
            .map(|(part, plan)| (&part.scene, &plan.trajectory))
            .collect();
        let refused = judge(&moving).err();
        let refused = refused.into_iter().flat_map(|refused| refused.0);
        let refusals = refused.map(|refusal| {
            let mut parts = shared.parts.iter().zip(&plan.plans);
            let of_arm = parts.find(|(part, _)| part.scene.arm_name == refusal.arm);
            let report = of_arm.map(|(_, plan)| &plan.report);
            RuleViolation::of_gate(&refusal, &report.cloned().unwrap_or_default())
        });
        Ok(Self {
            refusals: refusals.collect(),
            plan: Some(plan),
        })
    }

    /// Says how long it takes, and what each arm draws of it.
    #[must_use]
    pub fn message(&self, shared: &SharedScene) -> String {
        let Some(plan) = &self.plan else {
            return format!("refused: {}", count(self.refusals.len(), "refusal"));
        };
        let parts = shared.parts.iter().zip(&plan.plans);
        let each = parts.map(|(part, plan)| {
            format!("{} draws {}", part.arm_name(), plan.report.strokes_text())
        });
        let each = each.collect::<Vec<_>>().join(", ");
        let refused = match self.refusals.len() {
            0 => String::new(),
            refusals => format!("; {}", count(refusals, "refusal")),
        };
        format!(
            "{} when drawn together: {each}{refused}",
            seconds(plan.duration_s)
        )
    }
}
