//! Jobs of several arms that move together: their motions are planned in one step, and judged in one.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::try_join_all;
use tokio::sync::OwnedMutexGuard;
use tokio_util::task::AbortOnDropHandle;

use super::job_motion::recent_measurement;
use super::meeting::Meeting;
use super::motion_job::JobError;
use super::panic_guard::{InternalError, catch_panic};
use super::planner_thread::{PlannerError, PlanningWatch, PlanningWatches, on_planner};
use super::sheet_ink::InkLine;
use super::{AttachedArm, Node};
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use call::{Refusal, refusal};
use gate::{CheckedTrajectory, MotionPart, RefusedTrajectory, StandingArm};
use job::AcceptedJob;
use motion::Snapshot;
use permit::{ActorRank, MotionPermit};
use plan::{Plan, Trajectory};
use scene::{ArmBeside, Scene, SharedScene};

/// Longest time that a motion of the node waits for an arm beside its own.
const TURN_WITHIN: Duration = Duration::from_secs(4);

/// Angle by which an arm may move while it stands beside one that moves: more than a reading's noise and what a load bends it by.
const STANDS_WITHIN_RAD: f64 = 0.035;

/// An arm with its part of a scene.
pub type PartOfArm<'a> = (&'a Arc<AttachedArm>, Arc<Scene>);

/// The seat of a job among those that move together; a job that moves alone has the only one.
#[derive(Clone)]
pub(super) struct TeamSeat {
    team: Arc<Team>,
    seat: usize,
}

struct Team {
    /// The names of its arms; none for a job that moves alone.
    arms: Vec<String>,
    /// The first of its jobs.
    first_job: OnceLock<String>,
    plans: Meeting<PlanRequest, Result<TeamPlan, PlannerError>>,
    proofs: Meeting<ProofRequest, Result<CheckedTrajectory, ProofError>>,
    drawn: Meeting<DrawnPart, Vec<DrawnPart>>,
}

/// What one arm drew of a sheet, for a picture of all of it.
#[derive(Clone)]
pub(super) struct DrawnPart {
    pub(super) scene: Arc<Scene>,
    pub(super) plan: Plan,
    /// The ink on the sheet before a simulated arm.
    pub(super) ink: Option<Vec<InkLine>>,
}

/// What one arm brings to a common plan.
struct PlanRequest {
    start_rad: JointVector,
    watch: PlanningWatch,
}

/// One arm's part of a common plan.
#[derive(Clone)]
pub(super) struct TeamPlan {
    pub(super) plan: Plan,
    /// Hash of the plans of all arms.
    pub(super) hash: String,
}

/// What one arm brings to a common proof.
pub(super) struct ProofRequest {
    pub(super) arm: Arc<AttachedArm>,
    pub(super) scene: Arc<Scene>,
    pub(super) permit: MotionPermit,
    pub(super) trajectory: Trajectory,
}

/// Why motions were not proven.
#[derive(Clone)]
enum ProofError {
    Gate(RefusedTrajectory),
    Unknown(Refusal),
    Panic(InternalError),
}

impl From<ProofError> for JobError {
    fn from(error: ProofError) -> Self {
        match error {
            ProofError::Gate(refused) => Self::Gate(refused),
            ProofError::Unknown(reason) => Self::Refused(reason),
            ProofError::Panic(error) => Self::Panic(error),
        }
    }
}

impl TeamSeat {
    /// Returns the seat of a job that moves alone.
    pub(super) fn alone() -> Self {
        Self {
            team: Arc::new(Team::of(Vec::new(), 1)),
            seat: 0,
        }
    }

    /// Returns the seats of the jobs of these arms, which move together.
    pub(super) fn together(arms: Vec<String>) -> Vec<Self> {
        let jobs = arms.len();
        let team = Arc::new(Team::of(arms, jobs));
        let seat = |seat| Self {
            team: Arc::clone(&team),
            seat,
        };
        (0..jobs).map(seat).collect()
    }

    /// Notes in a job of the team which drawing it is a part of. One that resumes another job is a part of that job's.
    pub(super) fn note_drawing(&self, accepted: &mut AcceptedJob) {
        if accepted.first_job.is_empty() {
            let first_job = self.team.first_job.get_or_init(|| accepted.id.clone());
            accepted.first_job.clone_from(first_job);
        }
    }

    /// Claims an arm for a motion, and those beside it that have to stand meanwhile. The node's own motions wait for their turn: it
    /// brings arms to rest one after the other.
    ///
    /// # Errors
    /// One of them is in another motion, or is not on this node.
    pub(super) async fn claim_arms(
        &self,
        node: &Node,
        own: &Arc<AttachedArm>,
        scene: &Scene,
        who: ActorRank,
    ) -> Result<Vec<OwnedMutexGuard<()>>, Refusal> {
        let mut arms = self.standing(node, scene)?;
        arms.insert(0, own);
        if who != ActorRank::Node {
            let claimed = arms.into_iter().map(|arm| {
                let claim = Arc::clone(&arm.motion_claim).try_lock_owned();
                claim.map_err(|_| has_motion(arm))
            });
            return claimed.collect();
        }
        // Two that wait for each other's arm would both wait in vain: all wait in one order.
        arms.sort_by_key(|arm| &arm.name);
        let mut claimed = Vec::new();
        for arm in arms {
            let claim = Arc::clone(&arm.motion_claim).lock_owned();
            let claim = tokio::time::timeout(TURN_WITHIN, claim).await;
            claimed.push(claim.map_err(|_| has_motion(arm))?);
        }
        Ok(claimed)
    }

    /// Stops an arm if one that stands for its motion is moved, loses its torque or faults, until the result is dropped.
    pub(super) fn watch_standing(
        &self,
        node: &Node,
        own: &Arc<AttachedArm>,
        scene: &Scene,
    ) -> Result<Vec<AbortOnDropHandle<()>>, Refusal> {
        let standing = self.standing(node, scene)?.into_iter();
        Ok(standing.map(|arm| watch_one(own, arm)).collect())
    }

    /// Returns the arms of a scene that stand while this team moves.
    fn standing<'a>(
        &self,
        node: &'a Node,
        scene: &Scene,
    ) -> Result<Vec<&'a Arc<AttachedArm>>, Refusal> {
        let mut beside = node.beside(scene)?;
        beside.retain(|arm| !self.team.arms.contains(&arm.name));
        Ok(beside)
    }

    /// Gathers what all jobs of the team drew, at the first of them; the others get nothing. Where one ended without it, each keeps its
    /// own.
    pub(super) async fn gather_drawn(&self, own: DrawnPart) -> Vec<DrawnPart> {
        let kept = own.clone();
        let at_first = |parts: Vec<DrawnPart>| async {
            let none = std::iter::repeat_with(Vec::new).take(parts.len().saturating_sub(1));
            let none: Vec<_> = none.collect();
            std::iter::once(parts).chain(none).collect()
        };
        let gathered = self.team.drawn.bring(self.seat, own, at_first).await;
        gathered.unwrap_or_else(|_| vec![kept])
    }

    /// Lets the others know that this job takes no further part, so that they do not wait for it.
    pub(super) fn leave(&self, reason: &str) {
        self.team.plans.cancel(reason);
        self.team.proofs.cancel(reason);
        self.team.drawn.cancel(reason);
    }

    /// Plans a scene for all arms that share it, once each has said where it stands.
    pub(super) async fn plan(
        &self,
        shared: &Arc<SharedScene>,
        start_rad: JointVector,
        watch: PlanningWatch,
    ) -> Result<TeamPlan, JobError> {
        let shared = Arc::clone(shared);
        let step = |requests| plan_all(shared, requests);
        let request = PlanRequest { start_rad, watch };
        let planned = self.team.plans.bring(self.seat, request, step).await;
        Ok(planned.map_err(Refusal::new)??)
    }

    /// Proves the motions of all jobs of the team, beside arms that stand.
    pub(super) async fn prove(
        &self,
        node: &Node,
        request: ProofRequest,
    ) -> Result<CheckedTrajectory, JobError> {
        let step = |requests| prove_all(node, requests);
        let proven = self.team.proofs.bring(self.seat, request, step).await;
        Ok(proven.map_err(Refusal::new)??)
    }
}

fn has_motion(arm: &AttachedArm) -> Refusal {
    refusal!(
        "arm `{}` has a motion of its own. Next: wait until it ends, then send the same call",
        arm.name
    )
}

fn watch_one(own: &Arc<AttachedArm>, other: &Arc<AttachedArm>) -> AbortOnDropHandle<()> {
    let (own, name) = (Arc::clone(own), other.name.clone());
    let (before, mut snapshots) = (other.motion.snapshot(), other.motion.watch());
    let has_left = move |now: &Snapshot| {
        let is_moved = match (&before.measured, &now.measured) {
            (Some(before), Some(now)) => {
                before.position_rad.distance_max(&now.position_rad) > STANDS_WITHIN_RAD
            }
            (before, now) => before.is_some() != now.is_some(),
        };
        let has_faulted = now.fault.is_some() && before.fault.is_none();
        is_moved || has_faulted || (before.energised && !now.energised)
    };
    AbortOnDropHandle::new(base::task::spawn(async move {
        // Without an arm to watch, it does not stand there for certain either.
        _ = snapshots.wait_for(has_left).await;
        own.stop_for_node(&format!("arm `{name}`, which no longer stands beside it"));
    }))
}

impl Team {
    fn of(arms: Vec<String>, jobs: usize) -> Self {
        Self {
            arms,
            first_job: OnceLock::new(),
            plans: Meeting::of(jobs),
            proofs: Meeting::of(jobs),
            drawn: Meeting::of(jobs),
        }
    }
}

impl Node {
    /// Returns the arm of this node that has a name and a model in a scene which several share.
    ///
    /// # Errors
    /// It is not on this node.
    pub(super) fn arm_of_part(
        &self,
        scene: &str,
        name: &str,
        model: &str,
    ) -> Result<&Arc<AttachedArm>, Refusal> {
        let is_meant =
            |arm: &&Arc<AttachedArm>| arm.name == name && arm.motion.arm().file.name == model;
        self.arms.iter().find(is_meant).ok_or_else(|| {
            refusal!(
                "scene `{scene}` has an arm `{name}` ({model}), but this node has none of that name. Next: add it to the node file"
            )
        })
    }

    /// Returns the arms that share a scene with the one that it is for.
    fn beside(&self, scene: &Scene) -> Result<Vec<&Arc<AttachedArm>>, Refusal> {
        let of_beside = |beside: &ArmBeside| {
            self.arm_of_part(scene.shared_name(), &beside.name, &beside.arm.file.name)
        };
        scene.beside.iter().map(of_beside).collect()
    }
}

async fn plan_all(
    shared: Arc<SharedScene>,
    requests: Vec<PlanRequest>,
) -> Vec<Result<TeamPlan, PlannerError>> {
    let requests = requests.into_iter();
    let (starts, watches): (Vec<JointVector>, Vec<PlanningWatch>) = requests
        .map(|request| (request.start_rad, request.watch))
        .unzip();
    let arms = watches.len();
    let planned = on_planner(PlanningWatches(watches), move |watch| {
        plan::together(&shared, &starts, watch)
    });
    match planned.await {
        Ok(planned) => {
            let hash = planned.hash;
            let part = |plan| {
                Ok(TeamPlan {
                    plan,
                    hash: hash.clone(),
                })
            };
            planned.plans.into_iter().map(part).collect()
        }
        Err(error) => vec![Err(error); arms],
    }
}

async fn prove_all(
    node: &Node,
    requests: Vec<ProofRequest>,
) -> Vec<Result<CheckedTrajectory, ProofError>> {
    let jobs = requests.len();
    match try_prove_all(node, requests).await {
        Ok(proven) => proven.into_iter().map(Ok).collect(),
        Err(error) => (0..jobs).map(|_| Err(error.clone())).collect(),
    }
}

/// A reading of an arm, and the time on its clock.
type Reading = (Arc<ArmMeasurement>, ClockInstant);

async fn reading(arm: &AttachedArm) -> Result<Reading, ProofError> {
    let measured = recent_measurement(arm).await;
    let measured = measured.map_err(ProofError::Unknown)?;
    Ok((measured, arm.motion.clock().now()))
}

/// An arm that stands, with its part of the scene and where it was read to be.
struct StandingReading {
    scene: Arc<Scene>,
    reading: Reading,
}

impl StandingReading {
    fn as_judged(&self) -> StandingArm<'_> {
        let (measured, now) = &self.reading;
        StandingArm {
            scene: &self.scene,
            measured,
            now: *now,
        }
    }
}

/// Reads the arms that share a scene with one that moves, but for those that move as well.
async fn read_standing(
    node: &Node,
    scene: &Scene,
    is_moving: impl Fn(&Arc<AttachedArm>) -> bool,
) -> Result<Vec<StandingReading>, ProofError> {
    let beside = node.beside(scene).map_err(ProofError::Unknown)?.into_iter();
    let standing = beside.filter(|arm| !is_moving(arm));
    try_join_all(standing.map(|arm| async move {
        let part = scene.part_name(&arm.name);
        let part = node.scenes.scene(&part, scene.overlay.as_deref());
        Ok(StandingReading {
            scene: part.map_err(|error| ProofError::Unknown(error.into()))?,
            reading: reading(arm).await?,
        })
    }))
    .await
}

/// The arms that share a scene with those that would move, as they stand.
pub(super) struct StandingArms {
    moving: Vec<Arc<AttachedArm>>,
    standing: Vec<StandingReading>,
}

impl StandingArms {
    /// Reads the arms beside one; none where its scene is its own.
    pub(super) async fn beside(
        node: &Node,
        own: &Arc<AttachedArm>,
        scene: &Scene,
    ) -> Result<Self, JobError> {
        Self::beside_all(node, vec![Arc::clone(own)], scene).await
    }

    /// Reads the arms of a scene that are not among those that would move.
    pub(super) async fn beside_all(
        node: &Node,
        moving: Vec<Arc<AttachedArm>>,
        scene: &Scene,
    ) -> Result<Self, JobError> {
        let is_moving =
            |arm: &Arc<AttachedArm>| moving.iter().any(|moving| Arc::ptr_eq(moving, arm));
        let standing = read_standing(node, scene, is_moving).await?;
        Ok(Self { moving, standing })
    }

    /// Judges a motion of the one arm as [`Self::judge_all`] does.
    pub(super) fn judge(
        &self,
        scene: &Arc<Scene>,
        trajectory: &Trajectory,
    ) -> Result<(), RefusedTrajectory> {
        self.judge_all(&[(scene, trajectory)])
    }

    /// Judges a motion of each arm, none of which leaves its zone; makes no proof.
    pub(super) fn judge_all(
        &self,
        motions: &[(&Arc<Scene>, &Trajectory)],
    ) -> Result<(), RefusedTrajectory> {
        let standing = self.standing.iter().map(StandingReading::as_judged);
        let standing: Vec<StandingArm<'_>> = standing.collect();
        let narrowed = self.moving.iter().zip(motions);
        let narrowed = narrowed.map(|(arm, (scene, _))| arm.permits().narrowed(Arc::clone(scene)));
        let narrowed: Vec<Arc<Scene>> = narrowed.collect();
        let motions = narrowed.iter().zip(motions);
        let motions = motions.map(|(scene, (_, trajectory))| (scene, *trajectory));
        gate::preview_together(&motions.collect::<Vec<_>>(), &standing)
    }
}

/// Judges a motion of one arm beside those that share its scene, as they stand; makes no proof.
pub(super) async fn preview(
    node: &Node,
    own: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
    trajectory: &Trajectory,
) -> Result<Result<(), RefusedTrajectory>, JobError> {
    let standing = StandingArms::beside(node, own, scene).await?;
    let judged = catch_panic("checking the plan", || standing.judge(scene, trajectory));
    judged.map_err(JobError::Panic)
}

async fn try_prove_all(
    node: &Node,
    requests: Vec<ProofRequest>,
) -> Result<Vec<CheckedTrajectory>, ProofError> {
    let is_moving = |arm: &Arc<AttachedArm>| {
        let mut moving = requests.iter();
        moving.any(|request| Arc::ptr_eq(&request.arm, arm))
    };
    let standing = match requests.first() {
        Some(first) => read_standing(node, &first.scene, is_moving).await?,
        None => Vec::new(),
    };
    let starts = try_join_all(requests.iter().map(|request| reading(&request.arm))).await?;
    let standing: Vec<StandingArm<'_>> = standing.iter().map(StandingReading::as_judged).collect();
    let moving = requests.into_iter().zip(&starts);
    let moving = moving.map(|(request, (start, now))| MotionPart {
        scene: request.scene,
        permit: request.permit,
        start,
        now: *now,
        trajectory: request.trajectory,
    });
    catch_panic("checking the plan", || {
        gate::check_together(moving.collect(), &standing)
    })
    .map_err(ProofError::Panic)?
    .map_err(ProofError::Gate)
}

#[cfg(test)]
mod tests;
