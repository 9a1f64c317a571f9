//! Parks an arm that is unattended or too hot: it is stopped, planned, proven and run like any other motion.

use std::sync::Arc;
use std::time::Duration;

use super::measurements::unread_reason;
use base::clock::NodeClock;
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use base::wording::{duration, with_statement};
use call::{Refusal, refusal};
use job::PARK;
use motion::{HealthAction, MotionState};
use permit::{ActorRank, MotionPermit, OrderVerb, StopLatch};
use plan::{self, Plan};
use scene::Scene;
use tools::{AT_REST_RAD, AttachedArm, Node, NodeJob, StopCause, catch_panic};

/// Longest motion to rest for an unattended arm; a longer one is not begun.
const PARK_MOTION_MAX: Duration = Duration::from_secs(5);

/// Time after the termination signal at which such an arm is stopped in place, if a busy machine has not brought it to
/// rest. systemd kills a service 8 s after the signal.
const PARK_DEADLINE: Duration = Duration::from_millis(6500);

/// Longest wait for the journal of a job that was stopped for parking.
const JOURNAL_WAIT_MAX: Duration = Duration::from_millis(500);

/// Outcome of parking an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkOutcome {
    /// It stands at rest, read back, with its torque on.
    AtRest,
    /// It had no torque: nothing holds it and nothing had to be moved.
    Limp,
}

/// An arm at the moment when the node was asked to shut down.
#[derive(Clone, Debug)]
pub struct ShutdownRequest {
    /// Clock that started at that moment.
    since: NodeClock,
    /// Reason not to park the arm.
    hindrance: Option<&'static str>,
    /// Number of stops requested so far. One more also prevents parking.
    deliberate_stops: u64,
}

impl ShutdownRequest {
    pub fn for_arm(seat: &AttachedArm) -> Self {
        let motion = &seat.motion;
        // Stops after this line change the count; earlier ones are latched or under way.
        let deliberate_stops = motion.deliberate_stops();
        let is_stopping = motion.stops_requested() > motion.snapshot().stops_done;
        let is_enabled = seat.permits().any_enabled(motion.clock().now());
        Self {
            since: NodeClock::real(),
            hindrance: hindrance(seat.permits().latched().as_ref())
                .or(is_held(seat).then_some("the arm is held by an operator's order"))
                .or(is_stopping.then_some(STOPPED))
                .or((!is_enabled).then_some("motion is not enabled")),
            deliberate_stops,
        }
    }

    /// Returns the remaining time.
    fn time_left(&self) -> Duration {
        PARK_DEADLINE.saturating_sub(self.since.now().since(ClockInstant::ZERO))
    }
}

/// Returns whether an arm stays energised away from its rest when the process ends. A simulated arm ends with the
/// process.
pub fn stays_up(seat: &AttachedArm) -> bool {
    seat.workcell.is_none() && seat.motion.snapshot().energised && !seat.is_at_rest()
}

/// Describes the torque of an arm that was not brought to rest, as far as it is known.
#[must_use]
pub fn torque_text(seat: &AttachedArm) -> &'static str {
    let snapshot = seat.motion.snapshot();
    let is_read = snapshot.state != MotionState::Detached;
    match is_read && unread_reason(seat, &snapshot).is_none() {
        true => "the arm stands where it is, with its torque on",
        false => "the arm does not answer and its torque may be on: switch off its supply",
    }
}

pub const UNVERIFIED: &str = "its standstill could not be verified";

const STOPPED: &str = "a stop is latched";

/// Returns whether an operator holds the arm, and has not said that it may go on.
fn is_held(seat: &AttachedArm) -> bool {
    seat.permits().orders().get(OrderVerb::Hold).is_some()
}

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
    request: &ShutdownRequest,
) -> Result<ParkOutcome, Refusal> {
    let motion = &seat.motion;
    if !motion.snapshot().energised {
        return Ok(ParkOutcome::Limp);
    }
    if let Some(reason) = request.hindrance {
        return accept_if_at_rest(seat, reason);
    }
    let ticket = seat.stop(ActorRank::Node, false, &StopCause::new("parking"));
    let stopped = motion.stopped(ticket).await;
    if !stopped.is_some_and(|report| report.verified) {
        return Err(Refusal::new(UNVERIFIED));
    }
    let seen_stops = motion.stops_requested();
    if motion.deliberate_stops() != request.deliberate_stops {
        return accept_if_at_rest(seat, "the arm was stopped while it parked");
    }
    let motion_max = PARK_MOTION_MAX.min(request.time_left());
    let parked = move_to_rest(node, seat, seen_stops, hindrance_but_own_stop, motion_max);
    let mut parked = std::pin::pin!(parked);
    if let Ok(parked) = tokio::time::timeout(request.time_left(), &mut parked).await {
        return parked;
    }
    let ticket = seat.stop(
        ActorRank::Node,
        false,
        &StopCause::new("parking took too long"),
    );
    motion.stopped(ticket).await;
    // The arm already stands; give its journal time to record that.
    drop(tokio::time::timeout(JOURNAL_WAIT_MAX, parked).await);
    let deadline = duration(PARK_DEADLINE);
    Err(refusal!(
        "the arm was not at rest within {deadline}: this machine is too busy"
    ))
}

/// Returns success for an arm that cannot be parked but already stands at rest, and the reason as an error otherwise.
fn accept_if_at_rest(seat: &AttachedArm, reason: &str) -> Result<ParkOutcome, Refusal> {
    if seat.is_at_rest() && !seat.motion.snapshot().state.is_under_way() {
        Ok(ParkOutcome::AtRest)
    } else {
        Err(Refusal::new(reason))
    }
}

/// Brings a standing arm to rest, provided that the motion takes no longer than `motion_max`, no stop came beyond
/// `seen_stops`, and `find_hindrance` finds none in the latch.
async fn move_to_rest(
    node: &Arc<Node>,
    seat: &Arc<AttachedArm>,
    seen_stops: u64,
    find_hindrance: fn(Option<&StopLatch>) -> Option<&'static str>,
    motion_max: Duration,
) -> Result<ParkOutcome, Refusal> {
    let motion = &seat.motion;
    let scene = seat.last_scene().ok_or_else(|| {
        refusal!("the arm has not moved since the node started, so no scene says where it rests")
    })?;
    let start = motion.snapshot().measured;
    let start = start.ok_or_else(|| refusal!("the arm has not been read yet"))?;
    if start.position_rad.distance_max(&scene.rest_rad) < AT_REST_RAD {
        return Ok(ParkOutcome::AtRest);
    }
    let permit = seat
        .permits()
        .ask_reset(&scene, ActorRank::Node, motion.clock().now())?;
    // Anything latched after this check revokes the permit.
    if let Some(reason) = find_hindrance(seat.permits().latched().as_ref()) {
        return Err(Refusal::new(reason));
    }
    let job = NodeJob::begin(node, seat, PARK, &scene, (seen_stops, None)).await?;
    let (state, outcome) = match plan_routes(&scene, &start, motion_max).await {
        Ok(routes) => run_first_possible(&job, &scene, &permit, &routes).await,
        Err(reason) => ("refused", Err(reason)),
    };
    let message = match &outcome {
        Ok(()) => "the arm is at rest".to_owned(),
        Err(reason) => reason.to_string(),
    };
    job.end(state, message).await;
    outcome.map(|()| ParkOutcome::AtRest)
}

/// Runs the first route that is not refused, and returns the job's final state with the outcome.
async fn run_first_possible(
    job: &NodeJob,
    scene: &Arc<Scene>,
    permit: &MotionPermit,
    routes: &[Plan],
) -> (&'static str, Result<(), Refusal>) {
    let mut outcome = ("refused", Err(refusal!("there is no way to its rest pose")));
    for route in routes {
        outcome = match job.run(scene, permit.clone(), route).await {
            Ok(()) => ("reached", Ok(())),
            Err(incomplete) => (incomplete.state, Err(incomplete.why)),
        };
        if outcome.0 != "refused" {
            break;
        }
    }
    outcome
}

/// Plans the routes to rest on a blocking thread.
async fn plan_routes(
    scene: &Arc<Scene>,
    start: &ArmMeasurement,
    motion_max: Duration,
) -> Result<Vec<Plan>, Refusal> {
    let (scene, from) = (Arc::clone(scene), start.position_rad);
    let planning = move || catch_panic("planning", || routes_to_rest(&scene, &from, motion_max));
    match tokio::task::spawn_blocking(planning).await {
        Ok(routes) => routes?,
        Err(_) => Err(refusal!("the planner's thread ended without an answer")),
    }
}

/// Returns the routes to rest that are not too long, the shorter first: through the ready pose, as after every
/// other motion, and directly.
fn routes_to_rest(
    scene: &Scene,
    from: &JointVector,
    duration_max: Duration,
) -> Result<Vec<Plan>, Refusal> {
    let (mut routes, mut reason) = (Vec::new(), refusal!("there is no way to its rest pose"));
    for poses in [&[scene.ready_rad, scene.rest_rad][..], &[scene.rest_rad]] {
        match plan::go_to(scene, from, poses, &plan::SilentObserver) {
            Ok(plan) => routes.push(plan),
            Err(error) => reason = error.into(),
        }
    }
    routes.sort_by_key(|route| route.trajectory.duration());
    let Some(shortest) = routes.first() else {
        return Err(reason);
    };
    let shortest = shortest.trajectory.duration();
    routes.retain(|route| route.trajectory.duration() <= duration_max);
    if routes.is_empty() {
        return Err(refusal!(
            "the way to its rest pose takes {} (at most {}). Next: in scene `{}`, change `poses.rest_rad` to a nearer pose or raise `limits.travel_mm_s`",
            duration(shortest),
            duration(duration_max),
            scene.name
        ));
    }
    Ok(routes)
}

/// Parks an arm whose servos are too hot, each time that happens and once its stroke is done.
pub async fn park_when_hot(node: Arc<Node>, seat: Arc<AttachedArm>) {
    let mut snapshots = seat.motion.watch();
    loop {
        let hot = snapshots
            .wait_for(|arm| {
                arm.health.care >= HealthAction::Park && arm.progress.is_none() && arm.energised
            })
            .await;
        let Ok(summary) = hot.map(|snapshot| snapshot.health.summary()) else {
            return;
        };
        match park_hot_arm(&node, &seat).await {
            Ok(_) => tracing::warn!(arm = seat.name, "{summary}; the arm is parked"),
            Err(error) => tracing::error!(
                arm = seat.name,
                "{}",
                with_statement(
                    format!("{summary}; not parked: {error}"),
                    torque_text(&seat)
                )
            ),
        }
        let cooled = snapshots.wait_for(|snapshot| snapshot.health.care < HealthAction::Park);
        if cooled.await.is_err() {
            return;
        }
    }
}

/// Brings an arm that is too hot to rest. An arm that was stopped or has a fault is left to a person.
async fn park_hot_arm(node: &Arc<Node>, seat: &Arc<AttachedArm>) -> Result<ParkOutcome, Refusal> {
    let seen_stops = seat.motion.stops_requested();
    // The end of the node parks it, or leaves it.
    if node.is_ending() {
        return Err(refusal!("the node is shutting down"));
    }
    match hindrance_but_heat(seat.permits().latched().as_ref()) {
        Some(hindrance) => Err(Refusal::new(hindrance)),
        None => move_to_rest(node, seat, seen_stops, hindrance_but_heat, Duration::MAX).await,
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
    pub(crate) struct TestNode {
        pub(crate) node: Arc<Node>,
        pub(crate) seat: Arc<AttachedArm>,
        pub(crate) sim: ArmSimulator,
        pub(crate) scene: Arc<Scene>,
        _folder: tempfile::TempDir,
    }

    pub(crate) fn test_node(clock: NodeClock) -> TestNode {
        test_node_in("default", clock)
    }

    pub(crate) fn test_node_in(scene: &str, clock: NodeClock) -> TestNode {
        let scene = SceneLibrary::new(None).scene(scene, None).unwrap();
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
        TestNode {
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

    /// Moves the arm to its ready pose.
    async fn move_to_ready(seat: &AttachedArm, scene: &Arc<Scene>) {
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
    async fn parks_after(between: impl AsyncFnOnce(&AttachedArm)) -> bool {
        let bench = test_node(NodeClock::simulated());
        move_to_ready(&bench.seat, &bench.scene).await;
        let request = ShutdownRequest::for_arm(&bench.seat);
        between(&bench.seat).await;
        let parked = park(&bench.node, &bench.seat, &request).await;
        let at_rest = is_at_rest(&bench.sim, &bench.scene);
        assert_eq!(parked.is_ok(), at_rest, "{parked:?}");
        let last_job = bench.node.job_store.last_moved(bench.seat.key());
        let last_job = last_job.map(|past| (past.tool, past.state));
        let job = ("park".to_owned(), "reached".to_owned());
        assert_eq!(last_job, at_rest.then_some(job));
        at_rest
    }

    #[tokio::test]
    async fn whoever_stops_an_arm_that_is_left_is_heard() {
        assert!(parks_after(async |_: &AttachedArm| {}).await);
        for by in [ActorRank::Operator, ActorRank::Planner] {
            let stop = async move |seat: &AttachedArm| {
                let ticket = seat.motion.stop(by, false);
                assert!(seat.motion.stopped(ticket).await.unwrap().verified);
            };
            assert!(!parks_after(stop).await, "{by:?}");
        }
        // A stop that is still under way when parking requests its own counts as well.
        let unverified_stop = async |seat: &AttachedArm| {
            seat.motion.stop(ActorRank::Operator, false);
        };
        assert!(!parks_after(unverified_stop).await);
        let fault =
            async |seat: &AttachedArm| seat.permits().latch(StopLatch::Fault("broken".to_owned()));
        assert!(!parks_after(fault).await);
        // The node's own stops, and callers disconnected by the shutdown, do not prevent parking.
        let own_stops = async |seat: &AttachedArm| {
            seat.motion.stop(ActorRank::Node, false);
            let ticket = seat.motion.abandon();
            assert!(seat.motion.stopped(ticket).await.unwrap().verified);
        };
        assert!(parks_after(own_stops).await);
    }

    #[tokio::test]
    async fn what_was_stopped_before_stays_where_it_is() {
        let TestNode {
            node,
            seat,
            sim,
            scene,
            ..
        } = test_node(NodeClock::simulated());
        move_to_ready(&seat, &scene).await;
        seat.motion.stop(ActorRank::Planner, false);
        let request = ShutdownRequest::for_arm(&seat);
        assert!(park(&node, &seat, &request).await.is_err());
        assert!(!is_at_rest(&sim, &scene));
    }

    #[tokio::test]
    async fn what_was_stopped_at_rest_is_where_it_belongs() {
        let bench = test_node(NodeClock::simulated());
        let (node, seat) = (&bench.node, &bench.seat);
        move_to_ready(seat, &bench.scene).await;
        let request = ShutdownRequest::for_arm(seat);
        assert_eq!(park(node, seat, &request).await, Ok(ParkOutcome::AtRest));
        seat.motion.stop(ActorRank::Operator, false);
        let request = ShutdownRequest::for_arm(seat);
        assert!(request.hindrance.is_some());
        assert_eq!(park(node, seat, &request).await, Ok(ParkOutcome::AtRest));
    }

    #[tokio::test]
    async fn time_elapsed_since_the_signal_counts_toward_the_deadline() {
        let bench = test_node(NodeClock::simulated());
        move_to_ready(&bench.seat, &bench.scene).await;
        let since = NodeClock::simulated();
        since.jump_to(ClockInstant::ZERO.after(PARK_DEADLINE));
        let request = ShutdownRequest {
            since,
            ..ShutdownRequest::for_arm(&bench.seat)
        };
        let parked = park(&bench.node, &bench.seat, &request).await;
        let error = parked.unwrap_err().to_string();
        assert!(error.contains("within 6.5 s"), "{error}");
        assert!(!is_at_rest(&bench.sim, &bench.scene));
    }

    /// A hot arm goes to rest by itself; one with an uncleared fault does not.
    #[tokio::test]
    async fn heat_parks_no_arm_that_is_broken() {
        for has_fault in [false, true] {
            let bench = test_node(NodeClock::real());
            let (seat, sim, scene) = (&bench.seat, &bench.sim, &bench.scene);
            move_to_ready(seat, scene).await;
            if has_fault {
                let fault = "an obstacle held a joint".to_owned();
                seat.permits().latch(StopLatch::Fault(fault));
            }
            let watcher =
                base::task::spawn(park_when_hot(Arc::clone(&bench.node), Arc::clone(seat)));
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
            let time_limit = Duration::from_secs(if has_fault { 2 } else { 60 });
            let parked = tokio::time::timeout(time_limit, at_rest).await.is_ok();
            assert_eq!(parked, !has_fault);
            watcher.abort();
        }
    }
}
