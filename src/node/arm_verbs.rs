//! Operator verbs that act on the arms of a node.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::open;
use super::operator_verb::{DepthTrimRequest, VerbReply};
use super::verb_dispatch::{call as call_tool, call_as};
use args::ReceivedArguments;
use base::wording::{count, duration};
use call::{ArrivalStamp, Refusal, refusal};
use catalogue::EVERYWHERE;
use fleet::stop_fan_out::FleetStop;
use gate::{DepthTrimChange, DepthTrimError, HoldAt};
use motion::{MotionError, MotionState, StopReport};
use permit::{ActorRank, OrderVerb, StopLatch};
use tools::{AttachedArm, Node, StopCause, stop_line, trim_words};

/// Longest wait for an immediate hold, and for its end.
const HOLD_WAIT_MAX: Duration = Duration::from_secs(3);

/// Commands that resume a held arm's motion, or end it.
const HELD_ADVICE: &str = "`steadyhand continue` ends the hold, `steadyhand stop` ends the motion";

/// Refusal of `resume` where no motion can go on.
const NOTHING_HELD: &str = "no motion is held, so there is nothing to continue";

/// Outcome of a verb for one arm.
type ArmLine = Result<String, Refusal>;

impl VerbReply {
    /// Joins one line per arm; done if all are. A failed line with `true` is of an arm that had nothing to do; it counts as failed
    /// only if no arm did anything.
    fn from_some(lines: Vec<(ArmLine, bool)>) -> Self {
        let is_done = lines.iter().any(|(line, _)| line.is_ok());
        let outcomes = lines.into_iter().map(|(line, is_idle)| match line {
            Err(reason) if is_idle && is_done => Ok(reason.into()),
            line => line,
        });
        Self::from_lines(outcomes.collect())
    }

    /// Joins one line per arm; done if all are.
    fn from_lines(lines: Vec<ArmLine>) -> Self {
        let done = lines.iter().all(Result::is_ok);
        let lines = lines.into_iter();
        let lines = lines.map(|line| line.unwrap_or_else(String::from));
        Self {
            done,
            ..Self::done(lines.collect::<Vec<_>>().join("; "))
        }
    }
}

/// Puts the arm's name before its line, and into the commands of it where the node has several.
fn with_name(node: &Node, seat: &AttachedArm, line: ArmLine) -> ArmLine {
    let named = |line: String| format!("{}: {}", seat.name, node.commands_for_arm(seat, &line));
    match line {
        Ok(line) => Ok(named(line)),
        Err(reason) => Err(Refusal::new(named(reason.into()))),
    }
}

pub(crate) fn clear(node: &Node, arrived: &ArrivalStamp) -> VerbReply {
    let is_latched = |seat: &Arc<AttachedArm>| {
        let latched = seat.permits().latched();
        matches!(latched, Some(StopLatch::Emergency(_)))
    };
    if !node.arms.iter().any(is_latched) {
        let on_ports = node.file.arms.iter();
        let on_ports = on_ports.filter_map(|entry| open::orders_on_port(node, entry));
        let lines = std::iter::once("no emergency stop is latched, so nothing was done".to_owned());
        let lines: Vec<String> = lines.chain(on_ports).collect();
        return VerbReply::failed(lines.join("; "));
    }
    let failed = node.arms.iter().filter_map(|seat| {
        let seen = node.stops_before(arrived, seat).emergencies;
        let error = seat.permits().clear_emergency(seen).err()?;
        Some(format!("{}: {error}", seat.name))
    });
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() {
        VerbReply::done("the emergency stop is cleared. Next: `steadyhand reset`")
    } else {
        VerbReply::failed(format!(
            "the emergency stop is still latched: {}",
            failed.join("; ")
        ))
    }
}

pub(crate) async fn estop(node: &Node, caller: &str) -> VerbReply {
    let cause = StopCause::by("estop", caller);
    let tickets: Vec<_> = node
        .arms
        .iter()
        .map(|seat| (seat, seat.stop(ActorRank::Operator, true, &cause)))
        .collect();
    node.end_sequences();
    let mut lines = Vec::new();
    for (seat, ticket) in tickets {
        let report = seat.motion.stopped(ticket).await;
        let not_kept = match &report {
            Some(report) if report.emergency => report.not_kept.clone(),
            // Even if its standstill is unknown, the stop is latched.
            _ => {
                let kept = seat.permits().orders_are_kept().await;
                kept.err().map(|error| error.consequence())
            }
        };
        lines.push(estop_line(seat, report.as_ref(), not_kept));
    }
    VerbReply::from_lines(lines)
}

/// Stops the arms of this node and of every other, all at once. An emergency stop reaches the others through the fleet's engine.
/// An ordinary one is sent beside it, for a node that the engine does not reach.
pub(crate) async fn stop_fleet(
    node: &Arc<Node>,
    (caller, arrived): (&str, &ArrivalStamp),
    emergency: bool,
) -> VerbReply {
    if !emergency {
        let arguments = serde_json::json!({ "node": EVERYWHERE });
        let arguments = ReceivedArguments::Value(arguments);
        return stop(node, (caller, arrived), arguments).await;
    }
    let order = FleetStop {
        is_emergency: true,
        is_operators: true,
    };
    let peers = node.fleet.as_ref().map(|fleet| fleet.peers());
    let ordinary_stops = peers.into_iter().flatten().map(|peer| async move {
        let arguments = serde_json::json!({ "node": peer.name });
        let reply = call_tool(node, arrived, "stop", ReceivedArguments::Value(arguments)).await;
        (peer.name, reply.text)
    });
    let (own, by_engine, by_call) = futures::join!(
        estop(node, caller),
        node.stop_by_engine(order),
        futures::future::join_all(ordinary_stops)
    );
    let mut lines = vec![if own.done {
        Ok(own.text)
    } else {
        Err(Refusal::new(own.text))
    }];
    let mut reached = BTreeSet::new();
    for (name, answer) in by_engine {
        lines.push(match answer {
            Ok(answer) if answer.success => {
                reached.insert(name.clone());
                Ok(format!("{name}: {}", answer.message))
            }
            Ok(answer) => Err(refusal!("{name}: {}", answer.message)),
            Err(error) => Err(refusal!("{name}: {error}")),
        });
    }
    let unreached = by_call
        .into_iter()
        .filter(|(name, _)| !reached.contains(name));
    lines.extend(unreached.map(|(name, text)| {
        Err(refusal!(
            "{name}: the emergency stop did not reach this arm, so an ordinary stop was tried: {text}"
        ))
    }));
    VerbReply::from_lines(lines)
}

fn estop_line(
    seat: &AttachedArm,
    report: Option<&StopReport>,
    not_kept: Option<String>,
) -> Result<String, Refusal> {
    let latched = match not_kept {
        None => "it stays latched until `steadyhand clear`".to_owned(),
        Some(not_kept) => format!("it stays latched until `steadyhand clear`, but {not_kept}"),
    };
    match report.filter(|report| report.verified) {
        Some(report) => Ok(format!("{}; {latched}", stop_line(seat, Some(report)))),
        None => Err(refusal!(
            "{}: standstill could not be verified: cut the power of this arm; {latched}",
            seat.name
        )),
    }
}

/// Calls the tool `stop` for an operator, by whose name it is remembered.
pub(crate) async fn stop(
    node: &Arc<Node>,
    (caller, arrived): (&str, &ArrivalStamp),
    arguments: ReceivedArguments,
) -> VerbReply {
    let call = (ActorRank::Operator, "stop", arguments);
    let reply = call_as(node, caller, arrived.clone(), call).await;
    VerbReply::of_tool(&reply)
}

/// Withdraws all leave, until an operator enables motion again.
pub(crate) async fn disable(node: &Node, caller: &str) -> VerbReply {
    for seat in &node.arms {
        seat.permits().give_order(OrderVerb::Disable, caller);
    }
    let mut text = "motion is disabled. A motion in progress is held at the end of its stroke; `steadyhand stop` stops it at once".to_owned();
    for seat in &node.arms {
        text += &kept_text(seat).await;
    }
    VerbReply::done(text)
}

/// Waits until an operator's order is on the disk; says why it is not.
async fn kept_text(seat: &AttachedArm) -> String {
    let kept = seat.permits().orders_are_kept().await;
    kept.err().map_or_else(String::new, |error| {
        format!(". But {}", error.consequence())
    })
}

pub(crate) async fn hold(node: &Node, now: bool, caller: &str) -> VerbReply {
    let when = if now { HoldAt::Once } else { HoldAt::StrokeEnd };
    let mut lines = Vec::new();
    for seat in &node.arms {
        let result = seat.motion.hold(when).await;
        let is_idle = matches!(result, Ok(Err(MotionError::NothingToHold)));
        let beginning = seat.live_job().filter(|job| is_idle && !job.is_over);
        if beginning.is_some() {
            seat.permits().hold_before_motion(caller);
        }
        if matches!(result, Ok(Ok(()) | Err(MotionError::HeldAlready))) {
            seat.permits().give_order(OrderVerb::Hold, caller);
        }
        let line = match result {
            Ok(Ok(())) if now => wait_until_held(seat).await,
            Ok(Ok(())) => Ok(format!(
                "the motion will be held at the end of its stroke; {HELD_ADVICE}"
            )),
            // It is in the requested state.
            Ok(Err(MotionError::HeldAlready)) => {
                Ok(format!("the motion is already held, pen up; {HELD_ADVICE}"))
            }
            Ok(Err(MotionError::NothingToHold)) if let Some(job) = &beginning => Ok(format!(
                "{} is held before its first motion; `steadyhand continue` ends the hold",
                job.id
            )),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(refusal!(
                "the arm's thread has ended. Next: restart the node"
            )),
        };
        let line = match line {
            Ok(line) => Ok(line + &kept_text(seat).await),
            failed => failed,
        };
        lines.push((with_name(node, seat, line), is_idle && beginning.is_none()));
    }
    VerbReply::from_some(lines)
}

/// Waits until an arm is held.
async fn wait_until_held(seat: &AttachedArm) -> ArmLine {
    let mut snapshots = seat.motion.watch();
    let not_moving = snapshots.wait_for(|snapshot| snapshot.state != MotionState::Moving);
    let state = match tokio::time::timeout(HOLD_WAIT_MAX, not_moving).await {
        Ok(Ok(snapshot)) => snapshot.state,
        _ => MotionState::Moving,
    };
    match state {
        MotionState::Held => Ok(format!("the motion is held, pen up; {HELD_ADVICE}")),
        MotionState::Holding => Ok("the motion had already ended".to_owned()),
        _ => Err(refusal!(
            "the motion was not held within {}. Next: look at the arm",
            duration(HOLD_WAIT_MAX)
        )),
    }
}

pub(crate) async fn resume(node: &Node, arrived: &ArrivalStamp) -> VerbReply {
    let mut ended = Vec::new();
    for seat in &node.arms {
        let is_idle = seat.motion.snapshot().state != MotionState::Held;
        let seen = node.stops_before(arrived, seat).orders;
        ended.push((seat, end_hold(node, seat, seen).await, is_idle));
    }
    let mut lines = Vec::new();
    for (seat, line, is_idle) in ended {
        // Arms that move together go on once none of them is held, so this shows only now.
        let line = match line {
            Ok(_) if !goes_on(seat).await => Err(refusal!(
                "this arm's hold is over, but the arm that moves with it is still held, so this arm waits. Next: `steadyhand continue`, once the other arm can move"
            )),
            line => line,
        };
        lines.push((with_name(node, seat, line), is_idle));
    }
    VerbReply::from_some(lines)
}

/// Waits until no other arm holds this one; returns whether none does.
async fn goes_on(seat: &AttachedArm) -> bool {
    let mut snapshots = seat.motion.watch();
    let is_free = snapshots.wait_for(|snapshot| !snapshot.is_held_with_other);
    let is_free = tokio::time::timeout(HOLD_WAIT_MAX, is_free).await;
    is_free.is_ok()
}

/// Ends the hold of an arm: its motion goes on, if there still is one.
async fn end_hold(node: &Node, seat: &AttachedArm, orders_seen: u64) -> ArmLine {
    let is_under_way = seat.motion.snapshot().state.is_under_way();
    if !is_under_way && seat.permits().end_hold(orders_seen) {
        return Ok("the hold is over; no motion was left to continue".to_owned());
    }
    resume_arm(node, seat).await?;
    seat.permits().end_hold(orders_seen);
    Ok("goes on".to_owned())
}

/// Resumes the held motion of an arm.
async fn resume_arm(node: &Node, seat: &AttachedArm) -> Result<(), Refusal> {
    let scene = seat.last_scene();
    let scene = scene.ok_or_else(|| refusal!("{NOTHING_HELD}"))?;
    // What a stop ended is told by the permit.
    if !seat.motion.snapshot().state.is_under_way() && seat.permits().latched().is_none() {
        return Err(refusal!("{NOTHING_HELD}"));
    }
    tools::check_zeros_after_wait(node, seat)?;
    // A permit for the scene as it was planned: a design that has changed meanwhile needs another.
    let permit = seat
        .permits()
        .ask_resume(&scene, seat.motion.clock().now())?;
    let resumed = seat.motion.resume(permit).await;
    Ok(resumed.map_err(|_| refusal!("the arm's thread has ended. Next: restart the node"))??)
}

/// Raises or lowers the pen of the drawing under way.
pub(crate) async fn trim(node: &Node, request: &DepthTrimRequest) -> VerbReply {
    let change = match (request.by_mm, request.to_mm) {
        (Some(mm), None) => DepthTrimChange::By(mm),
        (None, Some(mm)) => DepthTrimChange::To(mm),
        _ => return VerbReply::failed("a trim needs `by_mm` or `to_mm`, not both"),
    };
    let arm = request.arm.as_deref();
    let is_meant = |seat: &&Arc<AttachedArm>| match arm {
        Some(name) => seat.name == name,
        None => seat.motion.snapshot().state.is_under_way(),
    };
    let meant: Vec<_> = node.arms.iter().filter(is_meant).collect();
    let names = |seats: &mut dyn Iterator<Item = &Arc<AttachedArm>>| {
        let names: Vec<&str> = seats.map(|seat| seat.name.as_str()).collect();
        names.join(", ")
    };
    match (meant.as_slice(), arm) {
        ([seat], _) => {
            VerbReply::from_lines(vec![with_name(node, seat, trim_arm(seat, change).await)])
        }
        ([], Some(name)) => VerbReply::failed(format!(
            "this node has no arm `{name}`. Valid: {}",
            names(&mut node.arms.iter())
        )),
        ([], None) => VerbReply::failed(DepthTrimError::NotDrawing.to_string()),
        (several, _) => VerbReply::failed(format!(
            "several arms move. Next: name one: {}",
            names(&mut several.iter().copied())
        )),
    }
}

async fn trim_arm(seat: &AttachedArm, change: DepthTrimChange) -> ArmLine {
    let trimmed = seat.motion.change_depth_trim(change).await;
    let trim =
        trimmed.map_err(|_| refusal!("the arm's thread has ended. Next: restart the node"))??;
    Ok(format!(
        "until the drawing ends, its pen is at {} (±{} mm are possible)",
        trim_words(trim.target_mm),
        trim.most_mm
    ))
}

/// Switches torque off on every servo of every arm, and names each that may still hold.
pub(crate) async fn torque_off(node: &Node, caller: &str) -> VerbReply {
    let mut lines = Vec::new();
    for seat in &node.arms {
        lines.push(with_name(node, seat, release_arm(seat, caller).await));
    }
    VerbReply::from_lines(lines)
}

/// Switches torque off on one arm.
async fn release_arm(seat: &Arc<AttachedArm>, caller: &str) -> ArmLine {
    if seat.motion.snapshot().state.is_under_way() {
        return Err(refusal!(
            "the arm moves or is held. Next: `steadyhand stop`"
        ));
    }
    if !seat.is_free_to_move() {
        return Err(refusal!(
            "this arm must stand still, because another arm moves beside it. Next: `steadyhand stop`"
        ));
    }
    let released = seat.motion.release().await;
    if seat.permits().latched() == Some(StopLatch::Stopped(ActorRank::Operator)) {
        let caller = format!("{caller}, by torque-off");
        seat.permits().give_order(OrderVerb::Stop, &caller);
    }
    let released =
        released.map_err(|_| refusal!("the arm's thread has ended. Next: restart the node"))??;
    if released.failed.is_empty() {
        let latched = seat.permits().latched();
        let next_step = match latched {
            Some(StopLatch::Emergency(_)) => "`steadyhand clear`, then `steadyhand reset`",
            _ => "`steadyhand reset`",
        };
        let kept = kept_text(seat).await;
        return Ok(format!(
            "torque is off on {} (checked by reading it back); {next_step} switches it on again{kept}",
            count(released.off.len(), "servo")
        ));
    }
    let failed = released.failed.iter();
    let failed: Vec<String> = failed
        .map(|(servo, error)| format!("{servo}: {error}"))
        .collect();
    Err(refusal!(
        "torque may still be on: {}. Next: cut the power of this arm",
        failed.join(", ")
    ))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::parking::tests::test_node;
    use super::*;
    use base::clock::NodeClock;
    use base::units::JointVector;
    use config::{ArmEntry, NodeFile, SIMULATOR_PORT};
    use gate::MotionPart;
    use link::memory::MemoryLink;
    use link::{ByteLink, LinkError};
    use motion::{MotionHandle, MotionOutcome, MotionRelease, PortOpener, Snapshot};
    use permit::PermitRegistry;
    use scene::{Scene, SceneLibrary};
    use serde_json::json;
    use sim::{ArmSimulator, SimulatedFault};
    use tokio::sync::oneshot;
    use tools::{NodeStorage, RemoteCallWatch, ToolRequest};

    /// Longest wait for a state of an arm.
    const SEEN_WITHIN: Duration = Duration::from_secs(60);

    /// A node with both arms of a scene.
    struct Pair {
        node: Arc<Node>,
        scenes: Vec<Arc<Scene>>,
        _folder: tempfile::TempDir,
    }

    impl Pair {
        /// Opens a node whose left arm is this far from its rest pose.
        fn new(clock: &NodeClock, off_rad: &JointVector) -> Self {
            let library = SceneLibrary::new(None);
            let parts = library.shared("two_arms", None).unwrap().parts;
            let scenes: Vec<_> = parts.into_iter().map(|part| part.scene).collect();
            let attached = scenes.iter().map(|scene| {
                let name = scene.arm_name.as_ref().unwrap();
                let is_left = name == "left";
                let off_rad = off_rad.map(|_, by| if is_left { by } else { 0.0 });
                let at_rad = scene.rest_rad.zip(&off_rad, |at, by| at + by);
                let device = ArmSimulator::new(&scene.arm, &at_rad);
                let open: PortOpener = Box::new(move |clock| {
                    let link = MemoryLink::new(device.clone(), clock, "pair");
                    Ok(Box::new(link.map_err(LinkError::Read)?) as Box<dyn ByteLink>)
                });
                let permits = Arc::new(PermitRegistry::everything());
                let motion =
                    MotionHandle::start(Arc::clone(&scene.arm), clock.clone(), permits, open);
                let seat = AttachedArm::new(name, motion.unwrap(), None);
                seat.moved_in(scene);
                Arc::new(seat)
            });
            let entry = |name: &str| ArmEntry {
                name: name.to_owned(),
                port: SIMULATOR_PORT.to_owned(),
                ..NodeFile::default().arms.remove(0)
            };
            let file = NodeFile {
                arms: ["left", "right"].map(entry).into(),
                ..NodeFile::default()
            };
            let folder = tempfile::tempdir().unwrap();
            let state = NodeStorage::open(folder.path().to_owned(), &file).unwrap();
            let output = folder.path().to_owned();
            let node = Node::new(
                file,
                SceneLibrary::new(None),
                attached.collect(),
                output,
                state,
            );
            Self {
                node: Arc::new(node),
                scenes,
                _folder: folder,
            }
        }

        fn arm(&self, index: usize) -> &Arc<AttachedArm> {
            self.node.arms.get(index).unwrap()
        }

        async fn until(&self, index: usize, seen: impl Fn(&Snapshot) -> bool) {
            let motion = &self.arm(index).motion;
            let mut snapshots = motion.watch();
            let seen = tokio::time::timeout(SEEN_WITHIN, snapshots.wait_for(seen));
            let is_seen = seen.await.is_ok();
            assert!(is_seen, "{:?}", motion.snapshot());
        }

        /// Moves both arms up and back, and holds them on the way.
        async fn held_on_the_way(&self) -> Vec<oneshot::Receiver<MotionOutcome>> {
            let seats = self.node.arms.iter().zip(&self.scenes);
            let plans = seats.clone().map(|(seat, scene)| {
                let start = seat.motion.snapshot().measured.unwrap();
                let poses = [
                    scene.rest_rad.zip(&up_rad(), |at, by| at + by),
                    scene.rest_rad,
                ];
                let plan = plan::go_to(scene, &start.position_rad, &poses, &plan::SilentObserver);
                (start, plan.unwrap().trajectory)
            });
            let plans: Vec<_> = plans.collect();
            let parts = seats
                .zip(&plans)
                .map(|((seat, scene), (start, trajectory))| {
                    let now = seat.motion.clock().now();
                    MotionPart {
                        permit: seat.permits().ask(scene, now).unwrap(),
                        scene: Arc::clone(scene),
                        start,
                        now,
                        trajectory: trajectory.clone(),
                    }
                });
            let proofs = gate::check_together(parts.collect(), &[]).unwrap();
            let release = [(); 2].map(|()| MotionRelease::nothing());
            release.iter().for_each(|release| release.up_to(100));
            let run = self.node.arms.iter().zip(proofs).zip(release.clone());
            let run =
                run.map(|((seat, proof), release)| seat.motion.run_released(proof, 0, release));
            let outcomes = run.collect();
            for arm in 0..2 {
                let is_on_its_way = |now: &Snapshot| now.progress.is_some_and(|at| at.sample > 40);
                self.until(arm, is_on_its_way).await;
            }
            let holds = [0, 1].map(|arm| self.arm(arm).motion.hold(HoldAt::Once));
            release.iter().for_each(|release| release.up_to(usize::MAX));
            for (arm, hold) in holds.into_iter().enumerate() {
                hold.await.unwrap().unwrap();
                self.until(arm, is_held).await;
            }
            outcomes
        }
    }

    fn is_held(now: &Snapshot) -> bool {
        now.state == MotionState::Held
    }

    fn up_rad() -> JointVector {
        JointVector::from_slice(&[0.0, 0.3, 0.0, 0.0, 0.0])
    }

    #[tokio::test]
    async fn an_arm_that_stands_for_the_motion_of_another_keeps_its_torque() {
        let pair = Pair::new(&NodeClock::real(), &up_rad());
        let request = ToolRequest {
            tool: "reset".to_owned(),
            arguments: ReceivedArguments::Value(json!({"arm": "left"})),
            caller: "test".to_owned(),
            who: ActorRank::Operator,
            principal: None,
            hop: None,
            is_step: false,
            arrived: pair.node.stamp_arrival(),
        };
        let resets = Arc::clone(&pair.node).call(request, RemoteCallWatch::unobserved());
        let mut resets = tokio::spawn(resets);
        tokio::select! {
            reply = &mut resets => panic!("{reply:?}"),
            () = pair.until(0, |now| now.state == MotionState::Moving) => {}
        }
        let left = &pair.arm(0).motion;
        left.hold(HoldAt::Once).await.unwrap().unwrap();
        pair.until(0, is_held).await;
        let reply = torque_off(&pair.node, "test").await;
        assert!(
            !reply.done && !reply.text.contains("torque is off"),
            "{reply:?}"
        );
        assert_eq!(pair.arm(1).permits().latched(), None);
        left.stop(ActorRank::Operator, false);
        resets.await.unwrap();
        let reply = torque_off(&pair.node, "test").await;
        assert!(reply.done, "{reply:?}");
    }

    #[tokio::test]
    async fn an_arm_that_stands_until_its_neighbour_goes_on_is_not_said_to_go_on() {
        let pair = Pair::new(&NodeClock::simulated(), &JointVector::zeros(5));
        let outcomes = pair.held_on_the_way().await;
        let [left, right] = [0, 1].map(|arm| pair.arm(arm));
        right.permits().disable();
        let reply = resume(&pair.node, &pair.node.stamp_arrival()).await;
        assert!(!reply.done && !reply.text.contains("goes on"), "{reply:?}");
        assert_eq!(left.motion.snapshot().state, MotionState::Held);
        let (permits, now) = (right.permits(), right.motion.clock().now());
        let scene = pair.scenes.last().unwrap();
        let seen = permits.orders_given();
        permits.enable(scene, now, None, seen).unwrap();
        let reply = resume(&pair.node, &pair.node.stamp_arrival()).await;
        assert!(reply.done, "{reply:?}");
        for outcome in outcomes {
            let outcome = outcome.await.unwrap();
            assert!(
                matches!(outcome, MotionOutcome::Reached { .. }),
                "{outcome:?}"
            );
        }
    }

    #[tokio::test]
    async fn an_emergency_stop_that_nobody_can_verify_is_latched_and_says_so() {
        let bench = test_node(NodeClock::real());
        bench.sim.break_it(SimulatedFault::Unplug);
        let reply = estop(&bench.node, "test").await;
        assert!(!reply.done, "{}", reply.text);
        for part in ["cut the power", "it stays latched until `steadyhand clear`"] {
            assert!(reply.text.contains(part), "{}", reply.text);
        }
        let latched = bench.seat.permits().latched();
        assert!(
            matches!(latched, Some(StopLatch::Emergency(_))),
            "{latched:?}"
        );
    }
}
