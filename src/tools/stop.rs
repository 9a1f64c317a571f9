//! `stop`: decelerates, lifts the pen, holds, and reads back that the arm stands. Never refused, never queued.

use std::sync::Arc;

use super::dispatch::ToolContext;
use super::motion_job::{tip_m, tip_mm};
use super::reply::Reply;
use super::stop_cause::StopCause;
use super::stroke::rounded;
use super::{AttachedArm, Node, operator_drawing, team_stroke};
use base::wording::{millimetres, seconds};
use motion::StopReport;
use permit::{ActorRank, StopLatch};

pub(super) async fn call(ctx: &ToolContext<'_>) -> Reply {
    // All arms of the node are told to stop before any is waited for.
    let arms = ctx.node.arms.iter();
    let (node, request) = (ctx.node, ctx.request);
    let requested = arms.map(|arm| {
        let ticket = match request.arrived.is_stop() {
            // It was told to stop when the call arrived.
            true => node.stops_before(&request.arrived, arm).stops,
            false => {
                let cause = StopCause::by(&request.tool, request.caller.as_str());
                arm.stop(request.who, false, &cause)
            }
        };
        arm.name_stop_caller(&request.caller);
        (arm, ticket)
    });
    let tickets: Vec<(&Arc<AttachedArm>, u64)> = requested.collect();
    let mut reports = Vec::with_capacity(tickets.len());
    for (arm, ticket) in tickets {
        reports.push((arm, arm.motion.stopped(ticket).await));
    }
    let next = next_call(ctx.node, ctx.request.who);
    let mut reply = reply(&reports, &next);
    reply.set_some("selftest", ctx.node.selftest());
    reply
}

fn reply(reports: &[(&Arc<AttachedArm>, Option<StopReport>)], next: &str) -> Reply {
    let verified = reports
        .iter()
        .all(|(_, report)| report.as_ref().is_some_and(|report| report.verified));
    let stops = || reports.iter().map(|(arm, report)| (*arm, report.as_ref()));
    let lines: Vec<String> = stops()
        .map(|(arm, report)| stop_text(arm, report))
        .collect();
    let figures = lines.join("; ");
    let slowest = stops()
        .filter_map(|(_, report)| report?.standstill_ms)
        .fold(0.0, f64::max);
    let arms: Vec<_> = stops().map(|(arm, report)| card(arm, report)).collect();
    let names: Vec<String> = stops().map(|(arm, _)| arm.title()).collect();
    let (mut reply, state) = if verified {
        let stand = stand_text(stops().filter_map(|(_, report)| report));
        let text = format!("{stand} Next: {next}. {figures}");
        (Reply::done(text), "stopped")
    } else {
        (Reply::failed(figures), "unverified")
    };
    reply.set("arm", names.join(", "));
    reply.set("state", state);
    reply.set("arms", arms);
    reply.set_some("stopped_after_ms", verified.then(|| rounded(slowest)));
    reply.hint(next)
}

/// Says how arms stand that were seen to stand.
fn stand_text<'a>(reports: impl Iterator<Item = &'a StopReport>) -> String {
    let reports: Vec<&StopReport> = reports.collect();
    let (who, verb) = match reports.as_slice() {
        [_] => ("The arm", "stands"),
        _ => ("All arms", "stand"),
    };
    let all = |is: fn(&StopReport) -> bool| reports.iter().all(|report| is(report));
    let how = if all(|report| report.lifted || report.was_held) {
        ", pen up"
    } else if all(|report| report.first_frame_ms.is_none()) {
        " (nothing was moving)"
    } else {
        ""
    };
    format!("{who} {verb} still{how}.")
}

/// Returns what a caller does next on a node whose arms were stopped: the reset, and the call that draws what is left.
fn next_call(node: &Node, who: ActorRank) -> String {
    let is_latched = |is: fn(&StopLatch) -> bool| {
        let latches = node.arms.iter().filter_map(|arm| arm.permits().latched());
        latches.into_iter().any(|latch| is(&latch))
    };
    let is_operators =
        || is_latched(|latch| matches!(latch, StopLatch::Stopped(ActorRank::Operator)));
    let reset = if is_latched(|latch| matches!(latch, StopLatch::Emergency(_))) {
        "an operator's `steadyhand clear`, then `reset`"
    } else if who == ActorRank::Operator {
        "`steadyhand reset`"
    } else if is_operators() {
        "an operator's `steadyhand reset`"
    } else {
        "reset"
    };
    let left_by_all = team_stroke::left_of_one_drawing(node);
    let rests = node.board_jobs().filter_map(|(arm, job)| {
        let card = job.card();
        let has_drawn = match card.state {
            "moving" | "held" | "waiting_for_pen" => true,
            "stopped" | "faulted" => job.has_moved() || has_waited(node, &card.id),
            _ => false,
        };
        let has_rest = card.tool == "stroke" && has_drawn && card.done < card.of;
        // What one of several arms has not begun is a rest of what all of them draw.
        let is_of_all = left_by_all.as_ref().is_some_and(|left| {
            let past = node.job_store.past(&card.id);
            past.is_ok_and(|past| past.first_job == left.first_job)
        });
        has_rest.then(|| match card.caller == operator_drawing::CALLER {
            true if is_of_all => "`steadyhand draw --resume`".to_owned(),
            _ if !may_have_inked(node, &card.id) => "the same call".to_owned(),
            true => format!("`steadyhand draw --resume{}`", node.arm_option(arm)),
            false => node.resume_call(&arm.name, &card.scene),
        })
    });
    let mut calls: Vec<String> = std::iter::once(reset.to_owned()).chain(rests).collect();
    // Arms that drew together go on by one command.
    calls.dedup();
    calls.join(", then ")
}

/// Returns whether a job waited for a person, and so had begun though its arm had not moved yet.
fn has_waited(node: &Node, job: &str) -> bool {
    node.job_store.past(job).is_ok_and(|past| past.waited)
}

/// Returns whether a job may have left ink, without which it cannot be resumed. Its last line may not be in its journal yet.
fn may_have_inked(node: &Node, job: &str) -> bool {
    let past = node.job_store.past(job);
    past.map_or(true, |past| past.may_have_inked() || past.released_mm > 0.0)
}

/// Describes what motion needs after a stop.
pub(super) const fn next_step(is_emergency: bool) -> &'static str {
    match is_emergency {
        true => "motion first needs an operator's `steadyhand clear`, then `reset`",
        false => "motion first needs `reset`",
    }
}

/// Describes the stop of one arm: the kind of stop, the times to its first frame and to standstill, the measured speed,
/// and the tip's place.
pub fn stop_text(arm: &AttachedArm, report: Option<&StopReport>) -> String {
    let name = &arm.name;
    let Some(report) = report else {
        return format!(
            "{name}: its thread has ended or hangs, so the stop may not have been sent. Cut its power"
        );
    };
    if !report.verified {
        return format!(
            "{name}: standstill could not be verified. Look at the arm, and cut its power if it moves"
        );
    }
    let kept = kept_text(report.not_kept.as_deref());
    let speed = report.speed_rad_s.map(f64::to_degrees);
    let speed = speed.map(|deg_s| format!(", fastest joint {deg_s:.1}°/s"));
    let (speed, tip) = (speed.unwrap_or_default(), tip_text(arm));
    if report.was_held {
        return format!(
            "{name}: was held, pen up; the {} {}{speed}{tip}{kept}",
            report.kind,
            ended_text(arm)
        );
    }
    let (Some(first), Some(still)) = (report.first_frame_ms, report.standstill_ms) else {
        return format!("{name}: was not moving{speed}{tip}{kept}");
    };
    let lift = match (report.lifted, report.lift_ms) {
        (true, Some(ms)) => format!(", pen lift {}", seconds(ms / 1e3)),
        (true, None) => ", pen lifted".to_owned(),
        (false, _) => String::new(),
    };
    let kind = report.kind;
    let (first, still) = (seconds(first / 1e3), seconds(still / 1e3));
    format!(
        "{name}: stopped ({kind}); first stop frame after {first}, standing still after {still}{lift}{speed}{tip}{kept}"
    )
}

/// Says what an operator's stop lacks that could not be saved; empty for one that lacks nothing.
fn kept_text(not_kept: Option<&str>) -> String {
    not_kept.map_or_else(String::new, |not_kept| format!("; {not_kept}"))
}

/// Describes what a stop ended that came while the motion was held, and how much of it was drawn.
fn ended_text(arm: &AttachedArm) -> String {
    match arm.board.job().map(|job| job.card()) {
        Some(card) if card.tool == "stroke" => format!(
            "ended {} after {} of {} strokes (the rest can be resumed)",
            card.id, card.done, card.of
        ),
        Some(card) => format!("ended {}", card.id),
        None => "ended its motion".to_owned(),
    }
}

/// Describes the measured place of the tip.
fn tip_text(arm: &AttachedArm) -> String {
    let measured = arm.motion.snapshot().measured;
    let Some((scene, measured)) = arm.last_scene().zip(measured) else {
        return String::new();
    };
    let Some(tip) = tip_m(&scene, 0, &measured.position_rad) else {
        return String::new();
    };
    let projected = scene.surface.project(&tip);
    let [across, up] = projected.at_mm.map(|mm| millimetres(mm, 1));
    let height = millimetres(projected.height_mm, 1);
    format!(", tip {across} across and {up} up on the sheet, {height} over it")
}

fn card(arm: &AttachedArm, report: Option<&StopReport>) -> serde_json::Value {
    let snapshot = arm.motion.snapshot();
    let tip = arm
        .last_scene()
        .zip(snapshot.measured)
        .and_then(|(scene, measured)| tip_mm(&scene, 0, &measured.position_rad));
    serde_json::json!({
        "arm": arm.name,
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
    use super::super::doubt::MotionOrder;
    use super::super::job_board::JobKey;
    use super::super::motion_job::{MotionJobRequest, start_job};
    use super::super::{NodeStorage, RemoteCallWatch, ToolRequest};
    use super::*;
    use crate::team::TeamSeat;
    use args::ReceivedArguments;
    use base::clock::NodeClock;
    use call::{ArrivalStamp, EntryPoint, ToolCaller, refusal};
    use config::NodeFile;
    use job::AcceptedJob;
    use link::memory::MemoryLink;
    use link::{ByteLink, LinkError};
    use motion::{MotionHandle, PortOpener};
    use permit::PermitRegistry;
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
        let arms = vec![Arc::new(AttachedArm::new("arm", motion, None))];
        let file = NodeFile::default();
        let state = NodeStorage::open(folder.to_path_buf(), &file).unwrap();
        Arc::new(Node::new(file, scenes, arms, folder.to_path_buf(), state))
    }

    /// Returns a call that is the same from every sender.
    fn motion_call(arm: &AttachedArm, who: ActorRank) -> MotionJobRequest {
        MotionJobRequest {
            scene: "default".to_owned(),
            accepted: AcceptedJob {
                tool: "stroke".to_owned(),
                ..AcceptedJob::default()
            },
            order: MotionOrder::Operator,
            who,
            key: JobKey {
                work: "once".to_owned(),
                plan: None,
            },
            again: false,
            seen_stops: arm.motion.stops_requested(),
            arrived: ArrivalStamp::default(),
            team: TeamSeat::alone(),
        }
    }

    /// A call that arrived behind a stop must not be stopped because the stop's record was written later.
    #[tokio::test]
    async fn a_stop_that_is_recorded_stops_nothing_more() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let motion = &node.arms.first().unwrap().motion;
        assert!(node.stray_stop("stop", ActorRank::Planner, None));
        assert_eq!(motion.stops_requested(), 1);
        node.record_stray_stop("stop", ActorRank::Planner, None);
        assert_eq!(motion.stops_requested(), 1);
    }

    /// A planner that repeats a refused call has the arm's board almost always.
    #[tokio::test]
    async fn an_operators_call_joins_no_planners_but_waits_until_that_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let arm = Arc::clone(node.arms.first().unwrap());
        let watch = RemoteCallWatch::unobserved();
        let (refuse, is_refused) = tokio::sync::oneshot::channel::<()>();
        let doomed = |_| async move {
            let _ = is_refused.await;
            Err(refusal!("an operator must reset it").into())
        };
        let call = motion_call(&arm, ActorRank::Planner);
        start_job(&node, &arm, call, doomed).await;
        let done = |_| async { Ok(Reply::done("done for the operator")) };
        let call = motion_call(&arm, ActorRank::Operator);
        let operators = start_job(&node, &arm, call, done);
        let refusing = async {
            base::task::pause(std::time::Duration::from_millis(100)).await;
            refuse.send(()).unwrap();
        };
        let (operators, ()) = tokio::join!(operators, refusing);
        let reply = operators.wait_for_end(&node, &arm, &watch).await;
        assert_eq!(reply.text, "done for the operator");
    }

    #[tokio::test]
    async fn who_joined_a_call_that_was_given_up_is_told_that_it_was_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let arm = Arc::clone(node.arms.first().unwrap());
        let watch = RemoteCallWatch::unobserved();
        let nothing = |_| async { Ok(Reply::done("done")) };
        let first = MotionJobRequest {
            arrived: node.stamp_arrival(),
            ..motion_call(&arm, ActorRank::Planner)
        };
        let gone = first.arrived.clone();
        let _begun = start_job(&node, &arm, first, nothing).await;
        let joined = motion_call(&arm, ActorRank::Planner);
        let joined = start_job(&node, &arm, joined, nothing).await;
        node.give_up(&gone);
        let reply = joined.wait_for_end(&node, &arm, &watch).await;
        assert_eq!(reply.code(), Some("given_up"), "{}", reply.text);
        let told = "the client disconnected";
        assert!(reply.text.contains(told), "{}", reply.text);
        assert!(reply.text.ends_with("Next: call again"), "{}", reply.text);
    }

    /// In whatever language, a name that no tool has does not mean that the caller's own drawing is to go on.
    #[tokio::test]
    async fn an_unknown_name_of_the_mover_stops_before_its_call() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let arm = Arc::clone(node.arms.first().unwrap());
        let mut call = motion_call(&arm, ActorRank::Planner);
        "stdio".clone_into(&mut call.accepted.caller);
        let waits = |_| async { std::future::pending().await };
        let _begun = start_job(&node, &arm, call, waits).await;
        let stops = |tool: &str, via| {
            let caller = ToolCaller::sender(via, None, None);
            let nothing = ReceivedArguments::Absent;
            node.preempt_stop(tool, &nothing, ActorRank::Planner, &caller)
        };
        assert!(!stops("anhalten", EntryPoint::Http));
        assert!(!stops("stroke", EntryPoint::Stdio));
        assert!(!stops("stroke_status", EntryPoint::Stdio));
        assert_eq!(arm.motion.stops_requested(), 0);
        assert!(stops("anhalten", EntryPoint::Stdio));
        assert_eq!(arm.motion.stops_requested(), 1);
    }

    #[tokio::test]
    async fn a_panic_in_a_job_stops_the_arm() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let arm = Arc::clone(node.arms.first().unwrap());
        let call = motion_call(&arm, ActorRank::Planner);
        let before = arm.motion.stops_requested();
        let watch = RemoteCallWatch::unobserved();
        let started = start_job(&node, &arm, call, |_| async { panic!("a job that fails") }).await;
        let reply = started.wait_for_end(&node, &arm, &watch).await;
        assert!(reply.is_error);
        assert!(arm.motion.stops_requested() > before);
        arm.motion.stopped(before + 1).await.unwrap();
        let latched = arm.permits().latched();
        assert_eq!(latched, Some(StopLatch::Stopped(ActorRank::Node)));
    }

    fn called(tool: &str, arrived: ArrivalStamp) -> ToolRequest {
        ToolRequest {
            tool: tool.to_owned(),
            arguments: ReceivedArguments::Absent,
            caller: "test".to_owned(),
            who: ActorRank::Operator,
            principal: None,
            hop: None,
            is_step: false,
            arrived,
        }
    }

    /// An emergency stop counts like an ordinary one: no step of a sequence begins after it, and no call is passed on.
    #[tokio::test]
    async fn every_stop_counts_for_what_arrived_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        for is_emergency in [false, true] {
            let arrived = node.stamp_arrival();
            assert!(!node.has_heard_stop_since(&arrived));
            node.stop_all(ActorRank::Operator, is_emergency, &StopCause::new("test"));
            assert!(node.has_heard_stop_since(&arrived) && node.is_stopped_since(&arrived));
        }
    }

    /// The order of arrival counts, not that in which they are carried out.
    #[tokio::test]
    async fn a_stop_is_the_last_word_only_behind_a_reset() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let arm = Arc::clone(node.arms.first().unwrap());
        let call = async |tool: &str, arrived: ArrivalStamp| {
            let watch = RemoteCallWatch::unobserved();
            Arc::clone(&node).call(called(tool, arrived), watch).await
        };
        let nothing = ReceivedArguments::Absent;
        arm.moved_in(&node.scenes.scene("default", None).unwrap());
        let reset = node.stamp_arrival();
        let caller = ToolCaller::sender(EntryPoint::InProcess, None, None);
        assert!(node.preempt_stop("stop", &nothing, ActorRank::Operator, &caller));
        let stop = node.stamp_arrival().of_stop();
        let overtaken = call("reset", reset).await;
        assert_eq!(overtaken.code(), Some("stopped"), "{}", overtaken.text);
        let stopped = call("stop", stop.clone()).await;
        assert!(!stopped.is_error, "{}", stopped.text);
        let latched = Some(StopLatch::Stopped(ActorRank::Operator));
        assert_eq!(arm.permits().latched(), latched);
        let reset = node.stamp_arrival();
        // The answer to a stop stops nothing that came behind it.
        assert!(!call("stop", stop).await.is_error);
        let done = call("reset", reset).await;
        assert!(!done.is_error, "{}", done.text);
        assert_eq!(arm.permits().latched(), None);
        let unstamped = call("reset", ArrivalStamp::default()).await;
        assert_eq!(unstamped.code(), Some("stopped"), "{}", unstamped.text);
    }

    #[tokio::test]
    async fn a_gone_senders_call_does_not_begin_and_stops_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let arm = node.arms.first().unwrap();
        arm.moved_in(&node.scenes.scene("default", None).unwrap());
        let call = async |arrived: ArrivalStamp| {
            let watch = RemoteCallWatch::unobserved();
            Arc::clone(&node)
                .call(called("reset", arrived), watch)
                .await
        };
        let (gone, other) = (node.stamp_arrival(), node.stamp_arrival());
        node.give_up(&gone);
        assert_eq!(arm.motion.stops_requested(), 0);
        let refused = call(gone).await;
        assert_eq!(refused.code(), Some("given_up"), "{}", refused.text);
        let done = call(other).await;
        assert!(!done.is_error, "{}", done.text);
        node.stop_to_end(ActorRank::Node, false, &StopCause::new("test"));
        let late = call(node.stamp_arrival()).await;
        assert_eq!(late.code(), Some("ending"), "{}", late.text);
    }

    /// A stop under a mistaken name is never refused, and no other tool stops the arm.
    #[tokio::test]
    async fn a_stop_is_heard_before_its_call() {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let arm = node.arms.first().unwrap();
        for (tool, stops) in [
            ("E-Stop!", true),
            ("robot_stop", true),
            ("left_arm.stop", true),
            ("stroke", false),
        ] {
            let before = arm.motion.stops_requested();
            let caller = ToolCaller::sender(EntryPoint::InProcess, None, None);
            let nothing = ReceivedArguments::Absent;
            node.preempt_stop(tool, &nothing, ActorRank::Planner, &caller);
            assert_eq!(arm.motion.stops_requested() > before, stops, "{tool}");
        }
    }
}
