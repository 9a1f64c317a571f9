//! `stop`: decelerate, lift, hold, and read back that the arm stands. Never refused, never queued.

use std::sync::Arc;

use super::AttachedArm;
use super::dispatch::ToolContext;
use super::motion_job::tip_mm;
use super::reply::Reply;
use super::stroke::rounded;
use base::wording::{millimetres, seconds};
use motion::StopReport;
use permit::StopLatch;

pub(super) async fn call(order: &ToolContext<'_>) -> Reply {
    // Every arm of the node, all asked before any is waited for.
    let tickets: Vec<(&Arc<AttachedArm>, u64)> = order
        .node
        .seats
        .iter()
        .map(|seat| (seat, seat.motion.stop(order.who, false)))
        .collect();
    let mut reports = Vec::with_capacity(tickets.len());
    for (seat, ticket) in tickets {
        reports.push((seat, seat.motion.stopped(ticket).await));
    }
    let reply = reply(&reports);
    match order.node.selftest() {
        Some(selftest) => reply.with("selftest", selftest),
        None => reply,
    }
}

fn reply(reports: &[(&Arc<AttachedArm>, Option<StopReport>)]) -> Reply {
    let verified = reports
        .iter()
        .all(|(_, report)| report.as_ref().is_some_and(|report| report.verified));
    let lines: Vec<String> = reports
        .iter()
        .map(|(seat, report)| stop_text(seat, report.as_ref()))
        .collect();
    let reply = if verified {
        Reply::done(lines.join("; "))
    } else {
        Reply::failed(lines.join("; "))
    };
    let slowest = reports
        .iter()
        .filter_map(|(_, report)| report.as_ref()?.standstill_ms)
        .fold(0.0, f64::max);
    let arms: Vec<_> = reports
        .iter()
        .map(|(seat, report)| card(seat, report.as_ref()))
        .collect();
    let names: Vec<String> = reports.iter().map(|(seat, _)| seat.title()).collect();
    let reply = reply
        .with("arm", names.join(", "))
        .with("state", if verified { "stopped" } else { "unverified" })
        .with("arms", arms);
    let reply = if verified {
        reply.with("stopped_after_ms", rounded(slowest))
    } else {
        reply
    };
    let is_emergency = reports
        .iter()
        .any(|(seat, _)| matches!(seat.permits().latched(), Some(StopLatch::Emergency(_))));
    reply.hint(next_step(is_emergency))
}

/// Says what motion needs after a stop.
pub(super) const fn next_step(is_emergency: bool) -> &'static str {
    match is_emergency {
        true => "motion needs an operator's `steadyhand clear` first, then reset",
        false => "motion needs reset first",
    }
}

/// Describes the stop of one arm: the kind of stop, the times to its first frame and to standstill, the measured speed,
/// and the tip's place.
pub fn stop_text(seat: &AttachedArm, report: Option<&StopReport>) -> String {
    let name = &seat.name;
    match report {
        None => format!(
            "{name}: its thread has ended or hangs, so the stop may not have been sent: cut its power"
        ),
        Some(report) => match (report.verified, report.first_frame_ms, report.standstill_ms) {
            (true, Some(first), Some(still)) => {
                let lift = match report.lift_ms.filter(|_| report.lifted) {
                    Some(ms) => {
                        format!(", of which the lift of the pen took {}", seconds(ms / 1e3))
                    }
                    None if report.lifted => ", pen lifted".to_owned(),
                    None => String::new(),
                };
                let kind = report.kind;
                format!(
                    "{name}: stopped ({kind}); first stop frame after {}, standing still after {}{lift}{}{}",
                    seconds(first / 1e3),
                    seconds(still / 1e3),
                    speed(report),
                    tip_text(seat)
                )
            }
            (true, _, _) => format!(
                "{name}: was not moving and stands still{}{}",
                speed(report),
                tip_text(seat)
            ),
            (false, _, _) => format!(
                "{name}: standstill could not be verified: look at the arm, cut its power if it moves"
            ),
        },
    }
}

fn speed(report: &StopReport) -> String {
    report.speed_rad_s.map_or_else(String::new, |speed| {
        format!(", fastest joint {:.1}°/s", speed.to_degrees())
    })
}

/// Describes the measured place of the tip.
fn tip_text(seat: &AttachedArm) -> String {
    let seen = seat.motion.snapshot().measured;
    let Some((scene, seen)) = seat.last_scene().zip(seen) else {
        return String::new();
    };
    let Some([x, y, z]) = tip_mm(&scene, 0, &seen.position_rad) else {
        return String::new();
    };
    let over = scene
        .surface
        .project(&nalgebra::Point3::new(x / 1e3, y / 1e3, z / 1e3));
    let [across, up] = over.at_mm;
    format!(
        ", tip {} across and {} up on the sheet, {} over it",
        millimetres(across, 1),
        millimetres(up, 1),
        millimetres(over.height_mm, 1)
    )
}

fn card(seat: &AttachedArm, report: Option<&StopReport>) -> serde_json::Value {
    let snapshot = seat.motion.snapshot();
    let tip = seat
        .last_scene()
        .zip(snapshot.measured)
        .and_then(|(scene, seen)| tip_mm(&scene, 0, &seen.position_rad));
    serde_json::json!({
        "arm": seat.name,
        "report": report,
        "tip_mm": tip.map(|tip| tip.map(rounded)),
        "speed_deg_s": report.and_then(|report| report.speed_rad_s).map(|speed| rounded(speed.to_degrees())),
        "fault": snapshot.fault,
    })
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::motion_job::{MotionJobRequest, start_job};
    use super::super::{AttachedArm, Node, NodeStorage, RemoteCallWatch};
    use super::*;
    use args::ReceivedArguments;
    use base::clock::NodeClock;
    use config::NodeFile;
    use job::AcceptedJob;
    use link::memory::MemoryLink;
    use link::{ByteLink, LinkError};
    use motion::{MotionHandle, PortOpener};
    use permit::{ActorRank, PermitRegistry};
    use scene::SceneLibrary;
    use sim::ArmSimulator;

    fn node(folder: &std::path::Path) -> Arc<Node> {
        let scenes = SceneLibrary::new(None);
        let scene = scenes.scene("default", None).unwrap();
        let device = ArmSimulator::new(&scene.arm, &scene.rest_rad);
        let open: PortOpener = Box::new(move |clock| {
            let link = MemoryLink::new(device.clone(), clock, "bench").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        });
        let permits = Arc::new(PermitRegistry::everything());
        let arm = Arc::clone(&scene.arm);
        let motion = MotionHandle::start(arm, NodeClock::simulated(), permits, open).unwrap();
        let seats = vec![Arc::new(AttachedArm::new("arm", motion, None))];
        let file = NodeFile::default();
        let state = NodeStorage::open(folder.to_path_buf(), &file).unwrap();
        Arc::new(Node::new(file, scenes, seats, folder.to_path_buf(), state))
    }

    #[tokio::test]
    async fn a_panic_in_a_job_stops_the_arm() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let seat = Arc::clone(node.seats.first().unwrap());
        let call = MotionJobRequest {
            scene: "default".to_owned(),
            accepted: AcceptedJob {
                tool: "stroke".to_owned(),
                ..AcceptedJob::default()
            },
            who: ActorRank::Planner,
            key: "once".to_owned(),
            again: false,
            seen_stops: None,
        };
        let before = seat.motion.stops_requested();
        let watch = RemoteCallWatch::unobserved();
        let started = start_job(&node, &seat, call, |_| async { panic!("a job that fails") });
        let reply = started.ended(&node, &seat, &watch).await;
        assert!(reply.is_error);
        assert!(seat.motion.stops_requested() > before);
        seat.motion.stopped(before + 1).await.unwrap();
        let latched = seat.permits().latched();
        assert_eq!(latched, Some(StopLatch::Stopped(ActorRank::Node)));
    }

    /// A mistaken stop is never refused, and no other tool stops the arm.
    #[tokio::test]
    async fn a_stop_is_heard_before_its_call() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let seat = node.seats.first().unwrap();
        for (tool, stops) in [
            ("E-Stop!", true),
            ("robot_stop", true),
            ("left_arm.stop", true),
            ("stroke", false),
        ] {
            let before = seat.motion.stops_requested();
            node.preempt_stop(tool, &ReceivedArguments::Absent, ActorRank::Planner);
            assert_eq!(seat.motion.stops_requested() > before, stops, "{tool}");
        }
    }
}
