//! `selftest`: how the arm that is attached really stops, comes to its poses and keeps to its paths, measured by small checked
//! motions.

mod measured;
mod performance;
mod visits;
mod wake_latency;
mod way;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::operator_verb::VerbReply;
use base::disk;
use base::units::{ClockInstant, JointVector};
use call::{Refusal, refusal};
use measured::{MeasuredStop, StopMeasurements};
use performance::TipPerformance;
use permit::{ActorRank, MotionPermit, StopLatch};
use plan::PlanError;
use scene::Scene;
use tools::{AttachedArm, IncompleteMotion, Node, NodeJob, catch_panic};
use visits::RepeatedVisits;
use wake_latency::WakeupProbe;
use way::SelfTestPath;

const SOMEBODY_ELSE: &str = "somebody else stopped it";

/// The file in the state folder.
const FILE: &str = "selftest.json";

/// Measures every arm of a node, and keeps what was found.
pub(crate) async fn run(node: &Arc<Node>, scene: Option<&str>, rounds: u32) -> VerbReply {
    let mut lines = Vec::new();
    let mut arms = Vec::new();
    let mut good = true;
    for seat in &node.arms {
        match arm(node, seat, scene, rounds).await {
            Ok(measured) => {
                good &= measured.is_good();
                lines.push(measured.table(&seat.title()));
                arms.push(measured.card(&seat.name));
            }
            Err(why) => {
                good = false;
                lines.push(format!("{}: {why}", seat.name));
            }
        }
    }
    if !arms.is_empty() {
        let result = json!({ "arms": arms });
        if let Err(error) = disk::put(&file(node), &result.to_string()) {
            lines.push(format!("the result is not kept: {error}"));
        }
        node.tested(result);
    }
    VerbReply {
        done: good,
        ..VerbReply::done(lines.join("\n"))
    }
}

/// Reads what an earlier node measured.
pub(crate) fn recall(node: &Node) {
    let text = std::fs::read(file(node)).unwrap_or_default();
    if let Ok(result) = serde_json::from_slice::<Value>(&text) {
        node.tested(result);
    }
}

fn file(node: &Node) -> PathBuf {
    node.state.join(FILE)
}

async fn arm(
    node: &Arc<Node>,
    seat: &Arc<AttachedArm>,
    scene: Option<&str>,
    rounds: u32,
) -> Result<StopMeasurements, Refusal> {
    let scene = match (scene, seat.last_scene()) {
        (Some(name), _) => node.scene(seat, name, None)?,
        // As the files say now: what the arm last moved by may have been calibrated anew since.
        (None, Some(last)) => node.scene(seat, &last.name, last.overlay.as_deref())?,
        (None, None) => return Err(refusal!("say which scene to move in, with --scene")),
    };
    if seat.motion.snapshot().state.is_under_way() {
        return Err(refusal!(
            "it moves; wait for its end, or `steadyhand stop` it"
        ));
    }
    let seen_stops = seat.motion.stops_requested();
    seat.permits().ask(&scene, seat.motion.clock().now())?;
    let mut job = NodeJob::begin(node, seat, "selftest", &scene, seen_stops).await?;
    let measured = all(&mut job, seat, &scene, seen_stops, rounds).await;
    let (state, words) = match &measured {
        Ok(measured) => (
            "stopped",
            format!("stopped {} times", measured.standstill_ms.len()),
        ),
        Err(why) => ("faulted", why.to_string()),
    };
    job.end(state, words).await;
    measured
}

async fn all(
    job: &mut NodeJob,
    seat: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
    mut seen_stops: u64,
    rounds: u32,
) -> Result<StopMeasurements, Refusal> {
    let mut measured = StopMeasurements::with(perform(job, seat, scene).await?);
    let mut bare = WakeupProbe::start(seat.motion.clock())?;
    for _ in 0..rounds {
        job.has_seen(seen_stops);
        measured.take(&one(job, seat, scene, &mut seen_stops, &mut bare).await?);
    }
    Ok(measured)
}

/// Asks for leave, and plans from where the arm stands.
async fn planned<T: Send + 'static>(
    seat: &AttachedArm,
    scene: &Arc<Scene>,
    plan: impl FnOnce(&Scene, &JointVector) -> Result<T, PlanError> + Send + 'static,
) -> Result<(MotionPermit, T), Refusal> {
    let motion = &seat.motion;
    let permit = seat.permits().ask(scene, motion.clock().now())?;
    let start = motion.snapshot().measured;
    let start = start.ok_or_else(|| refusal!("it has not been read yet"))?;
    let from = start.position_rad;
    let scene = Arc::clone(scene);
    let work = move || catch_panic("planning", || plan(&scene, &from));
    let planned = tokio::task::spawn_blocking(work).await;
    let planned =
        planned.map_err(|_| refusal!("the planner's thread ended without an answer"))???;
    Ok((permit, planned))
}

/// Visits one point from all sides, and judges how well; nothing where too little was read.
async fn perform(
    job: &NodeJob,
    seat: &AttachedArm,
    scene: &Arc<Scene>,
) -> Result<Option<TipPerformance>, Refusal> {
    let (permit, visits) = planned(seat, scene, RepeatedVisits::plan).await?;
    let mut ticks = Vec::new();
    let run = job.run(scene, permit, &visits.plan);
    let ended = tokio::select! {
        ended = run => ended,
        () = visits.watch(&seat.motion, &mut ticks) => return Err(refusal!("the arm's thread has ended")),
    };
    match ended {
        Ok(()) => Ok(visits.judge(scene, &ticks)),
        Err(IncompleteMotion { stop: Some(_), .. }) => Err(Refusal::new(SOMEBODY_ELSE)),
        Err(short) => Err(short.why),
    }
}

/// Runs one stop: travels over the sheet as fast as allowed, stops in the middle, and releases. Fails if any other stop
/// comes beyond `seen_stops`.
async fn one(
    job: &NodeJob,
    seat: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
    seen_stops: &mut u64,
    bare: &mut WakeupProbe,
) -> Result<MeasuredStop, Refusal> {
    let motion = &seat.motion;
    let clock = motion.clock();
    let (permit, way) = planned(seat, scene, SelfTestPath::plan).await?;
    let mut run = std::pin::pin!(job.run(scene, permit, &way.plan));
    let mut snapshots = motion.watch();
    let half = snapshots.wait_for(|seen| seen.progress.is_some_and(|at| at.sample >= way.stop_at));
    tokio::select! {
        _ = half => {}
        ended = &mut run => return Err(why(ended)),
    }
    let ticket = motion.stop(ActorRank::Node, false);
    let bare_ms = bare.wake_ms();
    // Its journal says so before it is released.
    let report = match run.await {
        Err(IncompleteMotion {
            stop: Some(report), ..
        }) => report,
        ended => return Err(why(ended)),
    };
    // The node stops for others as well, and they mean it.
    if ticket != *seen_stops + 1 || motion.stops_requested() != ticket {
        return Err(Refusal::new(SOMEBODY_ELSE));
    }
    *seen_stops = ticket;
    release(seat, scene, clock.now())?;
    Ok(MeasuredStop {
        report,
        mm_s: way.mm_s,
        bare_ms,
    })
}

fn why(ended: Result<(), IncompleteMotion>) -> Refusal {
    match ended {
        Ok(()) => refusal!("it was at its end before it was stopped"),
        Err(IncompleteMotion { stop: Some(_), .. }) => Refusal::new(SOMEBODY_ELSE),
        Err(short) => short.why,
    }
}

/// The stop was the test's own: what it latched ends with it, and nothing graver does.
fn release(seat: &AttachedArm, scene: &Scene, now: ClockInstant) -> Result<(), Refusal> {
    let permits = seat.permits();
    if permits.latched() != Some(StopLatch::Stopped(ActorRank::Node)) {
        return Err(Refusal::new(SOMEBODY_ELSE));
    }
    let permit = permits.ask_reset(scene, ActorRank::Node, now)?;
    if permits.unlatch(&permit) {
        Ok(())
    } else {
        Err(Refusal::new(SOMEBODY_ELSE))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::parking::tests::{TestNode, test_node};
    use base::clock::NodeClock;

    /// Its own stop is under way when the node stops for another reason: that one counts.
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
        let ends = std::thread::spawn(move || {
            while other.motion.stops_requested() == seen {
                std::thread::yield_now();
            }
            other.motion.stop(ActorRank::Node, false)
        });
        let mut job = NodeJob::begin(node, seat, "selftest", scene, seen)
            .await
            .unwrap();
        let told = all(&mut job, seat, scene, seen, 2).await;
        let ticket = ends.join().unwrap();
        assert_eq!(told.unwrap_err(), Refusal::new(SOMEBODY_ELSE));
        seat.motion.stopped(ticket).await.unwrap();
        assert_eq!(
            seat.permits().latched(),
            Some(StopLatch::Stopped(ActorRank::Node))
        );
        let stands = sim.true_joints();
        assert!(all(&mut job, seat, scene, seen, 1).await.is_err());
        job.end("stopped", "over".to_owned()).await;
        assert!(sim.true_joints().distance_max(&stands) < 1e-3);
    }

    #[tokio::test]
    async fn a_self_test_ends_its_own_stop_and_goes_on() {
        let TestNode { node, seat, .. } = &test_node(NodeClock::simulated_at(4));
        let measured = arm(node, seat, None, 2).await.unwrap();
        let seen = measured.performance.as_ref().unwrap();
        assert_eq!((seen.visits, seen.joints.len()), (8, 5));
        assert!(
            seen.repeatability_mm < 0.5 && seen.path_mm < 3.0,
            "{seen:?}"
        );
        assert!(
            seen.joints.iter().all(|joint| joint.gains().is_none()),
            "{seen:?}"
        );
        assert_eq!((measured.standstill_ms.len(), measured.unverified), (2, 0));
        assert!(measured.mm_s > 80.0, "{} mm/s", measured.mm_s);
        // In the arm's own time.
        let longest_ms = measured.standstill_ms.iter().copied().fold(0.0, f64::max);
        assert!(longest_ms <= 300.0, "{:?}", measured.standstill_ms);
        assert_eq!(seat.permits().latched(), None);
        let told = node.job_store.last_moved("arm").unwrap();
        assert_eq!(
            (told.tool.as_str(), told.state.as_str()),
            ("selftest", "stopped")
        );
    }
}
