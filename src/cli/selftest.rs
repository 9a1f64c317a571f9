//! `selftest`: how the arm that is attached really stops, measured by small checked motions.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::control::Told;
use super::park;
use crate::motion::StopReport;
use crate::permit::Who;
use crate::plan;
use crate::scene::Scene;
use crate::tools::{Alone, Node, Seat, Short};
use crate::units::{Instant, Joints};

/// What is promised: milliseconds from the request to the first frame of the stop, 99 of 100.
const FIRST_FRAME_MS_MAX: f64 = 10.0;

/// And to standstill, read back.
const STANDSTILL_MS_MAX: f64 = 300.0;

/// A motion is stopped when it has come so far of its samples.
const STOP_AT_SHARE: f64 = 0.5;

const SOMEBODY_ELSE: &str = "somebody else stopped it";

/// The file in the state folder.
const FILE: &str = "selftest.json";

/// Measures every arm of a node, and keeps what was found.
pub(super) async fn run(node: &Arc<Node>, scene: Option<&str>, rounds: u32) -> Told {
    let mut lines = Vec::new();
    let mut arms = Vec::new();
    let mut good = true;
    for seat in &node.seats {
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
        if let Err(error) = keep(node, &result) {
            lines.push(format!("the result is not kept: {error}"));
        }
        node.tested(result);
    }
    Told {
        done: good,
        ..Told::done(lines.join("\n"))
    }
}

/// Reads what an earlier node measured.
pub(super) fn recall(node: &Node) {
    let text = std::fs::read(file(node)).unwrap_or_default();
    if let Ok(result) = serde_json::from_slice::<Value>(&text) {
        node.tested(result);
    }
}

fn file(node: &Node) -> PathBuf {
    node.state.join(FILE)
}

fn keep(node: &Node, result: &Value) -> std::io::Result<()> {
    let draft = file(node).with_extension("new");
    std::fs::write(&draft, result.to_string())?;
    std::fs::rename(&draft, file(node))
}

async fn arm(
    node: &Arc<Node>,
    seat: &Arc<Seat>,
    scene: Option<&str>,
    rounds: u32,
) -> Result<Measured, String> {
    let scene = match (scene, seat.last_scene()) {
        (Some(name), _) => node.scene(seat, name, None)?,
        (None, Some(last)) => last,
        (None, None) => return Err("say which scene to move in, with --scene".to_owned()),
    };
    if park::moves(seat.motion.snapshot().state) {
        return Err("it moves; wait for its end, or `steadyhand stop` it".to_owned());
    }
    let seen_stops = seat.motion.stops_asked();
    seat.permits()
        .ask(&scene, seat.motion.clock().now())
        .map_err(|denied| denied.to_string())?;
    let mut job = Alone::begin(node, seat, "selftest", &scene, seen_stops).await?;
    let measured = all(&mut job, seat, &scene, seen_stops, rounds).await;
    let (state, words) = match &measured {
        Ok(measured) => (
            "stopped",
            format!("stopped {} times", measured.standstill_ms.len()),
        ),
        Err(why) => ("faulted", why.clone()),
    };
    job.end(state, words).await;
    measured
}

async fn all(
    job: &mut Alone,
    seat: &Arc<Seat>,
    scene: &Arc<Scene>,
    mut seen_stops: u64,
    rounds: u32,
) -> Result<Measured, String> {
    let mut measured = Measured::default();
    for _ in 0..rounds {
        job.has_seen(seen_stops);
        let report = one(job, seat, scene, &mut seen_stops).await?;
        measured.take(&report);
    }
    Ok(measured)
}

/// From where it is to the pose that is further away, stopped in the middle, and released again. No
/// stop but its own may come beyond the `seen_stops`, whoever asks for it.
async fn one(
    job: &Alone,
    seat: &Arc<Seat>,
    scene: &Arc<Scene>,
    seen_stops: &mut u64,
) -> Result<StopReport, String> {
    let motion = &seat.motion;
    let clock = motion.clock();
    let permit = seat
        .permits()
        .ask(scene, clock.now())
        .map_err(|denied| denied.to_string())?;
    let start = motion
        .snapshot()
        .measured
        .ok_or("it has not been read yet")?;
    let to = further(scene, &start.position_rad);
    let (planned, from) = (Arc::clone(scene), start.position_rad);
    let plan =
        tokio::task::spawn_blocking(move || plan::go_to(&planned, &from, &[to], &plan::Patient));
    let plan = plan
        .await
        .map_err(|_| "the planner failed".to_owned())?
        .map_err(|error| error.to_string())?;
    let samples = plan.trajectory.samples.len();
    let mut run = std::pin::pin!(job.run(scene, permit, &plan));
    let mut snapshots = motion.watch();
    let half = snapshots.wait_for(|seen| {
        seen.progress
            .is_some_and(|at| at.sample as f64 >= STOP_AT_SHARE * samples as f64)
    });
    tokio::select! {
        _ = half => {}
        ended = &mut run => return Err(why(ended)),
    }
    let ticket = motion.stop(Who::Node, false);
    // Its journal says so before it is released.
    let report = match run.await {
        Err(Short {
            stop: Some(report), ..
        }) => report,
        ended => return Err(why(ended)),
    };
    // The node stops for others as well, and they mean it.
    if ticket != *seen_stops + 1 || motion.stops_asked() != ticket {
        return Err(SOMEBODY_ELSE.to_owned());
    }
    *seen_stops = ticket;
    release(seat, scene, clock.now())?;
    Ok(report)
}

fn why(ended: Result<(), Short>) -> String {
    match ended {
        Ok(()) => "it was at its end before it was stopped".to_owned(),
        Err(Short { stop: Some(_), .. }) => SOMEBODY_ELSE.to_owned(),
        Err(short) => short.why,
    }
}

/// The stop was the test's own: what it latched ends with it, and nothing graver does.
fn release(seat: &Seat, scene: &Scene, now: Instant) -> Result<(), String> {
    let permits = seat.permits();
    if permits.latched() != Some(crate::permit::Latch::Stopped(Who::Node)) {
        return Err(SOMEBODY_ELSE.to_owned());
    }
    let permit = permits
        .ask_reset(scene, Who::Node, now)
        .map_err(|denied| denied.to_string())?;
    if permits.unlatch(&permit) {
        Ok(())
    } else {
        Err(SOMEBODY_ELSE.to_owned())
    }
}

fn further(scene: &Scene, from: &Joints) -> Joints {
    let (ready, rest) = (scene.ready_rad, scene.rest_rad);
    if from.distance_max(&ready) > from.distance_max(&rest) {
        ready
    } else {
        rest
    }
}

/// What was measured on one arm.
#[derive(Debug, Default)]
struct Measured {
    first_frame_ms: Vec<f64>,
    standstill_ms: Vec<f64>,
    unverified: u32,
}

impl Measured {
    fn take(&mut self, report: &StopReport) {
        self.first_frame_ms.extend(report.first_frame_ms);
        self.standstill_ms.extend(report.standstill_ms);
        self.unverified += u32::from(!report.verified);
    }

    fn is_good(&self) -> bool {
        self.unverified == 0
            && quantile(&self.first_frame_ms, 0.99) <= FIRST_FRAME_MS_MAX
            && quantile(&self.standstill_ms, 1.0) <= STANDSTILL_MS_MAX
    }

    fn rows(&self) -> [(&'static str, &[f64], f64, f64); 2] {
        [
            (
                "request to first stop frame, p99",
                &self.first_frame_ms,
                0.99,
                FIRST_FRAME_MS_MAX,
            ),
            (
                "request to standstill, longest",
                &self.standstill_ms,
                1.0,
                STANDSTILL_MS_MAX,
            ),
        ]
    }

    fn table(&self, arm: &str) -> String {
        let mut lines = vec![format!(
            "{arm}: {} stops, {} not verified",
            self.first_frame_ms.len(),
            self.unverified
        )];
        for (what, all, share, bound) in self.rows() {
            let (middle, found) = (quantile(all, 0.5), quantile(all, share));
            let held = if found <= bound { "held" } else { "NOT HELD" };
            lines.push(format!(
                "  {what:<36}{found:>8.1} ms   bound {bound:>4.0} ms   {held}   (median {middle:.1} ms)"
            ));
        }
        lines.join("\n")
    }

    fn card(&self, arm: &str) -> Value {
        json!({
            "arm": arm,
            "stops": self.first_frame_ms.len(),
            "unverified": self.unverified,
            "first_frame_ms_p99": rounded(quantile(&self.first_frame_ms, 0.99)),
            "first_frame_ms_bound": FIRST_FRAME_MS_MAX,
            "standstill_ms_max": rounded(quantile(&self.standstill_ms, 1.0)),
            "standstill_ms_bound": STANDSTILL_MS_MAX,
            "held": self.is_good(),
        })
    }
}

/// Of nothing, no time at all is a promise.
fn quantile(all: &[f64], share: f64) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length"
    )]
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or(f64::INFINITY)
}

fn rounded(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::cli::park::tests::{House, house};
    use crate::clock::Clock;
    use crate::permit::Latch;

    /// Its own stop is under way when the node stops for another reason: that one counts.
    #[tokio::test(flavor = "multi_thread")]
    async fn another_stop_of_the_node_ends_a_self_test() {
        let house = house(Clock::simulated_at(4));
        let House {
            node,
            seat,
            sim,
            scene,
            ..
        } = &house;
        let seen = seat.motion.stops_asked();
        let other = Arc::clone(seat);
        let ends = std::thread::spawn(move || {
            while other.motion.stops_asked() == seen {
                std::thread::yield_now();
            }
            other.motion.stop(Who::Node, false)
        });
        let mut job = Alone::begin(node, seat, "selftest", scene, seen)
            .await
            .unwrap();
        let told = all(&mut job, seat, scene, seen, 2).await;
        let ticket = ends.join().unwrap();
        assert_eq!(told.unwrap_err(), SOMEBODY_ELSE);
        seat.motion.stopped(ticket).await.unwrap();
        assert_eq!(seat.permits().latched(), Some(Latch::Stopped(Who::Node)));
        let stands = sim.truth();
        assert!(all(&mut job, seat, scene, seen, 1).await.is_err());
        job.end("stopped", "over".to_owned()).await;
        assert!(sim.truth().distance_max(&stands) < 1e-3);
    }

    #[tokio::test]
    async fn a_self_test_ends_its_own_stop_and_goes_on() {
        let House { node, seat, .. } = &house(Clock::simulated_at(4));
        let measured = arm(node, seat, None, 2).await.unwrap();
        assert_eq!((measured.standstill_ms.len(), measured.unverified), (2, 0));
        assert_eq!(seat.permits().latched(), None);
        let told = node.book.last_moved("arm").unwrap();
        assert_eq!(
            (told.tool.as_str(), told.state.as_str()),
            ("selftest", "stopped")
        );
    }

    #[test]
    fn a_quantile_is_a_value_that_was_seen() {
        let all: Vec<f64> = (1..=100).map(f64::from).collect();
        for (share, value) in [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0), (0.0, 1.0)] {
            assert!((quantile(&all, share) - value).abs() < 1e-9, "{share}");
        }
        assert!(quantile(&[], 0.99).is_infinite());
        assert!(!Measured::default().is_good());
    }
}
