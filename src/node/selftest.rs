//! `selftest`: how the arm that is attached really stops, measured by small checked motions.

mod busy;
mod caller;
mod measured;
mod way;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::control_socket::Told;
use base::disk;
use base::units::Instant;
use busy::{Bare, Busy};
use caller::Caller;
use measured::{Measured, Series, Stopped};
use permit::{Latch, Who};
use scene::Scene;
use tools::{Alone, Node, Seat, Short, catch_panic};
use way::Way;

const SOMEBODY_ELSE: &str = "somebody else stopped it";

/// The file in the state folder.
const FILE: &str = "selftest.json";

/// Measures every arm of a node, and keeps what was found.
pub(crate) async fn run(node: &Arc<Node>, scene: Option<&str>, rounds: u32) -> Told {
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
        if let Err(error) = disk::put(&file(node), &result.to_string()) {
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
    seat: &Arc<Seat>,
    scene: Option<&str>,
    rounds: u32,
) -> Result<Measured, String> {
    let scene = match (scene, seat.last_scene()) {
        (Some(name), _) => node.scene(seat, name, None)?,
        // As the files say now: what the arm last moved by may have been calibrated anew since.
        (None, Some(last)) => node.scene(seat, &last.name, last.overlay.as_deref())?,
        (None, None) => return Err("say which scene to move in, with --scene".to_owned()),
    };
    if seat.motion.snapshot().state.is_under_way() {
        return Err("it moves; wait for its end, or `steadyhand stop` it".to_owned());
    }
    let seen_stops = seat.motion.stops_asked();
    seat.permits()
        .ask(&scene, seat.motion.clock().now())
        .map_err(|denied| denied.to_string())?;
    let mut job = Alone::begin(node, seat, "selftest", &scene, seen_stops).await?;
    let measured = all(&mut job, (node, seat), &scene, seen_stops, rounds).await;
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
    (node, seat): (&Arc<Node>, &Arc<Seat>),
    scene: &Arc<Scene>,
    mut seen_stops: u64,
    rounds: u32,
) -> Result<Measured, String> {
    let mut measured = Measured::default();
    let mut bare = Bare::start(seat.motion.clock())?;
    for series in Series::ALL {
        let start = seat.motion.snapshot().measured;
        let start = start.ok_or("it has not been read yet")?.position_rad;
        let busy = match series {
            Series::Busy => Some(Busy::start(node, scene, start)?),
            Series::Idle | Series::GivenUp(_) => None,
        };
        for _ in 0..rounds {
            job.has_seen(seen_stops);
            let by = match series {
                Series::GivenUp(how) => Stopper::Caller(Caller::calls(how, seat).await?),
                Series::Idle | Series::Busy => Stopper::Node(&mut bare),
            };
            let stopped = one(job, seat, scene, &mut seen_stops, by).await?;
            measured.take(series, &stopped);
        }
        if let Some(Err(why)) = busy.map(Busy::end) {
            measured.was_never_busy(why);
        }
    }
    Ok(measured)
}

/// Over the sheet as fast as it may travel, stopped in the middle, and released again. No stop but its
/// own may come beyond the `seen_stops`, whoever asks for it.
async fn one(
    job: &Alone,
    seat: &Arc<Seat>,
    scene: &Arc<Scene>,
    seen_stops: &mut u64,
    by: Stopper<'_>,
) -> Result<Stopped, String> {
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
    let (planned, from) = (Arc::clone(scene), start.position_rad);
    let way = move || catch_panic("planning", || Way::plan(&planned, &from));
    let way = tokio::task::spawn_blocking(way).await;
    let way = way
        .map_err(|_| "the planner's thread ended without an answer".to_owned())?
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    let mut run = std::pin::pin!(job.run(scene, permit, &way.plan));
    let mut snapshots = motion.watch();
    let half = snapshots.wait_for(|seen| seen.progress.is_some_and(|at| at.sample >= way.stop_at));
    tokio::select! {
        _ = half => {}
        ended = &mut run => return Err(why(ended)),
    }
    let asked = ask(seat, by).await?;
    // Its journal says so before it is released.
    let report = match run.await {
        Err(Short {
            stop: Some(report), ..
        }) => report,
        ended => return Err(why(ended)),
    };
    // The node stops for others as well, and they mean it.
    if asked.ticket != *seen_stops + 1 || motion.stops_asked() != asked.ticket {
        return Err(SOMEBODY_ELSE.to_owned());
    }
    *seen_stops = asked.ticket;
    release(seat, scene, clock.now(), asked.by)?;
    Ok(Stopped {
        report,
        mm_s: way.mm_s,
        before_ms: asked.before_ms,
        bare_ms: asked.bare_ms,
    })
}

/// A stop that was asked for.
struct Asked {
    ticket: u64,
    by: Who,
    /// How long it took until the arm's thread was told.
    before_ms: f64,
    bare_ms: Option<f64>,
}

/// Who stops it: the node, with a bare thread beside it, or a caller that gives up.
enum Stopper<'a> {
    Node(&'a mut Bare),
    Caller(Caller),
}

async fn ask(seat: &Seat, stopper: Stopper<'_>) -> Result<Asked, String> {
    let motion = &seat.motion;
    match stopper {
        Stopper::Node(bare) => Ok(Asked {
            ticket: motion.stop(Who::Node, false),
            by: Who::Node,
            before_ms: 0.0,
            bare_ms: bare.wake_ms(),
        }),
        Stopper::Caller(caller) => {
            let (asked, told) = caller.gives_up(motion.clock()).await?;
            Ok(Asked {
                ticket: told.ticket,
                by: told.by,
                before_ms: told.at.seconds_since(asked) * 1e3,
                bare_ms: None,
            })
        }
    }
}

fn why(ended: Result<(), Short>) -> String {
    match ended {
        Ok(()) => "it was at its end before it was stopped".to_owned(),
        Err(Short { stop: Some(_), .. }) => SOMEBODY_ELSE.to_owned(),
        Err(short) => short.why,
    }
}

/// The stop was the test's own: what it latched ends with it, and nothing graver does.
fn release(seat: &Seat, scene: &Scene, now: Instant, by: Who) -> Result<(), String> {
    let permits = seat.permits();
    if permits.latched() != Some(Latch::Stopped(by)) {
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::parking::tests::{House, house};
    use base::clock::Clock;

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
        let told = all(&mut job, (node, seat), scene, seen, 2).await;
        let ticket = ends.join().unwrap();
        assert_eq!(told.unwrap_err(), SOMEBODY_ELSE);
        seat.motion.stopped(ticket).await.unwrap();
        assert_eq!(seat.permits().latched(), Some(Latch::Stopped(Who::Node)));
        let stands = sim.truth();
        assert!(all(&mut job, (node, seat), scene, seen, 1).await.is_err());
        job.end("stopped", "over".to_owned()).await;
        assert!(sim.truth().distance_max(&stands) < 1e-3);
    }

    #[tokio::test]
    async fn a_self_test_ends_its_own_stop_and_goes_on() {
        let House { node, seat, .. } = &house(Clock::simulated_at(4));
        let measured = arm(node, seat, None, 2).await.unwrap();
        assert_eq!((measured.standstill_ms.len(), measured.unverified), (2, 0));
        assert!(measured.mm_s > 80.0, "{} mm/s", measured.mm_s);
        // In the arm's own time.
        let longest_ms = measured.standstill_ms.iter().copied().fold(0.0, f64::max);
        assert!(longest_ms <= 300.0, "{:?}", measured.standstill_ms);
        assert_eq!(seat.permits().latched(), None);
        let told = node.book.last_moved("arm").unwrap();
        assert_eq!(
            (told.tool.as_str(), told.state.as_str()),
            ("selftest", "stopped")
        );
    }
}
