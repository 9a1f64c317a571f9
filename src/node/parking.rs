//! Parks an arm that is no longer watched or is too hot: a stop, a plan, a proof, a run, like any other motion.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Clock;
use base::units::{Instant, Joints, Measured};
use base::wording::duration;
use motion::Care;
use permit::{Latch, Permit, Who};
use plan::{self, Plan};
use scene::Scene;
use tools::{AT_REST_RAD, Alone, Node, Seat, catch_panic};

/// Longest motion to rest for an unwatched arm; a longer one is not begun.
const PARK: Duration = Duration::from_secs(5);

/// Time after the node's end signal at which such an arm is stopped in place, if a busy machine has not brought it to
/// rest. systemd ends a service 8 s after the signal.
const PATIENCE: Duration = Duration::from_millis(6500);

/// Longest wait for the journal of a job that was stopped for parking.
const WRITTEN: Duration = Duration::from_millis(500);

/// Outcome of parking an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// It stands at rest, read back, with its torque on.
    AtRest,
    /// It had no torque: nothing holds it and nothing had to be moved.
    Limp,
}

/// An arm at the moment when the node was told to end.
#[derive(Clone, Debug)]
pub struct Leave {
    /// Shows how long ago that was.
    since: Clock,
    /// Reason not to park the arm.
    hindrance: Option<&'static str>,
    /// Number of stops requested so far. One more also prevents parking.
    stops_said: u64,
}

impl Leave {
    pub fn of(seat: &Seat) -> Self {
        let motion = &seat.motion;
        // A stop that is said from here on is counted; one from before is latched or under way.
        let stops_said = motion.stops_said();
        let is_stopping = motion.stops_asked() > motion.snapshot().stops_done;
        let is_enabled = seat.permits().any(motion.clock().now());
        Self {
            since: Clock::real(),
            hindrance: hindrance(seat.permits().latched().as_ref())
                .or(is_stopping.then_some(STOPPED))
                .or((!is_enabled).then_some("motion is not enabled")),
            stops_said,
        }
    }

    /// Returns the remaining time.
    fn left(&self) -> Duration {
        PATIENCE.saturating_sub(self.since.now().since(Instant::ZERO))
    }
}

/// Returns whether an arm stays energised away from its rest when the process ends. A simulated arm ends with the
/// process.
pub fn stays_up(seat: &Seat) -> bool {
    seat.studio.is_none() && seat.motion.snapshot().energised && !seat.is_at_rest()
}

pub const UNVERIFIED: &str = "its standstill could not be verified";

const STOPPED: &str = "a stop is latched";

fn hindrance(latched: Option<&Latch>) -> Option<&'static str> {
    match latched {
        None => None,
        Some(Latch::Emergency(_)) => Some("an emergency stop is latched"),
        Some(Latch::Stopped(_)) => Some(STOPPED),
        Some(Latch::Fault(_) | Latch::Hot(_)) => Some("a fault is latched"),
    }
}

/// Returns the hindrance in a latch, except the parking's own stop or a departed client's.
fn own(latched: Option<&Latch>) -> Option<&'static str> {
    match latched {
        Some(Latch::Stopped(Who::Node | Who::Planner)) => None,
        other => hindrance(other),
    }
}

/// Returns the hindrance in a latch, except heat, for parking an arm that is too hot.
fn heat(latched: Option<&Latch>) -> Option<&'static str> {
    match latched {
        Some(Latch::Hot(_)) => None,
        other => hindrance(other),
    }
}

/// Stops an arm with a lift, then brings it to rest, unless a hindrance existed at the signal or a stop came since.
///
/// # Errors
/// The reason why the arm stands in place, energised.
pub async fn park(node: &Arc<Node>, seat: &Arc<Seat>, leave: &Leave) -> Result<Parked, String> {
    let motion = &seat.motion;
    if !motion.snapshot().energised {
        return Ok(Parked::Limp);
    }
    if let Some(why) = leave.hindrance {
        return unless_at_rest(seat, why);
    }
    let ticket = motion.stop(Who::Node, false);
    let stopped = motion.stopped(ticket).await;
    if !stopped.is_some_and(|report| report.verified) {
        return Err(UNVERIFIED.to_owned());
    }
    let seen_stops = motion.stops_asked();
    if motion.stops_said() != leave.stops_said {
        return unless_at_rest(seat, "it was stopped meanwhile");
    }
    let longest = PARK.min(leave.left());
    let mut parked = std::pin::pin!(to_rest(node, seat, seen_stops, own, longest));
    if let Ok(parked) = tokio::time::timeout(leave.left(), &mut parked).await {
        return parked;
    }
    let ticket = motion.stop(Who::Node, false);
    motion.stopped(ticket).await;
    // Its journal shall say so; the arm stands already.
    drop(tokio::time::timeout(WRITTEN, parked).await);
    Err(format!(
        "it did not come to rest within {}: this machine is too busy",
        duration(PATIENCE)
    ))
}

/// An arm that is not brought anywhere may stand where it belongs.
fn unless_at_rest(seat: &Seat, why: &str) -> Result<Parked, String> {
    if seat.is_at_rest() && !seat.motion.snapshot().state.is_under_way() {
        Ok(Parked::AtRest)
    } else {
        Err(why.to_owned())
    }
}

/// Brings a standing arm to rest, provided that the motion takes no longer than `longest`, no stop came beyond
/// `seen_stops`, and `hinders` finds no latch.
async fn to_rest(
    node: &Arc<Node>,
    seat: &Arc<Seat>,
    seen_stops: u64,
    hinders: fn(Option<&Latch>) -> Option<&'static str>,
    longest: Duration,
) -> Result<Parked, String> {
    let motion = &seat.motion;
    let scene = seat
        .last_scene()
        .ok_or("no scene says where it rests: it has not moved since the node started")?;
    let start = motion
        .snapshot()
        .measured
        .ok_or("it has not been read yet")?;
    if start.position_rad.distance_max(&scene.rest_rad) < AT_REST_RAD {
        return Ok(Parked::AtRest);
    }
    let permit = seat
        .permits()
        .ask_reset(&scene, Who::Node, motion.clock().now())
        .map_err(|denied| denied.to_string())?;
    // What is latched later than this takes the permit back.
    if let Some(why) = hinders(seat.permits().latched().as_ref()) {
        return Err(why.to_owned());
    }
    let job = Alone::begin(node, seat, "park", &scene, seen_stops).await?;
    let (state, gone) = match planned(&scene, &start, longest).await {
        Ok(ways) => go(&job, &scene, &permit, &ways).await,
        Err(why) => ("refused", Err(why)),
    };
    let words = match &gone {
        Ok(()) => "the arm is at rest".to_owned(),
        Err(why) => why.clone(),
    };
    job.end(state, words).await;
    gone.map(|()| Parked::AtRest)
}

/// The first of the ways to rest that may be gone.
async fn go(
    job: &Alone,
    scene: &Arc<Scene>,
    permit: &Permit,
    ways: &[Plan],
) -> (&'static str, Result<(), String>) {
    let mut found = (
        "refused",
        Err("there is no way to its rest pose".to_owned()),
    );
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
    start: &Measured,
    longest: Duration,
) -> Result<Vec<Plan>, String> {
    let (scene, from) = (Arc::clone(scene), start.position_rad);
    let ways = move || catch_panic("planning", || ways(&scene, &from, longest));
    match tokio::task::spawn_blocking(ways).await {
        Ok(planned) => planned.map_err(|error| error.to_string())?,
        Err(_) => Err("the planner's thread ended without an answer".to_owned()),
    }
}

/// The ways to rest that are not too long, the shorter first: over the ready pose, as after every
/// other motion, and straight there.
fn ways(scene: &Scene, from: &Joints, longest: Duration) -> Result<Vec<Plan>, String> {
    let (mut ways, mut why) = (Vec::new(), String::new());
    for poses in [&[scene.ready_rad, scene.rest_rad][..], &[scene.rest_rad]] {
        match plan::go_to(scene, from, poses, &plan::Patient) {
            Ok(plan) => ways.push(plan),
            Err(error) => why = error.to_string(),
        }
    }
    ways.sort_by_key(|way| way.trajectory.duration());
    let shortest = ways.first().ok_or(why)?.trajectory.duration();
    ways.retain(|way| way.trajectory.duration() <= longest);
    if ways.is_empty() {
        return Err(format!(
            "the way to its rest pose takes {}, and {} is the longest: bring it nearer (`poses.rest_rad`) or raise `limits.travel_mm_s` in scene `{}`",
            duration(shortest),
            duration(longest),
            scene.name
        ));
    }
    Ok(ways)
}

/// Parks an arm whose servos are too hot, once its stroke is done, as often as that happens.
pub async fn mind_heat(node: Arc<Node>, seat: Arc<Seat>) {
    let mut snapshots = seat.motion.watch();
    loop {
        let hot = snapshots
            .wait_for(|seen| {
                seen.health.care >= Care::Park && seen.progress.is_none() && seen.energised
            })
            .await;
        let Ok(why) = hot.map(|seen| seen.health.line()) else {
            return;
        };
        match cooler(&node, &seat).await {
            Ok(_) => tracing::warn!(arm = seat.name, "{why}; the arm is parked"),
            Err(error) => tracing::error!(
                arm = seat.name,
                "{why}; it is not parked: {error}; the arm is still energised"
            ),
        }
        let cooled = snapshots.wait_for(|seen| seen.health.care < Care::Park);
        if cooled.await.is_err() {
            return;
        }
    }
}

/// Brings an arm to rest that is too hot; one that was stopped, or is broken, is a person's.
async fn cooler(node: &Arc<Node>, seat: &Arc<Seat>) -> Result<Parked, String> {
    let seen_stops = seat.motion.stops_asked();
    match heat(seat.permits().latched().as_ref()) {
        Some(why) => Err(why.to_owned()),
        None => to_rest(node, seat, seen_stops, heat, Duration::MAX).await,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
pub mod tests {
    use super::*;
    use config::NodeFile;
    use link::memory::MemoryLink;
    use link::{Link, LinkError};
    use motion::{Motion, Opener, Outcome};
    use permit::Permits;
    use scene::Library;
    use sim::{Fault, Simulator};
    use tools::State as NodeState;

    /// A node with a simulated arm in the default scene.
    pub(crate) struct House {
        pub(crate) node: Arc<Node>,
        pub(crate) seat: Arc<Seat>,
        pub(crate) sim: Simulator,
        pub(crate) scene: Arc<Scene>,
        _folder: tempfile::TempDir,
    }

    pub(crate) fn house(clock: Clock) -> House {
        let scene = Library::new(None).scene("default", None).unwrap();
        let sim = Simulator::new(&scene.arm, &scene.rest_rad);
        let device = sim.clone();
        let open: Opener = Box::new(move |clock| {
            let link = MemoryLink::new(device.clone(), clock, "bench").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn Link>)
        });
        let permits = Arc::new(Permits::everything());
        let motion = Motion::start(Arc::clone(&scene.arm), clock, permits, open).unwrap();
        let seat = Arc::new(Seat::new("arm", motion, None));
        seat.moved_in(&scene);
        let folder = tempfile::tempdir().unwrap();
        let file = NodeFile::default();
        let state = NodeState::open(folder.path().to_owned(), &file).unwrap();
        let seats = vec![Arc::clone(&seat)];
        let output = folder.path().to_owned();
        House {
            node: Arc::new(Node::new(file, Library::new(None), seats, output, state)),
            seat,
            sim,
            scene,
            _folder: folder,
        }
    }

    /// At its ready pose.
    async fn ready(seat: &Seat, scene: &Arc<Scene>) {
        let motion = &seat.motion;
        let start = motion.snapshot().measured.unwrap();
        let pose = [scene.ready_rad];
        let plan = plan::go_to(scene, &start.position_rad, &pose, &plan::Patient).unwrap();
        let permit = seat.permits().ask(scene, Instant::ZERO).unwrap();
        let now = motion.clock().now();
        let proof = gate::check(scene, permit, &start, now, plan.trajectory).unwrap();
        let outcome = motion.run(proof, motion.stops_asked()).await.unwrap();
        assert!(matches!(outcome, Outcome::Reached { .. }), "{outcome:?}");
    }

    fn is_at_rest(sim: &Simulator, scene: &Scene) -> bool {
        sim.truth().distance_max(&scene.rest_rad) < AT_REST_RAD
    }

    /// Runs `between` after the signal and before the motion to rest. Returns whether the arm is parked.
    async fn parks(between: impl AsyncFnOnce(&Seat)) -> bool {
        let house = house(Clock::simulated());
        ready(&house.seat, &house.scene).await;
        let leave = Leave::of(&house.seat);
        between(&house.seat).await;
        let parked = park(&house.node, &house.seat, &leave).await;
        let at_rest = is_at_rest(&house.sim, &house.scene);
        assert_eq!(parked.is_ok(), at_rest, "{parked:?}");
        let told = house.node.book.last_moved("arm");
        let told = told.map(|past| (past.tool, past.state));
        let job = ("park".to_owned(), "reached".to_owned());
        assert_eq!(told, at_rest.then_some(job));
        at_rest
    }

    #[tokio::test]
    async fn whoever_stops_an_arm_that_is_left_is_heard() {
        assert!(parks(async |_: &Seat| {}).await);
        for by in [Who::Operator, Who::Planner] {
            let stops = async move |seat: &Seat| {
                let ticket = seat.motion.stop(by, false);
                assert!(seat.motion.stopped(ticket).await.unwrap().verified);
            };
            assert!(!parks(stops).await, "{by:?}");
        }
        // One that is under way when the parking's own stop comes is the same stop.
        let at_once = async |seat: &Seat| {
            seat.motion.stop(Who::Operator, false);
        };
        assert!(!parks(at_once).await);
        let breaks = async |seat: &Seat| seat.permits().latch(Latch::Fault("broken".to_owned()));
        assert!(!parks(breaks).await);
        // The node's own stops, and callers that are cut off because it ends, are no reason.
        let ends = async |seat: &Seat| {
            seat.motion.stop(Who::Node, false);
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
        } = house(Clock::simulated());
        ready(&seat, &scene).await;
        seat.motion.stop(Who::Planner, false);
        let leave = Leave::of(&seat);
        assert!(park(&node, &seat, &leave).await.is_err());
        assert!(!is_at_rest(&sim, &scene));
    }

    #[tokio::test]
    async fn what_was_stopped_at_rest_is_where_it_belongs() {
        let house = house(Clock::simulated());
        let (node, seat) = (&house.node, &house.seat);
        ready(seat, &house.scene).await;
        let leave = Leave::of(seat);
        assert_eq!(park(node, seat, &leave).await, Ok(Parked::AtRest));
        seat.motion.stop(Who::Operator, false);
        let leave = Leave::of(seat);
        assert!(leave.hindrance.is_some());
        assert_eq!(park(node, seat, &leave).await, Ok(Parked::AtRest));
    }

    #[tokio::test]
    async fn time_that_has_gone_since_the_signal_is_not_spent_again() {
        let house = house(Clock::simulated());
        ready(&house.seat, &house.scene).await;
        let since = Clock::simulated();
        since.jump_to(Instant::ZERO.after(PATIENCE));
        let leave = Leave {
            since,
            ..Leave::of(&house.seat)
        };
        let parked = park(&house.node, &house.seat, &leave).await;
        let why = parked.unwrap_err();
        assert!(why.contains("within 6.5 s"), "{why}");
        assert!(!is_at_rest(&house.sim, &house.scene));
    }

    /// A hot arm goes to rest by itself; one with an uncleared fault does not.
    #[tokio::test]
    async fn heat_parks_no_arm_that_is_broken() {
        for broken in [false, true] {
            let house = house(Clock::real());
            let (seat, sim, scene) = (&house.seat, &house.sim, &house.scene);
            ready(seat, scene).await;
            if broken {
                let fault = "an obstacle held a joint".to_owned();
                seat.permits().latch(Latch::Fault(fault));
            }
            let minding = tokio::spawn(mind_heat(Arc::clone(&house.node), Arc::clone(seat)));
            for id in 1..=6 {
                let temperature_c = 69.0;
                sim.break_it(Fault::Heat { id, temperature_c });
            }
            let mut snapshots = seat.motion.watch();
            let hot = snapshots.wait_for(|seen| seen.health.care >= Care::Park);
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
