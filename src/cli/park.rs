//! Bringing an arm to rest that nobody watches any more, or that is too hot: a stop, a plan, a
//! proof, a run, like any other motion.

use std::sync::Arc;
use std::time::Duration;

use crate::gate;
use crate::motion::{Care, Outcome, State};
use crate::permit::{Latch, Who};
use crate::plan::{self, Trajectory};
use crate::scene::Scene;
use crate::tools::Seat;
use crate::units::{Joints, Measured};

/// How long the way to rest may take of an arm that is left; a longer one is not begun.
const PARK: Duration = Duration::from_secs(5);

/// How long such an arm may be on its way on a machine that is busy, planning included; after that
/// it is stopped where it is. A service is ended 8 s after it was asked to.
const PATIENCE: Duration = Duration::from_millis(6500);

/// How near to rest is at rest.
const AT_REST_RAD: f64 = 0.03;

/// What became of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parked {
    /// It stands at rest, read back, with its torque on.
    AtRest,
    /// It had no torque: nothing holds it and nothing had to be moved.
    Limp,
}

/// What was latched before a stop that is the parking's own.
pub(super) fn hindrance(latched: Option<&Latch>) -> Option<&'static str> {
    match latched {
        None => None,
        Some(Latch::Emergency(_)) => Some("an emergency stop is latched"),
        Some(Latch::Stopped(_)) => Some("a stop is latched"),
        Some(Latch::Fault(_)) => Some("a fault is latched"),
    }
}

/// Stops an arm with a lift, then brings it to rest.
///
/// # Errors
/// Why it stands where it is, energised.
pub(super) async fn park(seat: &Arc<Seat>) -> Result<Parked, String> {
    let motion = &seat.motion;
    if !motion.snapshot().energised {
        return Ok(Parked::Limp);
    }
    let ticket = motion.stop(Who::Node, false);
    let stopped = motion.stopped(ticket).await;
    if !stopped.is_some_and(|report| report.verified) {
        return Err("its standstill could not be verified".to_owned());
    }
    match tokio::time::timeout(PATIENCE, to_rest(seat, PARK)).await {
        Ok(parked) => parked,
        Err(_) => {
            let ticket = motion.stop(Who::Node, false);
            motion.stopped(ticket).await;
            Err(format!(
                "it did not come to rest within {:.1} s: this machine is too busy",
                PATIENCE.as_secs_f64()
            ))
        }
    }
}

/// Brings an arm that stands to rest, if no way there takes longer than `longest`.
async fn to_rest(seat: &Arc<Seat>, longest: Duration) -> Result<Parked, String> {
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
    let seen_stops = motion.stops_asked();
    let permit = seat
        .permits()
        .ask_reset(&scene, Who::Node, motion.clock().now())
        .map_err(|denied| denied.to_string())?;
    let ways = planned(&scene, &start, longest).await?;
    // Planning took its time: the proof is for where the arm is now.
    let start = motion.snapshot().measured.unwrap_or(start);
    let now = motion.clock().now();
    let proof = ways
        .into_iter()
        .map(|way| gate::check(&scene, permit.clone(), &start, now, way))
        .reduce(|one, other| one.or(other))
        .ok_or("there is no way to its rest pose")?
        .map_err(|refused| refused.to_string())?;
    match motion.run(proof, seen_stops).await {
        Ok(Outcome::Reached { .. }) => Ok(Parked::AtRest),
        Ok(Outcome::Stopped(_)) => Err("it was stopped on its way to rest".to_owned()),
        Ok(Outcome::Refused(why) | Outcome::Faulted(why)) => Err(why),
        Err(_) => Err("its thread has ended".to_owned()),
    }
}

async fn planned(
    scene: &Arc<Scene>,
    start: &Measured,
    longest: Duration,
) -> Result<Vec<Trajectory>, String> {
    let (scene, from) = (Arc::clone(scene), start.position_rad);
    let ways = tokio::task::spawn_blocking(move || ways(&scene, &from, longest));
    ways.await
        .unwrap_or_else(|_| Err("the planner failed".to_owned()))
}

/// The ways to rest that are not too long, the shorter first: over the ready pose, as after every
/// other motion, and straight there.
fn ways(scene: &Scene, from: &Joints, longest: Duration) -> Result<Vec<Trajectory>, String> {
    let (mut ways, mut why) = (Vec::new(), String::new());
    for poses in [&[scene.ready_rad, scene.rest_rad][..], &[scene.rest_rad]] {
        match plan::go_to(scene, from, poses, &plan::Patient) {
            Ok(plan) => ways.push(plan.trajectory),
            Err(error) => why = error.to_string(),
        }
    }
    ways.sort_by_key(Trajectory::duration);
    let shortest = ways.first().ok_or(why)?.duration();
    ways.retain(|way| way.duration() <= longest);
    if ways.is_empty() {
        return Err(format!(
            "the way to its rest pose takes {:.1} s and {:.1} s is the longest: bring it nearer (`poses.rest_rad`) or raise `limits.travel_mm_s` in scene `{}`",
            shortest.as_secs_f64(),
            longest.as_secs_f64(),
            scene.name
        ));
    }
    Ok(ways)
}

/// Parks an arm whose servos are too hot, once its stroke is done, as often as that happens.
pub(super) async fn mind_heat(seat: Arc<Seat>) {
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
        let latched = seat.permits().latched();
        match latched {
            Some(Latch::Stopped(_) | Latch::Emergency(_)) => {
                tracing::warn!(arm = seat.name, "{why}; stopped, so it is not parked");
            }
            _ => match to_rest(&seat, Duration::MAX).await {
                Ok(_) => tracing::warn!(arm = seat.name, "{why}; the arm is parked"),
                Err(error) => tracing::error!(
                    arm = seat.name,
                    "{why}; it could not be parked: {error}; the arm is still energised"
                ),
            },
        }
        let cooled = snapshots.wait_for(|seen| seen.health.care < Care::Park);
        if cooled.await.is_err() {
            return;
        }
    }
}

/// Whether anything is under way.
pub(super) fn moves(state: State) -> bool {
    matches!(state, State::Moving | State::Held | State::Stopping)
}
