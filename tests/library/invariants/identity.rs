//! The arm behind a port is the one that was calibrated, and an unplugged one does not move again by
//! itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadyhand::clock::NodeClock;
use steadyhand::motion::{MotionHandle, MotionState, PortOpener};
use steadyhand::permit::PermitError;
use steadyhand::scene::Scene;
use steadyhand::sim::SimulatedFault;
use steadyhand::units::ClockInstant;

use crate::far_end::{self, Family, Rig};

/// The rig's scene with an arm that knows its servos as they are now.
fn calibrated(rig: Rig) -> Rig {
    let motion = rig.attach().unwrap();
    let servos = motion.snapshot().identity;
    let known = servos
        .iter()
        .map(|servo| (servo.servo.id.to_string(), servo.fingerprint()));
    let mut arm = (*rig.scene.arm).clone();
    arm.file.identity = known.collect::<BTreeMap<_, _>>();
    let scene = Scene {
        arm: Arc::new(arm),
        ..(*rig.scene).clone()
    };
    rig.wire.state().sent.clear();
    Rig {
        scene: Arc::new(scene),
        ..rig
    }
}

/// Returns what an identity covers: what it is called, and a byte of servo 3 that changes it.
fn covered(family: Family) -> Vec<(&'static str, u16, u8)> {
    match family {
        // Another model, or counting over several turns, is refused whatever the arm's file says.
        Family::Sts => vec![
            ("firmware", 1, 9),
            ("least position", 9, 100),
            ("greatest position", 11, 0xF0),
            ("homing offset", 31, 7),
            ("phase", 18, 0x04),
        ],
        _ => vec![
            ("model", 0, 0xE8),
            ("firmware", 6, 47),
            ("least position", 52, 100),
            ("greatest position", 48, 0xF0),
            ("homing offset", 20, 7),
            ("drive mode", 10, 1),
        ],
    }
}

#[tokio::test]
async fn invariant_22_servos_that_are_not_the_calibrated_ones_are_not_armed() {
    for family in Family::ALL {
        assert!(calibrated(Rig::new(family)).attach().is_ok());
        for (what, address, value) in covered(family) {
            let rig = calibrated(Rig::new(family));
            let ids: Vec<u8> = rig.scene.arm.servos().map(|(_, servo)| servo.id).collect();
            // All servos have one firmware; another one in a single servo is refused for that.
            let changed = if what == "firmware" { ids } else { vec![3] };
            let held = rig.scene.arm.file.held.iter().map(|held| held.id);
            for id in changed
                .into_iter()
                .chain(held.filter(|_| what == "firmware"))
            {
                rig.sim
                    .break_it(SimulatedFault::Register { id, address, value });
            }
            let refused = rig.attach().err();
            let refused = refused
                .unwrap_or_else(|| panic!("{family:?}: {what} was not noticed"))
                .to_string();
            assert!(refused.contains("identity"), "{what}: {refused}");
            let named = if what == "firmware" {
                "servo 1"
            } else {
                "servo 3"
            };
            assert!(refused.contains(named), "{what}: {refused}");
            assert_eq!(rig.wire.writes(family), [], "{what}: something was written");
        }
    }
}

#[tokio::test]
async fn invariant_22_a_controller_with_other_limits_is_not_armed() {
    let rig = calibrated(Rig::new(Family::Firmware));
    assert!(rig.attach().is_ok());
    let mut arm = (*rig.scene.arm).clone();
    let first = arm.file.identity.values_mut().next().unwrap();
    "00000000".clone_into(first);
    let scene = Scene {
        arm: Arc::new(arm),
        ..(*rig.scene).clone()
    };
    let rig = Rig {
        scene: Arc::new(scene),
        ..rig
    };
    let refused = rig.attach().err().unwrap().to_string();
    assert!(refused.contains("identity"), "{refused}");
}

#[tokio::test]
async fn invariant_22_another_arm_behind_the_same_port_is_not_driven() {
    for family in Family::ALL {
        let rig = Rig {
            clock: NodeClock::starvation_tolerant(),
            ..Rig::new(family)
        };
        let motion = rig.attach().unwrap();
        rig.sim.break_it(SimulatedFault::Unplug);
        let mut snapshots = motion.watch();
        snapshots
            .wait_for(|snapshot| snapshot.fault.is_some())
            .await
            .unwrap();
        // The homing offset of another calibration.
        let address = if family == Family::Sts { 31 } else { 20 };
        rig.sim.break_it(SimulatedFault::Register {
            id: 1,
            address,
            value: 9,
        });
        rig.sim.break_it(SimulatedFault::Plug);
        let back = snapshots.wait_for(|snapshot| snapshot.state != MotionState::Detached);
        let back = tokio::time::timeout(Duration::from_millis(4500), back).await;
        assert!(back.is_err(), "it was attached");
        rig.sim.break_it(SimulatedFault::Register {
            id: 1,
            address,
            value: 0,
        });
        let mut snapshots = motion.watch();
        let back = snapshots.wait_for(|snapshot| snapshot.state != MotionState::Detached);
        tokio::time::timeout(Duration::from_secs(60), back)
            .await
            .unwrap()
            .unwrap();
    }
}

/// The rig's port, with the moments at which it was opened.
fn counted(rig: &Rig) -> (PortOpener, Arc<Mutex<Vec<ClockInstant>>>) {
    let opened: Arc<Mutex<Vec<ClockInstant>>> = Arc::default();
    let (open, moments) = (rig.opener(), Arc::clone(&opened));
    let opener: PortOpener = Box::new(move |clock| {
        moments.lock().unwrap().push(clock.now());
        open(clock)
    });
    (opener, opened)
}

async fn wait(rig: &Rig, time: Duration) {
    let mut alarm = rig.clock.alarm().unwrap();
    alarm.until(rig.clock.now().after(time)).await.unwrap();
}

#[tokio::test]
async fn invariant_16_an_unplugged_arm_is_sought_less_and_stands_when_back() {
    for family in Family::ALL {
        let rig = Rig {
            clock: NodeClock::starvation_tolerant(),
            ..Rig::new(family)
        };
        let (opener, opened) = counted(&rig);
        let (arm, permits) = (Arc::clone(&rig.scene.arm), Arc::clone(&rig.permits));
        let motion = MotionHandle::start(arm, rig.clock.clone(), permits, opener).unwrap();
        rig.sim.break_it(SimulatedFault::Unplug);
        let mut snapshots = motion.watch();
        let faulted = snapshots.wait_for(|snapshot| snapshot.fault.is_some());
        faulted.await.unwrap();
        let (from, began) = (rig.wire.state().sent.len(), rig.clock.now());
        wait(&rig, Duration::from_secs(4)).await;
        let moments = opened.lock().unwrap().clone();
        let tries = moments.iter().filter(|at| **at > began).count();
        // 0.1, 0.2, 0.4, 0.8 and 1.6 s apart at least.
        assert!(
            (1..=6).contains(&tries),
            "{family:?}: opened {tries} times in 4 s"
        );
        for (pair, least_ms) in moments.windows(2).skip(1).zip([200, 400, 800, 1600]) {
            let gap = pair[1].since(pair[0]);
            assert!(gap >= Duration::from_millis(least_ms), "{gap:?}");
        }
        let sent = rig.wire.state().sent.len() - from;
        assert!(sent <= 4 * tries, "{sent} sends to a port that is gone");

        rig.sim.break_it(SimulatedFault::Plug);
        let back = snapshots.wait_for(|snapshot| snapshot.state != MotionState::Detached);
        // It is looked for every 5 s at the least.
        let back = tokio::time::timeout(Duration::from_secs(60), back).await;
        back.unwrap().unwrap();
        wait(&rig, Duration::from_millis(300)).await;
        let denied = rig.permits.ask(&rig.scene, rig.clock.now());
        assert!(matches!(denied, Err(PermitError::Fault(_))), "{denied:?}");
        let state = rig.wire.state();
        let after = state.sent[from..].iter();
        let written = after
            .flat_map(|(_, bytes)| far_end::requests(family, bytes))
            .any(|request| !far_end::writes(family, &request).is_empty());
        assert!(
            !written,
            "{family:?}: something was written without a reset"
        );
    }
}
