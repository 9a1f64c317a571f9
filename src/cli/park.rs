//! Bringing an arm to rest that nobody watches any more, or that is too hot: a stop, a plan, a
//! proof, a run, like any other motion.

use std::sync::Arc;
use std::time::Duration;

use crate::gate;
use crate::motion::{Care, Outcome, State};
use crate::permit::{Latch, Who};
use crate::plan::{self, Plan, PlanError};
use crate::scene::Scene;
use crate::tools::Seat;
use crate::units::{Joints, Measured};

/// How long an arm may take from its standstill to rest; after that it is stopped where it is.
pub(super) const PARK: Duration = Duration::from_secs(5);

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
    match tokio::time::timeout(PARK, to_rest(seat)).await {
        Ok(parked) => parked,
        Err(_) => {
            let ticket = motion.stop(Who::Node, false);
            motion.stopped(ticket).await;
            Err(format!(
                "it did not come to rest within {} s",
                PARK.as_secs()
            ))
        }
    }
}

async fn to_rest(seat: &Arc<Seat>) -> Result<Parked, String> {
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
    let plan = planned(&scene, &start).await?;
    // Planning took its time: the proof is for where the arm is now.
    let start = motion.snapshot().measured.unwrap_or(start);
    let now = motion.clock().now();
    let proof = gate::check(&scene, permit, &start, now, plan.trajectory)
        .map_err(|refused| refused.to_string())?;
    match motion.run(proof, seen_stops).await {
        Ok(Outcome::Reached { .. }) => Ok(Parked::AtRest),
        Ok(Outcome::Stopped(_)) => Err("it was stopped on its way to rest".to_owned()),
        Ok(Outcome::Refused(why) | Outcome::Faulted(why)) => Err(why),
        Err(_) => Err("its thread has ended".to_owned()),
    }
}

async fn planned(scene: &Arc<Scene>, start: &Measured) -> Result<Plan, String> {
    let (scene, from) = (Arc::clone(scene), start.position_rad);
    let plan = tokio::task::spawn_blocking(move || go(&scene, &from));
    match plan.await {
        Ok(plan) => plan.map_err(|error| error.to_string()),
        Err(_) => Err("the planner failed".to_owned()),
    }
}

fn go(scene: &Scene, from: &Joints) -> Result<Plan, PlanError> {
    let poses = [scene.ready_rad, scene.rest_rad];
    plan::go_to(scene, from, &poses, &plan::Patient)
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
            _ => match to_rest(&seat).await {
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
