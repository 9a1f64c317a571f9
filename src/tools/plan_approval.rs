//! A person's approval of one plan, where the node file asks for it. It comes by the control socket
//! and names the plan's hash; nothing that a model can send counts as one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::motion_job::{JobContext, JobError};
use super::stroke::normalized_hash;
use super::{Node, pictures};
use base::lock::MutexExt;
use base::units::ClockInstant;
use base::wording::duration;
use call::{Refusal, refusal};
use config::BeforeDrawing;
use plan::Plan;
use scene::{Scene, SheetStroke};

/// Time after which a plan without approval is refused.
const APPROVAL_WITHIN: Duration = Duration::from_secs(600);

/// Interval at which a waiting job checks for a stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Plans that wait for approval.
pub(super) type PlanApprovals = Mutex<Vec<ApprovalRequest>>;

pub(super) struct ApprovalRequest {
    pending: PendingPlan,
    sender: oneshot::Sender<PlanVerdict>,
}

/// A job's request in the list of plans that wait, for as long as the job waits.
struct ListedRequest<'a> {
    node: &'a Node,
    job: &'a str,
}

impl Drop for ListedRequest<'_> {
    fn drop(&mut self) {
        let mut requests = self.node.approvals.locked();
        requests.retain(|waiting| waiting.pending.job != self.job);
    }
}

/// A person's decision on a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanVerdict {
    Approved,
    Refused,
}

/// Reason why a person has not decided.
pub(super) enum NoDecision {
    /// A stop came first.
    Stopped,
    /// No decision came in time.
    TooLate,
    /// The side that could have decided is gone.
    GivenUp,
}

/// A plan that waits for a person.
#[derive(Clone, Debug)]
pub struct PendingPlan {
    /// The job.
    pub job: String,
    /// The hash of the only plan that is approved.
    pub plan: String,
    /// Summary of the planned motion for people, with the picture's path.
    pub words: String,
    /// The scene that it would move in.
    pub scene: Arc<Scene>,
    /// The strokes that it would draw.
    pub strokes: Arc<[SheetStroke]>,
}

impl Node {
    /// Returns the plans that wait for a person.
    #[must_use]
    pub fn pending(&self) -> Vec<PendingPlan> {
        let requests = self.approvals.locked();
        requests.iter().map(|one| one.pending.clone()).collect()
    }

    /// Lets a job carry out the plan of this hash, at once.
    ///
    /// # Errors
    /// No such job waits, or it has another plan by now.
    pub fn approve(&self, job: &str, plan: &str) -> Result<String, Refusal> {
        self.decide_plan(job, plan, PlanVerdict::Approved)?;
        Ok(format!("{job} may carry out plan {plan}"))
    }

    /// Refuses the plan of this hash: its job ends, and nothing moves.
    ///
    /// # Errors
    /// No such job waits, or it has another plan by now.
    pub fn refuse_plan(&self, job: &str, plan: &str) -> Result<String, Refusal> {
        self.decide_plan(job, plan, PlanVerdict::Refused)?;
        Ok(format!("plan {plan} of {job} is refused; nothing moves"))
    }

    fn decide_plan(&self, job: &str, plan: &str, verdict: PlanVerdict) -> Result<(), Refusal> {
        let mut requests = self.approvals.locked();
        let pending = requests.iter().map(|waiting| &waiting.pending);
        let found = pending
            .clone()
            .enumerate()
            .find(|(_, pending)| pending.job == job);
        let Some((index, waiting)) = found else {
            let names: Vec<&str> = pending.map(|pending| pending.job.as_str()).collect();
            let names = names.join(", ");
            return Err(refusal!(
                "{job} does not wait for approval; these do: [{names}]"
            ));
        };
        if waiting.plan != normalized_hash(plan) {
            return Err(refusal!(
                "{job} now has a different plan. Next: look at the new plan and approve it"
            ));
        }
        let sent = requests.swap_remove(index).sender.send(verdict);
        sent.map_err(|_| refusal!("{job} no longer waits"))
    }
}

impl JobContext {
    /// Returns whether each plan in a scene waits for a person's approval.
    pub(super) fn must_be_approved(&self, scene: &Scene) -> bool {
        self.node.before_drawing(&self.arm, scene, self.who) == BeforeDrawing::Person
    }

    /// Waits for a person's approval of a plan, if the node file asks for one.
    pub(super) async fn await_approval(
        &self,
        scene: &Arc<Scene>,
        plan: &Plan,
    ) -> Result<(), JobError> {
        if !self.must_be_approved(scene) {
            return Ok(());
        }
        let job = self.entry.id().to_owned();
        // Taken before anybody sees the request, so that the time for the picture and the journal counts too.
        let until = self.arm.motion.clock().now().after(APPROVAL_WITHIN);
        let (sender, verdict) = oneshot::channel();
        let pending = PendingPlan {
            words: self.describe_plan(scene, plan),
            plan: plan.hash.clone(),
            job: job.clone(),
            scene: Arc::clone(scene),
            strokes: plan.strokes.clone().into(),
        };
        let request = ApprovalRequest { pending, sender };
        self.node.approvals.locked().push(request);
        let listed = ListedRequest {
            node: &self.node,
            job: &job,
        };
        self.job.update(|card| {
            card.state = "held";
            card.awaits_approval = true;
        });
        let journalled = self.entry.held("the plan waits for a person's approval");
        journalled.map_err(Refusal::from)?;
        let verdict = self.await_decision(verdict, until).await;
        self.job.update(|card| card.awaits_approval = false);
        drop(listed);
        match verdict {
            Ok(PlanVerdict::Refused) => Err(refusal!(
                "an operator refused this plan. Next: ask the operator what should be different"
            )
            .into()),
            Ok(PlanVerdict::Approved) => {
                super::check_zeros_after_wait(&self.node, &self.arm)?;
                let noted = self.entry.approved(&plan.hash);
                Ok(noted.map_err(Refusal::from)?)
            }
            Err(NoDecision::Stopped) => {
                Err(refusal!("the job was stopped while it waited for approval").into())
            }
            Err(NoDecision::TooLate | NoDecision::GivenUp) => {
                let within = duration(APPROVAL_WITHIN);
                Err(refusal!("{job} was not approved within {within}").into())
            }
        }
    }

    /// Waits for a person's decision until a moment; a stop ends the wait.
    pub(super) async fn await_decision<T>(
        &self,
        mut decision: oneshot::Receiver<T>,
        until: ClockInstant,
    ) -> Result<T, NoDecision> {
        let clock = self.arm.motion.clock();
        loop {
            if self.arm.motion.stops_requested() > self.seen_stops {
                return Err(NoDecision::Stopped);
            }
            if clock.now() > until {
                return Err(NoDecision::TooLate);
            }
            if let Ok(decision) = tokio::time::timeout(POLL_INTERVAL, &mut decision).await {
                return decision.map_err(|_| NoDecision::GivenUp);
            }
        }
    }

    fn describe_plan(&self, scene: &Scene, plan: &Plan) -> String {
        let picture = self.entry.folder().join("plan.png");
        let written = pictures::plan(scene, plan).map(|png| std::fs::write(&picture, png));
        let picture = match written {
            Some(Ok(())) => picture.display().to_string(),
            _ => "none".to_owned(),
        };
        format!(
            "{} on node {}, arm {}: {} in scene {} (revision {})\nplan {}: {}\npicture: {picture}\nit waits for at most {}",
            self.entry.id(),
            self.node.file.name,
            self.arm.name,
            self.job.card().tool,
            scene.title(),
            scene.revision,
            plan.hash,
            super::stroke::size_text(plan),
            duration(APPROVAL_WITHIN)
        )
    }
}
