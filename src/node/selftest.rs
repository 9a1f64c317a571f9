//! `selftest`: measures by small checked motions how the attached arm stops, reaches its poses and follows its paths.

mod measured;
mod performance;
mod test_path;
mod visits;
mod wake_latency;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::operator_verb::VerbReply;
use base::disk;
use base::plain_file;
use base::units::{ClockInstant, JointVector};
use call::{ArrivalStamp, Refusal, refusal};
use measured::{MeasuredStop, StopMeasurements};
use performance::TipPerformance;
use permit::{ActorRank, MotionPermit, StopLatch};
use plan::PlanError;
use scene::Scene;
use test_path::SelfTestPath;
use tools::{AttachedArm, IncompleteMotion, Node, NodeJob, StopCause, catch_panic};
use visits::RepeatedVisits;
use wake_latency::WakeupProbe;

const OTHER_STOP: &str = "another caller stopped it";

/// Name of the result's file in the state folder.
const RESULT_FILE: &str = "selftest.json";

/// Number of stops of one self-test.
const ROUNDS: RangeInclusive<u32> = 1..=1000;

/// Measures every arm of a node, and stores the result.
pub(crate) async fn run(
    node: &Arc<Node>,
    arrived: &ArrivalStamp,
    scene: Option<&str>,
    rounds: u32,
) -> VerbReply {
    if !ROUNDS.contains(&rounds) {
        let (least, most) = (ROUNDS.start(), ROUNDS.end());
        return VerbReply::failed(format!(
            "{rounds} stops were requested; {least} to {most} are possible. Nothing moved"
        ));
    }
    let mut lines = Vec::new();
    let mut arms = Vec::new();
    let mut is_good = true;
    let tested = scene.and_then(|name| node.scenes.scene(name, None).ok());
    let is_drawn = |scene: &Arc<Scene>| !node.arms_of(scene).is_empty();
    let tested = tested.filter(is_drawn);
    for seat in &node.arms {
        let draws = |scene: &Arc<Scene>| {
            let mut arms = node.arms_of(scene).into_iter();
            arms.any(|arm| Arc::ptr_eq(arm, seat))
        };
        if let Some(scene) = tested.as_ref().filter(|scene| !draws(scene)) {
            let (name, model) = (&seat.name, &seat.motion.arm().file.name);
            let scene = &scene.name;
            lines.push(format!(
                "{name} is not tested: scene `{scene}` is not for an arm of model {model}"
            ));
            continue;
        }
        match measure_arm(node, seat, arrived, scene, rounds).await {
            Ok(measured) => {
                is_good &= measured.is_good();
                lines.push(measured.table(&title(node, seat)));
                arms.push(measured.card(&seat.name));
            }
            Err(error) => {
                is_good = false;
                let error = node.commands_for_arm(seat, &error.to_string());
                lines.push(format!("{}: {error}", seat.name));
            }
        }
    }
    if !arms.is_empty() {
        let result = json!({ "arms": arms });
        if let Err(error) = disk::put(&result_file(node), &result.to_string()) {
            lines.push(format!("the result could not be saved: {error}"));
        }
        node.tested(result);
    }
    VerbReply {
        done: is_good,
        ..VerbReply::done(lines.join("\n"))
    }
}

/// Returns an arm's title, with its name where the node has several.
fn title(node: &Node, seat: &AttachedArm) -> String {
    match node.has_several_arms() {
        true => format!("{} ({})", seat.name, seat.title()),
        false => seat.title(),
    }
}

/// Reads the result that an earlier process stored.
pub(crate) fn recall(node: &Node) {
    let text = plain_file::read(result_file(node)).unwrap_or_default();
    if let Ok(result) = serde_json::from_slice::<Value>(&text) {
        node.tested(result);
    }
}

fn result_file(node: &Node) -> PathBuf {
    node.state.join(RESULT_FILE)
}

/// Measures one arm.
async fn measure_arm(
    node: &Arc<Node>,
    seat: &Arc<AttachedArm>,
    arrived: &ArrivalStamp,
    scene: Option<&str>,
    rounds: u32,
) -> Result<StopMeasurements, Refusal> {
    let seen_stops = node.stops_before(arrived, seat).stops;
    let scene = match (scene, seat.last_scene()) {
        (Some(name), _) => node.scene(seat, name, None)?,
        // Read again: the scene that the arm last moved in may have been recalibrated since.
        (None, Some(last)) => node.scene(seat, &last.name, last.overlay.as_deref())?,
        (None, None) => {
            return Err(refusal!(
                "the test needs a scene to move in. Next: add --scene NAME"
            ));
        }
    };
    if seat.motion.snapshot().state.is_under_way() {
        return Err(refusal!(
            "the arm moves or is held. Next: wait for the end, or `steadyhand stop`"
        ));
    }
    seat.permits().ask(&scene, seat.motion.clock().now())?;
    let since = (seen_stops, Some(arrived));
    let mut job = NodeJob::begin(node, seat, "selftest", &scene, since).await?;
    let measured = measure_stops(&mut job, seat, &scene, seen_stops, rounds).await;
    let (state, message) = match &measured {
        Ok(measured) => (
            "stopped",
            format!("stopped {} times", measured.standstill_ms.len()),
        ),
        Err(error) => ("faulted", error.to_string()),
    };
    job.end(state, message).await;
    measured
}

/// Measures poses and paths, then `rounds` stops.
async fn measure_stops(
    job: &mut NodeJob,
    seat: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
    mut seen_stops: u64,
    rounds: u32,
) -> Result<StopMeasurements, Refusal> {
    let mut measured = StopMeasurements::with(measure_performance(job, seat, scene).await?);
    let mut probe = WakeupProbe::start(seat.motion.clock())?;
    for _ in 0..rounds {
        job.has_seen(seen_stops);
        measured.add(&measure_stop(job, seat, scene, &mut seen_stops, &mut probe).await?);
    }
    Ok(measured)
}

/// Asks for a permit, and plans from where the arm stands.
async fn permit_and_plan<T: Send + 'static>(
    seat: &AttachedArm,
    scene: &Arc<Scene>,
    plan: impl FnOnce(&Scene, &JointVector) -> Result<T, PlanError> + Send + 'static,
) -> Result<(MotionPermit, T), Refusal> {
    let motion = &seat.motion;
    let permit = seat.permits().ask(scene, motion.clock().now())?;
    let start = motion.snapshot().measured;
    let start = start.ok_or_else(|| refusal!("the arm has not been read yet"))?;
    let from = start.position_rad;
    let scene = Arc::clone(scene);
    let planning = move || catch_panic("planning", || plan(&scene, &from));
    let planned = tokio::task::spawn_blocking(planning).await;
    let planned =
        planned.map_err(|_| refusal!("the planner's thread ended without an answer"))???;
    Ok((permit, planned))
}

/// Visits one point from all sides, and judges the poses and paths. Returns `None` if there were too few readings.
async fn measure_performance(
    job: &NodeJob,
    seat: &AttachedArm,
    scene: &Arc<Scene>,
) -> Result<Option<TipPerformance>, Refusal> {
    let (permit, visits) = permit_and_plan(seat, scene, RepeatedVisits::plan).await?;
    let mut ticks = Vec::new();
    let run = job.run(scene, permit, &visits.plan);
    let ended = tokio::select! {
        ended = run => ended,
        () = visits.watch(&seat.motion, &mut ticks) => return Err(refusal!("the arm's thread has ended")),
    };
    match ended {
        Ok(()) => Ok(visits.judge(scene, &ticks)),
        Err(IncompleteMotion { stop: Some(_), .. }) => Err(Refusal::new(OTHER_STOP)),
        Err(incomplete) => Err(incomplete.why),
    }
}

/// Measures one stop: travels over the sheet as fast as allowed, stops in the middle, and releases. Fails if any other stop
/// comes beyond `seen_stops`.
async fn measure_stop(
    job: &NodeJob,
    seat: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
    seen_stops: &mut u64,
    probe: &mut WakeupProbe,
) -> Result<MeasuredStop, Refusal> {
    let motion = &seat.motion;
    let clock = motion.clock();
    let (permit, path) = permit_and_plan(seat, scene, SelfTestPath::plan).await?;
    let mut run = std::pin::pin!(job.run(scene, permit, &path.plan));
    let mut snapshots = motion.watch();
    let half = snapshots.wait_for(|arm| arm.progress.is_some_and(|at| at.sample >= path.stop_at));
    tokio::select! {
        _ = half => {}
        ended = &mut run => return Err(missed_stop(ended)),
    }
    let ticket = seat.stop(ActorRank::Node, false, &StopCause::new("selftest"));
    let idle_ms = probe.wake_ms();
    // The journal records the stop before the arm is released.
    let report = match run.await {
        Err(IncompleteMotion {
            stop: Some(report), ..
        }) => report,
        ended => return Err(missed_stop(ended)),
    };
    // Any other stop was requested for a reason, even one by the node itself.
    if ticket != *seen_stops + 1 || motion.stops_requested() != ticket {
        return Err(Refusal::new(OTHER_STOP));
    }
    *seen_stops = ticket;
    release(seat, scene, clock.now())?;
    Ok(MeasuredStop {
        report,
        mm_s: path.mm_s,
        idle_ms,
    })
}

/// Returns the reason why a motion ended without the test's own stop.
fn missed_stop(ended: Result<(), IncompleteMotion>) -> Refusal {
    match ended {
        Ok(()) => refusal!("the motion ended before it was stopped"),
        Err(IncompleteMotion { stop: Some(_), .. }) => Refusal::new(OTHER_STOP),
        Err(incomplete) => incomplete.why,
    }
}

/// Releases the latch of the test's own stop, and no other.
fn release(seat: &AttachedArm, scene: &Scene, now: ClockInstant) -> Result<(), Refusal> {
    let permits = seat.permits();
    if permits.latched() != Some(StopLatch::Stopped(ActorRank::Node)) {
        return Err(Refusal::new(OTHER_STOP));
    }
    let permit = permits.ask_reset(scene, ActorRank::Node, now)?;
    if permits.unlatch(&permit) {
        Ok(())
    } else {
        Err(Refusal::new(OTHER_STOP))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::parking::tests::{TestNode, test_node, test_node_in};
    use base::clock::NodeClock;

    /// If the node stops for another reason during the test's own stop, the other stop counts.
    #[tokio::test(flavor = "multi_thread")]
    async fn another_stop_of_the_node_ends_a_self_test() {
        let bench = test_node(NodeClock::simulated_at(4));
        let TestNode {
            node,
            seat,
            sim,
            scene,
            ..
        } = &bench;
        let seen = seat.motion.stops_requested();
        let other = Arc::clone(seat);
        let other_stop = std::thread::spawn(move || {
            while other.motion.stops_requested() == seen {
                std::thread::yield_now();
            }
            other.motion.stop(ActorRank::Node, false)
        });
        let mut job = NodeJob::begin(node, seat, "selftest", scene, (seen, None))
            .await
            .unwrap();
        let result = measure_stops(&mut job, seat, scene, seen, 2).await;
        let ticket = other_stop.join().unwrap();
        assert_eq!(result.unwrap_err(), Refusal::new(OTHER_STOP));
        seat.motion.stopped(ticket).await.unwrap();
        assert_eq!(
            seat.permits().latched(),
            Some(StopLatch::Stopped(ActorRank::Node))
        );
        let stands = sim.true_joints();
        assert!(measure_stops(&mut job, seat, scene, seen, 1).await.is_err());
        job.end("stopped", "over".to_owned()).await;
        assert!(sim.true_joints().distance_max(&stands) < 1e-3);
    }

    #[tokio::test]
    async fn a_self_test_ends_its_own_stop_and_goes_on() {
        let TestNode { node, seat, .. } = &test_node(NodeClock::simulated_at(4));
        let measured = measure_arm(node, seat, &node.stamp_arrival(), None, 2)
            .await
            .unwrap();
        let tip = measured.performance.as_ref().unwrap();
        assert_eq!((tip.visits, tip.joints.len()), (8, 5));
        assert!(tip.repeatability_mm < 0.5 && tip.path_mm < 2.0, "{tip:?}");
        assert!(
            tip.joints.iter().all(|joint| joint.gains().is_none()),
            "{tip:?}"
        );
        assert_eq!((measured.standstill_ms.len(), measured.unverified), (2, 0));
        assert!(measured.mm_s > 80.0, "{} mm/s", measured.mm_s);
        // By the arm's own clock.
        let longest_ms = measured.standstill_ms.iter().copied().fold(0.0, f64::max);
        assert!(longest_ms <= 300.0, "{:?}", measured.standstill_ms);
        assert_eq!(seat.permits().latched(), None);
        let last_job = node.job_store.last_moved(seat.key()).unwrap();
        assert_eq!(
            (last_job.tool.as_str(), last_job.state.as_str()),
            ("selftest", "stopped")
        );
    }

    /// An arm whose joints turn fast takes long to brake: what its file allows them must leave it the time.
    #[tokio::test]
    async fn every_shipped_arm_stands_within_the_bound() {
        for scene in [
            "so100",
            "koch",
            "openmanipulator_x",
            "widowx",
            "vx300",
            "omx",
            "roarm_m2",
            "roarm_m3",
        ] {
            let TestNode { node, seat, .. } = &test_node_in(scene, NodeClock::simulated_at(4));
            let measured = measure_arm(node, seat, &node.stamp_arrival(), None, 3)
                .await
                .unwrap();
            let longest_ms = measured.standstill_ms.iter().copied().fold(0.0, f64::max);
            assert!(longest_ms <= 300.0, "{scene}: {:?}", measured.standstill_ms);
            assert_eq!(measured.unverified, 0, "{scene}");
        }
    }
}
