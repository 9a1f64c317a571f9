//! Parks an arm that is no longer watched or is too hot: a stop, a plan, a proof, a run, like any other motion.

use std::sync::Arc;
use std::time::Duration;

use base::clock::NodeClock;
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use base::wording::duration;
use call::{Refusal, refusal};
use motion::HealthAction;
use permit::{ActorRank, MotionPermit, StopLatch};
use plan::{self, Plan};
use scene::Scene;
use tools::{AT_REST_RAD, AttachedArm, Node, NodeJob, catch_panic};

/// Longest motion to rest for an unwatched arm; a longer one is not begun.
const PARK: Duration = Duration::from_secs(5);

/// Time after the node's end signal at which such an arm is stopped in place, if a busy machine has not brought it to
/// rest. systemd ends a service 8 s after the signal.
const PATIENCE: Duration = Duration::from_millis(6500);

/// Longest wait for the journal of a job that was stopped for parking.
const WRITTEN: Duration = Duration::from_millis(500);

/// Outcome of parking an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkOutcome {
    /// It stands at rest, read back, with its torque on.
    AtRest,
    /// It had no torque: nothing holds it and nothing had to be moved.
    Limp,
}

/// An arm at the moment when the node was told to end.
#[derive(Clone, Debug)]
pub struct ShutdownRequest {
    /// Shows how long ago that was.
    since: NodeClock,
    /// Reason not to park the arm.
    hindrance: Option<&'static str>,
    /// Number of stops requested so far. One more also prevents parking.
    stops_said: u64,
}

impl ShutdownRequest {
    pub fn for_arm(seat: &AttachedArm) -> Self {
        let motion = &seat.motion;
        // A stop that is said from here on is counted; one from before is latched or under way.
        let stops_said = motion.deliberate_stops();
        let is_stopping = motion.stops_requested() > motion.snapshot().stops_done;
        let is_enabled = seat.permits().any_enabled(motion.clock().now());
        Self {
            since: NodeClock::real(),
            hindrance: hindrance(seat.permits().latched().as_ref())
                .or(is_stopping.then_some(STOPPED))
                .or((!is_enabled).then_some("motion is not enabled")),
            stops_said,
        }
    }

    /// Returns the remaining time.
    fn time_left(&self) -> Duration {
        PATIENCE.saturating_sub(self.since.now().since(ClockInstant::ZERO))
    }
}

/// Returns whether an arm stays energised away from its rest when the process ends. A simulated arm ends with the
/// process.
pub fn stays_up(seat: &AttachedArm) -> bool {
    seat.workcell.is_none() && seat.motion.snapshot().energised && !seat.is_at_rest()
}

pub const UNVERIFIED: &str = "its standstill could not be verified";

const STOPPED: &str = "a stop is latched";

fn hindrance(latched: Option<&StopLatch>) -> Option<&'static str> {
    match latched {
        None => None,
        Some(StopLatch::Emergency(_)) => Some("an emergency stop is latched"),
        Some(StopLatch::Stopped(_)) => Some(STOPPED),
        Some(StopLatch::Fault(_) | StopLatch::Hot(_)) => Some("a fault is latched"),
    }
}

/// Returns the hindrance in a latch, except the parking's own stop or a departed client's.
fn hindrance_but_own_stop(latched: Option<&StopLatch>) -> Option<&'static str> {
    match latched {
        Some(StopLatch::Stopped(ActorRank::Node | ActorRank::Planner)) => None,
        other => hindrance(other),
    }
}

/// Returns the hindrance in a latch, except heat, for parking an arm that is too hot.
fn hindrance_but_heat(latched: Option<&StopLatch>) -> Option<&'static str> {
    match latched {
        Some(StopLatch::Hot(_)) => None,
        other => hindrance(other),
    }
}

/// Stops an arm with a lift, then brings it to rest, unless a hindrance existed at the signal or a stop came since.
///
/// # Errors
/// The reason why the arm stands in place, energised.
pub async fn park(
    node: &Arc<Node>,
    seat: &Arc<AttachedArm>,
    leave: &ShutdownRequest,
) -> Result<ParkOutcome, Refusal> {
    let motion = &seat.motion;
    if !motion.snapshot().energised {
        return Ok(ParkOutcome::Limp);
    }
    if let Some(why) = leave.hindrance {
        return unless_at_rest(seat, why);
    }
    let ticket = motion.stop(ActorRank::Node, false);
    let stopped = motion.stopped(ticket).await;
    if !stopped.is_some_and(|report| report.verified) {
        return Err(Refusal::new(UNVERIFIED));
    }
    let seen_stops = motion.stops_requested();
    if motion.deliberate_stops() != leave.stops_said {
        return unless_at_rest(seat, "it was stopped meanwhile");
    }
    let longest = PARK.min(leave.time_left());
    let parked = to_rest(node, seat, seen_stops, hindrance_but_own_stop, longest);
    let mut parked = std::pin::pin!(parked);
    if let Ok(parked) = tokio::time::timeout(leave.time_left(), &mut parked).await {
        return parked;
    }
    let ticket = motion.stop(ActorRank::Node, false);
    motion.stopped(ticket).await;
    // Its journal shall say so; the arm stands already.
    drop(tokio::time::timeout(WRITTEN, parked).await);
    let patience = duration(PATIENCE);
    Err(refusal!(
        "it did not come to rest within {patience}: this machine is too busy"
    ))
}

/// An arm that is not brought anywhere may stand where it belongs.
fn unless_at_rest(seat: &AttachedArm, why: &str) -> Result<ParkOutcome, Refusal> {
    if seat.is_at_rest() && !seat.motion.snapshot().state.is_under_way() {
        Ok(ParkOutcome::AtRest)
    } else {
        Err(Refusal::new(why))
    }
}

/// Brings a standing arm to rest, provided that the motion takes no longer than `longest`, no stop came beyond
/// `seen_stops`, and `hinders` finds no latch.
async fn to_rest(
    node: &Arc<Node>,
    seat: &Arc<AttachedArm>,
    seen_stops: u64,
    hinders: fn(Option<&StopLatch>) -> Option<&'static str>,
    longest: Duration,
) -> Result<ParkOutcome, Refusal> {
    let motion = &seat.motion;
    let scene = seat.last_scene().ok_or_else(|| {
        refusal!("no scene says where it rests: it has not moved since the node started")
    })?;
    let start = motion.snapshot().measured;
    let start = start.ok_or_else(|| refusal!("it has not been read yet"))?;
    if start.position_rad.distance_max(&scene.rest_rad) < AT_REST_RAD {
        return Ok(ParkOutcome::AtRest);
    }
    let permit = seat
        .permits()
        .ask_reset(&scene, ActorRank::Node, motion.clock().now())?;
    // What is latched later than this takes the permit back.
    if let Some(why) = hinders(seat.permits().latched().as_ref()) {
        return Err(Refusal::new(why));
    }
    let job = NodeJob::begin(node, seat, "park", &scene, seen_stops).await?;
    let (state, gone) = match planned(&scene, &start, longest).await {
        Ok(ways) => go(&job, &scene, &permit, &ways).await,
        Err(why) => ("refused", Err(why)),
    };
    let words = match &gone {
        Ok(()) => "the arm is at rest".to_owned(),
        Err(why) => why.to_string(),
    };
    job.end(state, words).await;
    gone.map(|()| ParkOutcome::AtRest)
}

/// The first of the ways to rest that may be gone.
async fn go(
    job: &NodeJob,
    scene: &Arc<Scene>,
    permit: &MotionPermit,
    ways: &[Plan],
) -> (&'static str, Result<(), Refusal>) {
    let mut found = ("refused", Err(refusal!("there is no way to its rest pose")));
    for way in ways {
        found = match job.run(scene, permit.clone(), way).await {
            Ok(()) => ("reached", Ok(())),
            Err(short) => (short.state, Err(short.why)),
        };
        if found.0 != "refused" {
            break;
        }
    }
    found
}

async fn planned(
    scene: &Arc<Scene>,
    start: &ArmMeasurement,
    longest: Duration,
) -> Result<Vec<Plan>, Refusal> {
    let (scene, from) = (Arc::clone(scene), start.position_rad);
    let ways = move || catch_panic("planning", || ways(&scene, &from, longest));
    match tokio::task::spawn_blocking(ways).await {
        Ok(planned) => planned?,
        Err(_) => Err(refusal!("the planner's thread ended without an answer")),
    }
}

/// The ways to rest that are not too long, the shorter first: over the ready pose, as after every
/// other motion, and straight there.
fn ways(scene: &Scene, from: &JointVector, longest: Duration) -> Result<Vec<Plan>, Refusal> {
    let (mut ways, mut why) = (Vec::new(), refusal!("there is no way to its rest pose"));
    for poses in [&[scene.ready_rad, scene.rest_rad][..], &[scene.rest_rad]] {
        match plan::go_to(scene, from, poses, &plan::SilentObserver) {
            Ok(plan) => ways.push(plan),
            Err(error) => why = error.into(),
        }
    }
    ways.sort_by_key(|way| way.trajectory.duration());
    let Some(shortest) = ways.first() else {
        return Err(why);
    };
    let shortest = shortest.trajectory.duration();
    ways.retain(|way| way.trajectory.duration() <= longest);
    if ways.is_empty() {
        return Err(refusal!(
            "the way to its rest pose takes {}, and {} is the longest: bring it nearer (`poses.rest_rad`) or raise `limits.travel_mm_s` in scene `{}`",
            duration(shortest),
            duration(longest),
            scene.name
        ));
    }
    Ok(ways)
}

/// Parks an arm whose servos are too hot, once its stroke is done, as often as that happens.
pub async fn park_when_hot(node: Arc<Node>, seat: Arc<AttachedArm>) {
    let mut snapshots = seat.motion.watch();
    loop {
        let hot = snapshots
            .wait_for(|seen| {
                seen.health.care >= HealthAction::Park && seen.progress.is_none() && seen.energised
            })
            .await;
        let Ok(why) = hot.map(|seen| seen.health.summary()) else {
            return;
        };
        match cooler(&node, &seat).await {
            Ok(_) => tracing::warn!(arm = seat.name, "{why}; the arm is parked"),
            Err(error) => tracing::error!(
                arm = seat.name,
                "{why}; it is not parked: {error}; the arm is still energised"
            ),
        }
        let cooled = snapshots.wait_for(|seen| seen.health.care < HealthAction::Park);
        if cooled.await.is_err() {
            return;
        }
    }
}

/// Brings an arm to rest that is too hot; one that was stopped, or is broken, is a person's.
async fn cooler(node: &Arc<Node>, seat: &Arc<AttachedArm>) -> Result<ParkOutcome, Refusal> {
    let seen_stops = seat.motion.stops_requested();
    match hindrance_but_heat(seat.permits().latched().as_ref()) {
        Some(why) => Err(Refusal::new(why)),
        None => to_rest(node, seat, seen_stops, hindrance_but_heat, Duration::MAX).await,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
pub mod tests {
    use super::*;
    use config::NodeFile;
    use link::memory::MemoryLink;
    use link::{ByteLink, LinkError};
    use motion::{MotionHandle, MotionOutcome, PortOpener};
    use permit::PermitRegistry;
    use scene::SceneLibrary;
    use sim::{ArmSimulator, SimulatedFault};
    use tools::NodeStorage as NodeState;

    /// A node with a simulated arm in the default scene.
    pub(crate) struct House {
        pub(crate) node: Arc<Node>,
        pub(crate) seat: Arc<AttachedArm>,
        pub(crate) sim: ArmSimulator,
        pub(crate) scene: Arc<Scene>,
        _folder: tempfile::TempDir,
    }

    pub(crate) fn house(clock: NodeClock) -> House {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
        let device = sim.clone();
        let open: PortOpener = Box::new(move |clock| {
            let link = MemoryLink::new(device.clone(), clock, "bench").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        });
        let permits = Arc::new(PermitRegistry::everything());
        let motion = MotionHandle::start(Arc::clone(&scene.arm), clock, permits, open).unwrap();
        let seat = Arc::new(AttachedArm::new("arm", motion, None));
        seat.moved_in(&scene);
        let folder = tempfile::tempdir().unwrap();
        let file = NodeFile::default();
        let state = NodeState::open(folder.path().to_owned(), &file).unwrap();
        let seats = vec![Arc::clone(&seat)];
        let output = folder.path().to_owned();
        House {
            node: Arc::new(Node::new(
                file,
                SceneLibrary::new(None),
                seats,
                output,
                state,
            )),
            seat,
            sim,
            scene,
            _folder: folder,
        }
    }

    /// At its ready pose.
    async fn ready(seat: &AttachedArm, scene: &Arc<Scene>) {
        let motion = &seat.motion;
        let start = motion.snapshot().measured.unwrap();
        let pose = [scene.ready_rad];
        let plan = plan::go_to(scene, &start.position_rad, &pose, &plan::SilentObserver).unwrap();
        let permit = seat.permits().ask(scene, ClockInstant::ZERO).unwrap();
        let now = motion.clock().now();
        let proof = gate::check(scene, permit, &start, now, plan.trajectory).unwrap();
        let outcome = motion.run(proof, motion.stops_requested()).await.unwrap();
        assert!(
            matches!(outcome, MotionOutcome::Reached { .. }),
            "{outcome:?}"
        );
    }

    fn is_at_rest(sim: &ArmSimulator, scene: &Scene) -> bool {
        sim.true_joints().distance_max(&scene.rest_rad) < AT_REST_RAD
    }

    /// Runs `between` after the signal and before the motion to rest. Returns whether the arm is parked.
    async fn parks(between: impl AsyncFnOnce(&AttachedArm)) -> bool {
        let house = house(NodeClock::simulated());
        ready(&house.seat, &house.scene).await;
        let leave = ShutdownRequest::for_arm(&house.seat);
        between(&house.seat).await;
        let parked = park(&house.node, &house.seat, &leave).await;
        let at_rest = is_at_rest(&house.sim, &house.scene);
        assert_eq!(parked.is_ok(), at_rest, "{parked:?}");
        let told = house.node.job_store.last_moved("arm");
        let told = told.map(|past| (past.tool, past.state));
        let job = ("park".to_owned(), "reached".to_owned());
        assert_eq!(told, at_rest.then_some(job));
        at_rest
    }

    #[tokio::test]
    async fn whoever_stops_an_arm_that_is_left_is_heard() {
        assert!(parks(async |_: &AttachedArm| {}).await);
        for by in [ActorRank::Operator, ActorRank::Planner] {
            let stops = async move |seat: &AttachedArm| {
                let ticket = seat.motion.stop(by, false);
                assert!(seat.motion.stopped(ticket).await.unwrap().verified);
            };
            assert!(!parks(stops).await, "{by:?}");
        }
        // One that is under way when the parking's own stop comes is the same stop.
        let at_once = async |seat: &AttachedArm| {
            seat.motion.stop(ActorRank::Operator, false);
        };
        assert!(!parks(at_once).await);
        let breaks =
            async |seat: &AttachedArm| seat.permits().latch(StopLatch::Fault("broken".to_owned()));
        assert!(!parks(breaks).await);
        // The node's own stops, and callers that are cut off because it ends, are no reason.
        let ends = async |seat: &AttachedArm| {
            seat.motion.stop(ActorRank::Node, false);
            let ticket = seat.motion.abandon();
            assert!(seat.motion.stopped(ticket).await.unwrap().verified);
        };
        assert!(parks(ends).await);
    }

    #[tokio::test]
    async fn what_was_stopped_before_stays_where_it_is() {
        let House {
            node,
            seat,
            sim,
            scene,
            ..
        } = house(NodeClock::simulated());
        ready(&seat, &scene).await;
        seat.motion.stop(ActorRank::Planner, false);
        let leave = ShutdownRequest::for_arm(&seat);
        assert!(park(&node, &seat, &leave).await.is_err());
        assert!(!is_at_rest(&sim, &scene));
    }

    #[tokio::test]
    async fn what_was_stopped_at_rest_is_where_it_belongs() {
        let house = house(NodeClock::simulated());
        let (node, seat) = (&house.node, &house.seat);
        ready(seat, &house.scene).await;
        let leave = ShutdownRequest::for_arm(seat);
        assert_eq!(park(node, seat, &leave).await, Ok(ParkOutcome::AtRest));
        seat.motion.stop(ActorRank::Operator, false);
        let leave = ShutdownRequest::for_arm(seat);
        assert!(leave.hindrance.is_some());
        assert_eq!(park(node, seat, &leave).await, Ok(ParkOutcome::AtRest));
    }

    #[tokio::test]
    async fn time_that_has_gone_since_the_signal_is_not_spent_again() {
        let house = house(NodeClock::simulated());
        ready(&house.seat, &house.scene).await;
        let since = NodeClock::simulated();
        since.jump_to(ClockInstant::ZERO.after(PATIENCE));
        let leave = ShutdownRequest {
            since,
            ..ShutdownRequest::for_arm(&house.seat)
        };
        let parked = park(&house.node, &house.seat, &leave).await;
        let why = parked.unwrap_err().to_string();
        assert!(why.contains("within 6.5 s"), "{why}");
        assert!(!is_at_rest(&house.sim, &house.scene));
    }

    /// A hot arm goes to rest by itself; one with an uncleared fault does not.
    #[tokio::test]
    async fn heat_parks_no_arm_that_is_broken() {
        for broken in [false, true] {
            let house = house(NodeClock::real());
            let (seat, sim, scene) = (&house.seat, &house.sim, &house.scene);
            ready(seat, scene).await;
            if broken {
                let fault = "an obstacle held a joint".to_owned();
                seat.permits().latch(StopLatch::Fault(fault));
            }
            let minding =
                base::task::spawn(park_when_hot(Arc::clone(&house.node), Arc::clone(seat)));
            for id in 1..=6 {
                let temperature_c = 69.0;
                sim.break_it(SimulatedFault::Heat { id, temperature_c });
            }
            let mut snapshots = seat.motion.watch();
            let hot = snapshots.wait_for(|seen| seen.health.care >= HealthAction::Park);
            drop(hot.await.unwrap());
            let at_rest = async {
                while !is_at_rest(sim, scene) {
                    snapshots.changed().await.unwrap();
                }
            };
            let patience = Duration::from_secs(if broken { 2 } else { 60 });
            let parked = tokio::time::timeout(patience, at_rest).await.is_ok();
            assert_eq!(parked, !broken);
            minding.abort();
        }
    }
}
