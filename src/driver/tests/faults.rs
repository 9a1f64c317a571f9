//! Faults of users' buses during a stroke, each injected at the far end of the wire.

use super::fault_link::{CableFaults, FaultLink};
use super::*;
use crate::error::ServoFault;

/// A swing of every joint about where the arm stands, well within its limits.
fn swing(start: JointVector, cycle: u32) -> JointVector {
    let angle = 0.3 * (1.0 - (f64::from(cycle) * 0.01).cos());
    start.map(|_, at| at + angle)
}

/// Largest difference of a reading from the truth a few milliseconds later.
const NEAR_RAD: f64 = 0.1;

#[tokio::test]
async fn lost_replies_are_asked_for_again_within_the_cycle() {
    let mut bench = Bench::energised("so101").await;
    bench.sim.break_it(SimulatedFault::DropReplies(0.05));
    let start = bench.sim.true_joints();
    let (mut blind, mut in_a_row, mut worst) = (0, 0, 0);
    for cycle in 0..6000 {
        match bench.cycle(Some(bench.command(swing(start, cycle)))).await {
            Ok(_) => in_a_row = 0,
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                in_a_row += 1;
                blind += 1;
            }
        }
        worst = worst.max(in_a_row);
    }
    let retries: u64 = bench.driver.counts().servos.iter().map(|s| s.retries).sum();
    // One in twenty of 36 000 replies, and three losses in a row about four times.
    assert!((1500..2500).contains(&retries), "{retries}");
    assert!(blind <= 20 && worst <= 2, "{blind} blind, {worst} in a row");
}

#[tokio::test]
async fn damaged_replies_never_become_positions_or_faults() {
    for bits in 1..=3 {
        let mut bench = Bench::energised("so101").await;
        bench
            .sim
            .break_it(SimulatedFault::CorruptReplies { share: 0.05, bits });
        let start = bench.sim.true_joints();
        for cycle in 0..3000 {
            match bench.cycle(Some(bench.command(swing(start, cycle)))).await {
                Ok(measured) => {
                    let error_rad = measured.position_rad.distance_max(&bench.sim.true_joints());
                    assert!(error_rad < NEAR_RAD, "{error_rad} rad after {bits} flips");
                }
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
        assert!(bench.driver.counts().corrupt > 100);
    }
}

#[tokio::test]
async fn an_overload_names_its_servo_and_the_others_go_on_holding() {
    let mut bench = Bench::energised("so101").await;
    let start = bench.sim.true_joints();
    bench
        .sim
        .break_it(SimulatedFault::ErrorBits { id: 3, bits: 32 });
    let error = bench.cycle(None).await.unwrap_err();
    assert!(
        matches!(
            error,
            DriverError::Device {
                fault: ServoFault::Overload,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.servo().unwrap().id, 3);
    assert!(error.to_string().contains("elbow_flex"), "{error}");
    let torque = |m: &ArmMeasurement| {
        m.servos
            .iter()
            .filter(|s| s.torque_on == Some(true))
            .count()
    };
    assert_eq!(torque(error.measured().unwrap()), 6);
    bench.sim.break_it(SimulatedFault::Silence(3));
    let error = bench.cycle(None).await.unwrap_err();
    assert!(
        matches!(error, DriverError::NoReply { tries: 3, .. }),
        "{error}"
    );
    for _ in 0..50 {
        bench.cycle(None).await.unwrap_err();
    }
    assert!(bench.sim.true_joints().distance_max(&start) < bench.sag_rad() + 0.01);
}

#[tokio::test]
async fn late_and_foreign_frames_never_pass_for_another_reply() {
    let mut bench = Bench::energised("so101").await;
    let start = bench.sim.true_joints();
    for cycle in 0..200 {
        // An unread acknowledgement, a complete present state of servo 9, and half a frame.
        for frame in [
            &[0xFF, 0xFF, 3, 2, 0, 0xFA][..],
            &[0xFF, 0xFF, 9, 10, 0, 0, 1, 0, 0, 0, 0, 120, 25, 0x5A],
            &[0xFF, 0xFF, 3, 10, 0, 0],
        ] {
            bench.sim.break_it(SimulatedFault::Noise(frame.to_vec()));
        }
        let measured = bench
            .cycle(Some(bench.command(swing(start, cycle))))
            .await
            .unwrap();
        assert!(measured.position_rad.distance_max(&bench.sim.true_joints()) < NEAR_RAD);
    }
    bench.sim.break_it(SimulatedFault::LateReplies {
        share: 0.1,
        by: Duration::from_millis(4),
    });
    for cycle in 200..1200 {
        if let Ok(measured) = bench.cycle(Some(bench.command(swing(start, cycle)))).await {
            assert!(measured.position_rad.distance_max(&bench.sim.true_joints()) < NEAR_RAD);
        }
    }
    assert!(bench.driver.counts().foreign > 0);
}

#[tokio::test]
async fn positions_that_wrap_or_change_sign_are_not_believed() {
    for word in [4095, 0, 0x8001, 32767, 2048 + 1200] {
        let mut bench = Bench::energised("so101").await;
        let before = bench.sim.true_joints();
        bench.sim.break_it(SimulatedFault::Position {
            id: 2,
            word: Some(word),
        });
        let error = bench.cycle(None).await.unwrap_err();
        assert!(!error.is_transient(), "{word}: {error}");
        assert_eq!(error.servo().unwrap().id, 2, "{word}: {error}");
        assert!(bench.sim.true_joints().distance_max(&before) < 0.01);
    }
}

#[tokio::test]
async fn a_position_beyond_one_turn_is_a_fault_only_when_it_comes_three_times() {
    let mut bench = Bench::energised("so101").await;
    // The others and most of its own replies are lost, as when one in many was damaged.
    bench.sim.break_it(SimulatedFault::DropReplies(0.7));
    bench.sim.break_it(SimulatedFault::Position {
        id: 2,
        word: Some(6144),
    });
    let mut cycles = 0;
    loop {
        let error = bench.cycle(None).await.unwrap_err();
        let jumps = bench.driver.counts().servos[1].jumps;
        assert_eq!(error.is_transient(), jumps < 3, "{jumps}: {error}");
        cycles += 1;
        if jumps == 3 {
            assert!(error.to_string().contains("servo 2"), "{error}");
            break;
        }
    }
    assert!(cycles > 1, "all of them came in one cycle");
}

#[tokio::test]
async fn a_servo_set_up_for_something_else_is_refused_by_name() {
    for (address, value, word) in [
        (3, 8, "model is 776"),
        (18, 0x10, "phase"),
        (33, 1, "operating mode"),
        (8, 2, "response level"),
        (10, 0x20, "position limits (registers 9 and 11)"),
        (32, 0x10, "homing offset"),
        (1, 9, "its firmware is 3.9, but the others have 3.10"),
    ] {
        let mut bench = Bench::new("so101");
        bench.sim.break_it(SimulatedFault::Register {
            id: 4,
            address,
            value,
        });
        let error = bench.driver.attach(&mut bench.link).await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("servo 4 (wrist_flex)") && text.contains(word),
            "{text}"
        );
    }
    let mut bench = Bench::new("so101");
    bench.sim.break_it(SimulatedFault::Position {
        id: 5,
        word: Some(0x8001),
    });
    let text = bench
        .driver
        .attach(&mut bench.link)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("position -1") && text.contains("servo 5"),
        "{text}"
    );
}

#[tokio::test]
async fn servos_that_wait_before_they_answer_are_warned_of() {
    let mut bench = Bench::new("so101");
    for id in 1..=6 {
        let value = 250;
        bench.sim.break_it(SimulatedFault::Register {
            id,
            address: 7,
            value,
        });
    }
    let attached = bench.driver.attach(&mut bench.link).await.unwrap();
    let message = attached.warnings.join("; ");
    assert!(
        message.contains("500 µs") && message.contains("3.0 ms of every cycle"),
        "{message}"
    );
}

#[tokio::test]
async fn two_servos_with_one_id_keep_the_driver_from_attaching() {
    let mut bench = Bench::new("so101");
    bench.sim.break_it(SimulatedFault::Duplicate(2));
    let text = bench
        .driver
        .attach(&mut bench.link)
        .await
        .unwrap_err()
        .to_string();
    assert!(text.contains("servo 2") && text.contains("id 2"), "{text}");
}

#[tokio::test]
async fn a_servo_that_restarts_is_noticed_within_200_ms() {
    let mut bench = Bench::energised("so101").await;
    let start = bench.sim.true_joints();
    for cycle in 0..50 {
        bench
            .cycle(Some(bench.command(swing(start, cycle))))
            .await
            .unwrap();
    }
    let broken = bench.clock.now();
    bench.sim.break_it(SimulatedFault::PowerCycle(3));
    let error = loop {
        if let Err(error) = bench.cycle(None).await {
            break error;
        }
        assert!(bench.clock.now().since(broken) < Duration::from_millis(200));
    };
    assert!(
        matches!(
            error,
            DriverError::Device {
                fault: ServoFault::TorqueLost,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.servo().unwrap().id, 3);
    // A goal would pull it back: none is sent until the arm is energised again.
    let limp = bench.sim.true_joints();
    for _ in 0..50 {
        bench.cycle(None).await.unwrap();
    }
    assert!(!bench.driver.is_energised());
    let refused = bench.cycle(Some(bench.command(start))).await;
    assert!(matches!(refused, Err(DriverError::Limp)), "{refused:?}");
    bench.driver.energise(&mut bench.link).await.unwrap();
    assert!(bench.sim.true_joints().distance_max(&limp) < 0.2);
}

/// The thread may be held up for longer than a servo takes to restart: the last it has read is that every servo has its torque.
#[tokio::test]
async fn a_supply_that_returns_unseen_leaves_the_arm_limp() {
    for (name, ids) in [("so101", 1..=6), ("widowx250s", 1..=9)] {
        let mut bench = Bench::energised(name).await;
        let start = bench.sim.true_joints();
        for _ in 0..50 {
            bench.cycle(Some(bench.command(start))).await.unwrap();
        }
        let held_up_at = bench.clock.now();
        for id in ids.clone() {
            bench.sim.break_it(SimulatedFault::PowerOff(id));
        }
        bench
            .sim
            .advance(held_up_at.after(Duration::from_millis(300)));
        for id in ids {
            bench.sim.break_it(SimulatedFault::PowerOn(id));
        }
        let goes_on_at = held_up_at.after(Duration::from_millis(600));
        bench.sim.advance(goes_on_at);
        bench.clock.jump_to(goes_on_at);
        let error = bench.cycle(Some(bench.command(start))).await.unwrap_err();
        let fault = matches!(
            error,
            DriverError::Device {
                fault: ServoFault::TorqueLost,
                ..
            }
        );
        assert!(fault && !bench.driver.is_energised(), "{name}: {error}");
        for _ in 0..50 {
            let measured = bench.cycle(None).await.unwrap();
            let mut torque = measured.servos.iter().map(|servo| servo.torque_on);
            assert!(torque.all(|on| on != Some(true)), "{name}");
        }
        let refused = bench.cycle(Some(bench.command(start))).await;
        assert!(matches!(refused, Err(DriverError::Limp)), "{refused:?}");
    }
}

#[tokio::test]
async fn goals_from_before_an_unplugging_are_not_sent_again() {
    let mut bench = Bench::energised("so101").await;
    bench.sim.break_it(SimulatedFault::Unplug);
    assert!(bench.cycle(None).await.unwrap_err().is_unplugged());
    bench.sim.break_it(SimulatedFault::Plug);
    bench.driver.attach(&mut bench.link).await.unwrap();
    let refused = bench
        .cycle(Some(bench.command(bench.sim.true_joints())))
        .await;
    assert!(matches!(refused, Err(DriverError::Limp)), "{refused:?}");
}

#[tokio::test]
async fn a_servo_with_another_supply_than_the_others_is_a_fault() {
    for (arm, fault) in [
        (
            "so101",
            SimulatedFault::ServoSupplyV {
                id: 4,
                volts: Some(4.5),
            },
        ),
        // Its file states 12 V.
        ("vx300", SimulatedFault::SupplyV(16.0)),
    ] {
        let mut bench = Bench::energised(arm).await;
        bench.cycle(None).await.unwrap();
        bench.sim.break_it(fault);
        let mut found = None;
        for _ in 0..20 {
            if let Err(error) = bench.cycle(None).await {
                found = Some(error);
                break;
            }
        }
        let is_named = matches!(
            &found,
            Some(DriverError::Device {
                fault: ServoFault::OddSupply,
                ..
            })
        );
        assert!(is_named, "{arm}: {found:?}");
    }
}

#[tokio::test]
async fn mixed_firmware_goes_on_only_where_a_person_vouches_for_it() {
    for (vouched, version, is_attached) in [
        (&[][..], (3, 9), false),
        (&["3.9", "3.10"][..], (3, 9), true),
        (&["3.9"][..], (3, 9), false),
        (&["3.8", "3.10"][..], (3, 9), false),
        (&["2.9", "3.10"][..], (2, 9), false),
    ] {
        let mut bench = Bench::new("so101");
        for (address, value) in [(0, version.0), (1, version.1)] {
            bench.sim.break_it(SimulatedFault::Register {
                id: 4,
                address,
                value,
            });
        }
        bench.arm.file.firmware = vouched.iter().map(|text| (*text).to_owned()).collect();
        let mut driver = ArmDriver::new(&bench.arm, &bench.clock);
        let attached = driver.attach(&mut bench.link).await;
        assert_eq!(
            attached.is_ok(),
            is_attached,
            "{vouched:?}: {:?}",
            attached.err()
        );
    }
}

#[tokio::test]
async fn a_weak_supply_is_named() {
    let mut bench = Bench::energised("so101").await;
    bench.sim.break_it(SimulatedFault::SupplyV(3.5));
    let error = bench.cycle(None).await.unwrap_err();
    assert!(
        matches!(
            error,
            DriverError::Device {
                fault: ServoFault::Voltage,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn an_adapter_that_echoes_changes_nothing() {
    let mut bench = Bench::new("so101");
    bench.sim.break_it(SimulatedFault::Echo(true));
    bench.driver.attach(&mut bench.link).await.unwrap();
    bench.driver.energise(&mut bench.link).await.unwrap();
    let start = bench.sim.true_joints();
    for cycle in 0..200 {
        bench
            .cycle(Some(bench.command(swing(start, cycle))))
            .await
            .unwrap();
    }
    assert!(bench.driver.counts().echoes >= 200);
}

/// At first it is unknown whether the adapter echoes, and a ping's reply with the voltage bit has the
/// same bytes as the ping.
#[tokio::test]
async fn a_low_voltage_is_reported_as_such_through_every_adapter() {
    for echo in [false, true] {
        for ids in [&[1][..], &[2], &[6], &[1, 2, 3, 4, 5, 6]] {
            let mut bench = Bench::new("so101");
            bench.sim.break_it(SimulatedFault::Echo(echo));
            for id in ids {
                bench
                    .sim
                    .break_it(SimulatedFault::ErrorBits { id: *id, bits: 1 });
            }
            let attached = bench.driver.attach(&mut bench.link).await.unwrap();
            // Latency counts from when a reply came, not from when it was recognised.
            assert!(
                attached.latency < Duration::from_millis(2),
                "{:?}",
                attached.latency
            );
            for (servo, id) in attached.servos.iter().zip(1..) {
                assert_eq!(servo.error_bits & 1 != 0, ids.contains(&id), "{id}");
            }
            assert_eq!(bench.driver.counts().echoes > 0, echo);
            let error = bench.cycle(None).await.unwrap_err();
            let voltage = ServoFault::Voltage;
            assert!(
                matches!(&error, DriverError::Device { fault, .. } if *fault == voltage),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn a_servo_that_is_silent_does_not_answer_by_an_echo() {
    for silent in [1, 2, 6] {
        let mut bench = Bench::new("so101");
        bench.sim.break_it(SimulatedFault::Echo(true));
        bench.sim.break_it(SimulatedFault::Silence(silent));
        let error = bench.driver.attach(&mut bench.link).await.unwrap_err();
        assert!(matches!(error, DriverError::NoReply { .. }), "{error}");
        assert_eq!(error.servo().unwrap().id, silent);
    }
}

#[tokio::test]
async fn an_unplugged_adapter_comes_back_without_a_movement() {
    let mut bench = Bench::energised("so101").await;
    for _ in 0..100 {
        // It sinks by its weight.
        bench.cycle(None).await.unwrap();
    }
    bench.sim.break_it(SimulatedFault::Unplug);
    for _ in 0..10 {
        let before = bench.driver.counts().transactions;
        assert!(bench.cycle(None).await.unwrap_err().is_unplugged());
        assert!(bench.driver.counts().transactions <= before + 1);
    }
    bench.sim.break_it(SimulatedFault::Plug);
    let before = bench.sim.true_joints();
    let attached = bench.driver.attach(&mut bench.link).await.unwrap();
    assert!(attached.servos.iter().all(|servo| servo.torque_on));
    bench.driver.energise(&mut bench.link).await.unwrap();
    assert!(bench.sim.true_joints().distance_max(&before) < 5.0 * TICK_RAD);
}

#[tokio::test]
async fn one_servo_that_does_not_answer_does_not_keep_the_others_energised() {
    let mut bench = Bench::energised("so101").await;
    bench.sim.break_it(SimulatedFault::Silence(2));
    let released = bench.driver.release(&mut bench.link).await.unwrap();
    assert_eq!(released.off.len(), 5);
    assert_eq!(released.failed.first().unwrap().0.id, 2);
}

#[tokio::test]
async fn nothing_is_written_to_permanent_memory() {
    let mut bench = Bench::energised("so101").await;
    bench
        .cycle(Some(bench.command(JointVector::zeros(5))))
        .await
        .unwrap();
    bench.driver.release(&mut bench.link).await.unwrap();
    assert_eq!(bench.sim.kept_writes(), 0);
}

#[tokio::test]
async fn a_bad_cable_costs_retries_and_never_a_wrong_position() {
    for name in ["so101", "widowx250s"] {
        let mut bench = Bench::energised(name).await;
        let faults = CableFaults {
            lost: 0.0003,
            damaged: 0.0003,
            unplugged: false,
        };
        let inner = MemoryLink::new(bench.sim.clone(), &bench.clock, "bad cable").unwrap();
        let mut link = FaultLink::new(inner, faults, 7);
        let start = bench.sim.true_joints();
        for cycle in 0..2000 {
            let next = bench.clock.now().after(PERIOD);
            let command = bench.command(swing(start, cycle));
            match bench.driver.follow(&mut link, Some(&command), next).await {
                Ok(measured) => {
                    let error_rad = measured.position_rad.distance_max(&bench.sim.true_joints());
                    assert!(error_rad < NEAR_RAD, "{error_rad}");
                }
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
            bench.clock.jump_to(next);
        }
        let counts = bench.driver.counts();
        assert!(counts.corrupt > 0 && counts.servos.iter().any(|servo| servo.retries > 0));
        link.set(CableFaults {
            unplugged: true,
            ..faults
        });
        let deadline = bench.clock.now().after(PERIOD);
        let lost = bench.driver.follow(&mut link, None, deadline).await;
        assert!(lost.unwrap_err().is_unplugged());
    }
}

/// Limits beyond the one turn that the servo counts would otherwise show in the middle of a motion.
#[tokio::test]
async fn refuses_a_joint_that_leaves_its_servos_turn() {
    for name in ["so101", "widowx250s"] {
        let mut bench = Bench::new(name);
        let mut file = bench.arm.file.clone();
        file.joints[1].servos[0].zero_tick = 3900;
        let arm = ArmModel::new(file.clone()).unwrap();
        let mut driver = ArmDriver::new(&arm, &bench.clock);
        let message = driver.attach(&mut bench.link).await;
        let message = message.unwrap_err().to_string();
        assert!(message.contains("one turn"), "{message}");
        assert!(message.contains("homing offset"), "{message}");
        // Without the arm, the same is known from its file.
        let unattached = crate::check_ranges(&arm).unwrap_err();
        assert_eq!(unattached.to_string(), message);
        crate::check_ranges(&bench.arm).unwrap();
        let joint = &mut file.joints[1];
        (joint.lower_rad, joint.upper_rad) = [-110.0, 110.0]
            .map(|rad| base::units::Finite::new(rad).unwrap())
            .into();
        let in_degrees = crate::check_ranges(&ArmModel::new(file).unwrap()).unwrap_err();
        let message = in_degrees.to_string();
        assert!(message.contains("radians"), "{message}");
        assert!(!message.contains("homing offset"), "{message}");
    }
}
