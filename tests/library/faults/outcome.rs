//! Draws, breaks, and judges what came of it on the bytes that left the port.

use std::time::Duration;

use firmware_protocol::Message;
use steadyhand::arm::{ArmFile, ArmModel};
use steadyhand::motion::{MotionHandle, MotionOutcome};
use steadyhand::permit::{ActorRank, PermitError, StopLatch};
use steadyhand::sim::{ArmSimulator, SimulatedFault};
use steadyhand::units::{ClockInstant, JointVector};

use super::case::{Case, Found, Want};
use super::far_end::{self, Family, Rig};

pub(crate) fn long_lines(scene: &mut toml::Table) {
    let design = "polylines = [[[0.0, 0.0], [80.0, 0.0]], [[80.0, 12.0], [0.0, 12.0]]]";
    let design: toml::Table = toml::from_str(design).unwrap();
    scene.insert("design".to_owned(), design.into());
}

/// Draws, breaks, and says what came of it.
pub(crate) async fn carry_out(case: Case) -> Found {
    let mut rig = if case.long {
        Rig::with(case.family, long_lines)
    } else {
        Rig::new(case.family)
    };
    if let Some(other) = case.other {
        rig.sim = another_arm(&rig, other);
    }
    match case.want {
        Want::Untouched => return attach_to_energised(&rig).await,
        Want::Released(off, names) => return released(&rig, &case.before, off, names).await,
        _ => rig.break_all(&case.before),
    }
    let stood = rig.sim.true_joints();
    let motion = match (rig.attach(), &case.want) {
        (Ok(motion), _) => motion,
        (Err(message), Want::Refused(names)) => {
            return refused(&rig, &stood, &message.to_string(), names);
        }
        (Err(message), _) => panic!("{}: {message}", case.done),
    };
    let outcome = rig.draw(&motion, case.during).await;
    match (outcome, case.want) {
        (MotionOutcome::Reached { .. }, Want::Drawn(what, of)) => {
            let count = of(&motion.snapshot().counts);
            assert!(count > 0, "{}: no {what} were counted", case.done);
            stayed_on_the_line(&rig);
            found(format!("drawn; {what} are counted"))
        }
        (MotionOutcome::Reached { .. }, Want::Warned(message)) => {
            let warning = motion.snapshot().warnings;
            let warning = warning.into_iter().find(|one| one.contains(message));
            let warning = warning.unwrap_or_else(|| panic!("{}: no warning", case.done));
            stayed_on_the_line(&rig);
            Found {
                short: "drawn, with a warning".to_owned(),
                message: Some(warning),
            }
        }
        (MotionOutcome::Refused(message), Want::Refused(names)) => {
            refused(&rig, &stood, &message.to_string(), names)
        }
        (MotionOutcome::Faulted(message), Want::Faulted(within_ms, names)) => {
            faulted(&rig, &motion, &message, within_ms, names).await;
            after_a_fault(&rig, &motion, &message, &case.mend, case.done).await;
            Found {
                short: format!("fault, {within_ms} ms"),
                message: Some(message),
            }
        }
        (outcome, _) => panic!("{:?}: {}: {outcome:?}", case.family, case.done),
    }
}

fn found(short: String) -> Found {
    Found {
        short,
        message: None,
    }
}

pub(crate) fn names_all(text: &str, names: &[&str]) {
    for name in names {
        assert!(text.contains(name), "{name:?} is not named in {text:?}");
    }
}

/// A damaged reading must not have bent the line.
pub(crate) fn stayed_on_the_line(rig: &Rig) {
    if rig.family == Family::Firmware {
        // Its segments are judged by the controller, in `firmware-protocol`.
        return;
    }
    let goals = rig.wire.goals(rig.family);
    assert!(goals.len() > 100);
    let steps = goals.windows(2).flat_map(|pair| {
        let pairs = pair[0].ticks.iter().zip(&pair[1].ticks);
        pairs.map(|(a, b)| (a.1 - b.1).abs()).collect::<Vec<_>>()
    });
    // 3 rad/s are 19.6 counts in 10 ms, and one is rounding.
    assert!(steps.max().unwrap() <= 20);
}

fn refused(rig: &Rig, stood: &JointVector, text: &str, names: &[&str]) -> Found {
    names_all(text, names);
    assert!(rig.sim.true_joints().distance_max(stood) < 0.01, "it moved");
    Found {
        short: "refused".to_owned(),
        message: Some(text.to_owned()),
    }
}

async fn faulted(rig: &Rig, motion: &MotionHandle, expected: &str, within_ms: u64, names: &[&str]) {
    names_all(expected, names);
    let broken = rig.wire.state().broken_at.unwrap();
    let limit = Duration::from_millis(within_ms);
    let took = rig.wire.latched_after(rig.clock.now());
    assert!(took <= limit, "{took:?} for {expected:?}");
    let elapsed = rig.clock.now().since(broken);
    assert!(
        elapsed <= limit + VERIFIED,
        "told after {elapsed:?}: {expected:?}"
    );
    assert!(matches!(rig.permits.latched(), Some(StopLatch::Fault(_))));
    let mut snapshots = motion.watch();
    let line = snapshots.wait_for(|snapshot| snapshot.fault.as_deref() == Some(expected));
    line.await.unwrap();
}

/// Nothing moves without a reset, whatever is mended; after it the arm is at rest.
async fn after_a_fault(
    rig: &Rig,
    motion: &MotionHandle,
    text: &str,
    mend: &[SimulatedFault],
    done: &str,
) {
    never_let_go(rig);
    let denied = rig.permits.ask(&rig.scene, rig.clock.now());
    assert!(matches!(denied, Err(PermitError::Fault(_))), "{denied:?}");
    let stands = last_goals(rig);
    let at = rig.sim.true_joints();
    rig.break_all(mend);
    let detached = text.contains("unplugged");
    if detached {
        rig.sim.break_it(SimulatedFault::Plug);
    }
    let mut verified = false;
    // As often as a standing arm is read on a real clock.
    for _ in 0..20 {
        let next = rig.clock.now().after(Duration::from_millis(50));
        rig.clock.jump_to(next);
        rig.sim.advance(next);
        verified = wake(motion).await;
    }
    assert_eq!(last_goals(rig), stands, "{done}: a goal after the fault");
    let moved = rig.sim.true_joints().distance_max(&at);
    assert!(moved < SETTLES_RAD, "{done}: {moved} rad after the fault");
    if detached || mend.is_empty() && !verified {
        return;
    }
    let outcome = rig.reset(motion, ActorRank::Operator).await;
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "{done}: after mending: {outcome:?}"
    );
    assert!(rig.sim.true_joints().distance_max(&rig.scene.rest_rad) < 0.02);
}

/// Nobody took torque off: the arm holds.
fn never_let_go(rig: &Rig) {
    let broken = rig.wire.state().broken_at.unwrap();
    assert!(!takes_torque_off(rig, broken), "torque was taken off");
}

/// Returns whether torque was taken off after a moment.
pub(crate) fn takes_torque_off(rig: &Rig, since: ClockInstant) -> bool {
    let off = |message: &Message| matches!(message, Message::Torque(false) | Message::Park);
    let messages = rig.wire.messages();
    let mut messages = messages.iter();
    if messages.any(|(at, message)| *at >= since && off(message)) {
        return true;
    }
    let state = rig.wire.state();
    let after = state.sent.iter().filter(|(at, _)| *at >= since);
    let mut writes = after
        .flat_map(|(_, bytes)| far_end::requests(rig.family, bytes))
        .flat_map(|request| far_end::writes(rig.family, &request));
    writes.any(|write| write.address == torque_enable(rig.family) && write.data == [0])
}

/// Its address according to the manuals.
fn torque_enable(family: Family) -> u16 {
    if family == Family::Sts { 40 } else { 64 }
}

/// An arm at rest is read when it is asked to stop. Returns whether it was found at rest.
async fn wake(motion: &MotionHandle) -> bool {
    let ticket = motion.stop(ActorRank::Node, false);
    motion.stopped(ticket).await.unwrap().verified
}

/// An arm that lags behind its last goal still reaches it: no further than the leash.
const SETTLES_RAD: f64 = 0.45;

/// Longest time for which a fault may be read for standstill before it is told.
const VERIFIED: Duration = Duration::from_millis(1600);

fn last_goals(rig: &Rig) -> Option<Vec<(u8, i32)>> {
    if rig.family == Family::Firmware {
        return rig.wire.last_segment();
    }
    rig.wire.goals(rig.family).pop().map(|goals| goals.ticks)
}

/// The arm that answers where the scene's was expected.
fn another_arm(rig: &Rig, other: fn(&mut ArmFile)) -> ArmSimulator {
    let mut file = rig.scene.arm.file.clone();
    other(&mut file);
    let arm = ArmModel::new(file).unwrap();
    ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()))
}

/// Takes torque off an arm at rest, some of which is broken by then.
async fn released(rig: &Rig, broken: &[SimulatedFault], off: usize, names: &[&str]) -> Found {
    let motion = rig.attach().unwrap();
    let outcome = rig.reset(&motion, ActorRank::Operator).await;
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "{outcome:?}"
    );
    rig.break_all(broken);
    let released = motion.release().await.unwrap().unwrap();
    assert_eq!(released.off.len(), off, "{released:?}");
    let failed = released.failed.iter();
    let errors: Vec<_> = failed.map(|(_, error)| error.to_string()).collect();
    names_all(&errors.join("; "), names);
    let servos = off + errors.len();
    Found {
        short: format!("torque is off at {off} of {servos}; the rest is named"),
        message: errors.into_iter().next(),
    }
}

async fn attach_to_energised(rig: &Rig) -> Found {
    let motion = rig.attach().unwrap();
    let outcome = rig.reset(&motion, ActorRank::Operator).await;
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "{outcome:?}"
    );
    drop(motion);
    let (held, requested): (JointVector, usize) =
        (rig.sim.true_joints(), rig.wire.state().sent.len());
    let motion = rig.attach().unwrap();
    let snapshot = motion.snapshot();
    assert!(snapshot.energised);
    let written = rig.wire.state().sent[requested..].iter().any(|(_, bytes)| {
        let requests = far_end::requests(rig.family, bytes);
        requests
            .iter()
            .any(|request| !far_end::writes(rig.family, request).is_empty())
    });
    assert!(!written, "attaching wrote something");
    let messages = rig.wire.messages().into_iter().rev();
    let ours = messages.take_while(|(_, message)| !matches!(message, Message::Hello(_)));
    let quiet = |message: &Message| matches!(message, Message::Beat(_) | Message::TimeReq(_));
    assert!(
        ours.map(|(_, message)| message)
            .all(|message| quiet(&message)),
        "attaching told the controller something"
    );
    rig.sim
        .advance(rig.clock.now().after(Duration::from_secs(1)));
    assert!(rig.sim.true_joints().distance_max(&held) < 0.002);
    found("found energised, left as it is: attaching writes nothing".to_owned())
}
