//! Tests of the device state machine's guarantees, under every disturbance of the line.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests"
)]

mod rig;

use firmware_protocol::device::{DEADMAN_US, LEAD_US, STALL_US};
use firmware_protocol::message::*;
use firmware_protocol::{Joints, Message};
use proptest::prelude::*;
use rig::{ACCELERATION, Rig, STOP, TICK_US, VELOCITY, config, wave};

#[test]
fn boots_without_torque_and_arms_only_for_its_own_version() {
    let mut rig = Rig::new();
    assert_eq!(rig.device.mode(), Mode::Unpaired);
    assert!(!rig.tick().torque);
    let hello = Hello {
        major: 2,
        minor: 0,
        lost_host: LostHost::Hold,
    };
    let answers = rig.send(Message::Hello(hello));
    assert!(matches!(answers[0], Message::HelloAck(ack) if ack.major == 1));
    assert_eq!(rig.command(Message::Torque(true)), CommandResult::WrongMode);
    rig.hello();
    assert_eq!(rig.device.mode(), Mode::Disarmed);
    assert_eq!(rig.command(Message::Torque(true)), CommandResult::Done);
    assert!(rig.tick().torque);
}

#[test]
fn a_hello_in_a_future_frame_version_is_answered_and_refused() {
    let mut rig = Rig::new();
    rig.hello();
    // Version 2, type HELLO, no payload, with a correct checksum.
    let mut body = vec![2 << 6, 0];
    body.extend(firmware_protocol::crc::crc32c(&body).to_le_bytes());
    let mut stuffed = [0; 32];
    let len = firmware_protocol::cobs::stuff(&body, &mut stuffed).unwrap();
    rig.send_bytes(&[&[0][..], &stuffed[..len], &[0]].concat());
    assert!(matches!(rig.take_sent()[0], Message::HelloAck(_)));
    assert_eq!(rig.device.mode(), Mode::Unpaired);
    assert_eq!(rig.command(Message::Torque(true)), CommandResult::WrongMode);
}

#[test]
fn torque_comes_on_at_the_measured_position_and_not_without_one() {
    let mut rig = Rig::new();
    rig.hello();
    let measured = rig.drives.measured.take();
    rig.tick();
    assert_eq!(
        rig.command(Message::Torque(true)),
        CommandResult::NoPosition
    );
    rig.drives.measured = measured;
    rig.tick();
    assert_eq!(rig.command(Message::Torque(true)), CommandResult::Done);
    let setpoints = rig.tick();
    for (setpoint, measured) in setpoints.joints.iter().zip(&rig.drives.measured.unwrap()) {
        assert_eq!(setpoint.position_urad, measured.position_urad);
    }
}

#[test]
fn follows_a_reference_model_within_two_microradians() {
    let mut rig = Rig::armed();
    let start_us = rig.now_us + 60_000;
    let knots = wave(&rig.here(), 40, 20_000);
    rig.open(start_us);
    let mut previous = rig.here();
    for (index, knot) in knots.iter().enumerate() {
        let (from_us, from) = (start_us + index as u32 * 20_000, previous);
        rig.segment(from_us, 20_000, knot);
        assert_eq!(
            rig.last_ack().status,
            SegmentStatus::Accepted,
            "segment {index}"
        );
        while rig.now_us + 40_000 < from_us {
            rig.tick();
        }
        rig.model.push((from_us, from, *knot));
        previous = *knot;
    }
    rig.run_ms(200);
    assert!(rig.model_error_urad <= 2.0, "{}", rig.model_error_urad);
    assert_eq!(
        (rig.device.mode(), rig.device.cause()),
        (Mode::Idle, Cause::None)
    );
    assert_eq!(rig.here().as_slice(), previous.as_slice());
}

#[test]
fn a_queue_that_runs_dry_is_decelerated_at_the_limit_and_latched() {
    let mut rig = Rig::armed();
    rig.start_wave(10);
    rig.run_ms(1_500);
    assert_eq!(
        (rig.device.mode(), rig.device.cause()),
        (Mode::Stopped, Cause::Underrun)
    );
    assert!(
        rig.worst_acceleration <= f64::from(ACCELERATION) + 4e6,
        "{}",
        rig.worst_acceleration
    );
    assert!(
        rig.worst_acceleration >= f64::from(ACCELERATION) * 0.9,
        "{}",
        rig.worst_acceleration
    );
    rig.open(rig.now_us + 50_000);
    assert_eq!(rig.last_ack().status, SegmentStatus::NotReady);
    assert_eq!(rig.command(Message::Resume), CommandResult::Done);
    assert_eq!(rig.device.mode(), Mode::Idle);
}

#[test]
fn a_hold_stops_on_the_path_and_resume_finishes_it() {
    let mut rig = Rig::armed();
    let goal = rig.start_wave(40);
    rig.run_ms(300);
    assert_eq!(rig.command(Message::Hold), CommandResult::Done);
    rig.run_ms(400);
    assert_eq!(rig.device.mode(), Mode::Held);
    let held = rig.here();
    rig.run_ms(500);
    assert_eq!(rig.here(), held);
    assert_eq!(rig.command(Message::Resume), CommandResult::Done);
    rig.run_ms(1_500);
    assert_eq!(
        (rig.device.mode(), rig.device.cause()),
        (Mode::Idle, Cause::None)
    );
    assert_eq!(rig.here(), goal);
    assert!(
        rig.worst_acceleration <= 2.0 * f64::from(ACCELERATION) + 4e6,
        "{}",
        rig.worst_acceleration
    );
}

#[test]
fn three_missed_beats_hold_the_arm() {
    let mut rig = Rig::armed();
    rig.start_wave(60);
    rig.run_ms(200);
    rig.beats = false;
    rig.run_us(DEADMAN_US + 60_000);
    assert!(matches!(rig.device.mode(), Mode::Stopping | Mode::Held));
    rig.run_ms(400);
    assert_eq!(
        (rig.device.mode(), rig.device.cause()),
        (Mode::Held, Cause::Deadman)
    );
    rig.beats = true;
    rig.run_ms(200);
    assert_eq!(rig.device.mode(), Mode::Held, "beats alone move nothing");
}

#[test]
fn a_lost_host_gets_the_policy_it_chose() {
    for (policy, mode, torque) in [
        (LostHost::Hold, Mode::Held, true),
        (LostHost::Park, Mode::Held, true),
        (LostHost::TorqueOff, Mode::Disarmed, false),
    ] {
        let mut rig = Rig::new();
        rig.send(Message::Hello(Hello {
            major: 1,
            minor: 0,
            lost_host: policy,
        }));
        rig.command(Message::Torque(true));
        rig.beats = false;
        rig.run_ms(6_000);
        assert_eq!(
            (rig.device.mode(), rig.tick().torque),
            (mode, torque),
            "{policy:?}"
        );
        let parked = rig
            .here()
            .iter()
            .zip(&config().park_urad)
            .all(|(knot, &park)| knot.position_urad == park);
        assert_eq!(parked, policy == LostHost::Park);
    }
}

#[test]
fn an_emergency_stop_brakes_from_the_next_tick_whatever_is_parsed() {
    for cut in 0..80 {
        let mut rig = Rig::armed();
        rig.start_wave(40);
        rig.run_ms(300);
        let before = rig.speeds();
        let partial = Message::State(rig.device.state()).encode(0);
        rig.send_bytes(&partial.as_slice()[..cut]);
        rig.send_bytes(&firmware_protocol::frame::ESTOP_BYTES);
        assert_eq!(rig.device.mode(), Mode::Estop);
        rig.tick();
        for (after, before) in rig.speeds().iter().zip(&before) {
            let lost = (before.abs() - after.abs()) as f64;
            let want = (f64::from(STOP) * f64::from(TICK_US) / 1e6).min(before.abs() as f64);
            assert!((lost - want).abs() <= 2.0, "lost {lost}, want {want}");
        }
    }
}

#[test]
fn an_emergency_stop_is_cleared_by_its_nonce_only() {
    let mut rig = Rig::armed();
    rig.start_wave(40);
    rig.run_ms(300);
    rig.send_bytes(&firmware_protocol::frame::ESTOP_BYTES);
    assert_eq!(rig.command(Message::Resume), CommandResult::Latched);
    rig.run_ms(500);
    let nonce = rig.device.state().nonce;
    assert_ne!(nonce, 0);
    assert_eq!(
        rig.command(Message::ClearFault(nonce ^ 2)),
        CommandResult::WrongNonce
    );
    assert_eq!(rig.device.mode(), Mode::Estop);
    assert_eq!(rig.command(Message::ClearFault(nonce)), CommandResult::Done);
    assert_eq!(
        (rig.device.mode(), rig.device.state().nonce),
        (Mode::Idle, 0)
    );
}

#[test]
fn a_failed_drive_brakes_the_others_and_keeps_their_torque() {
    let mut rig = Rig::armed();
    rig.start_wave(40);
    rig.run_ms(300);
    rig.drives.faults = 2;
    assert!(rig.tick().torque);
    rig.run_ms(300);
    assert_eq!(
        (rig.device.mode(), rig.device.cause()),
        (Mode::Fault, Cause::Drive)
    );
    assert_eq!(rig.device.state().drive_faults, 2);
    let nonce = rig.device.state().nonce;
    rig.command(Message::ClearFault(nonce));
    rig.tick();
    assert_eq!(
        rig.device.mode(),
        Mode::Fault,
        "a fault that persists latches again"
    );
}

#[test]
fn a_late_or_broken_segment_is_never_executed_and_stops_the_arm() {
    let late = |rig: &mut Rig| {
        let tail_us = rig.tail_us();
        rig.run_ms(190);
        (tail_us, rig.tail())
    };
    let gap_in_time = |rig: &mut Rig| (rig.tail_us() + 1_500, rig.tail());
    let jump = |rig: &mut Rig| {
        let mut knots = rig.tail();
        knots.as_mut_slice()[0].position_urad += 200_000;
        (rig.tail_us(), knots)
    };
    let runaway = |rig: &mut Rig| {
        let mut knots = rig.tail();
        knots.as_mut_slice()[0].velocity_urad_s = VELOCITY + 1;
        (rig.tail_us(), knots)
    };
    type BadSegment = fn(&mut Rig) -> (u32, Joints<Knot>);
    let cases: [(BadSegment, SegmentStatus, Cause); 4] = [
        (late, SegmentStatus::Late, Cause::Late),
        (
            gap_in_time,
            SegmentStatus::Discontinuous,
            Cause::Discontinuous,
        ),
        (jump, SegmentStatus::Velocity, Cause::Limit),
        (runaway, SegmentStatus::Velocity, Cause::Limit),
    ];
    for (bad_segment, status, cause) in cases {
        let mut rig = Rig::armed();
        rig.start_wave(10);
        rig.run_ms(40);
        let (start_us, end) = bad_segment(&mut rig);
        rig.segment(start_us, 20_000, &end);
        assert_eq!(rig.last_ack().status, status);
        assert_eq!(
            (rig.device.mode(), rig.device.cause()),
            (Mode::Stopping, cause)
        );
        rig.segment(start_us, 20_000, &end);
        assert_eq!(rig.last_ack().status, SegmentStatus::NotReady);
        rig.run_ms(500);
        assert_eq!(
            (rig.device.mode(), rig.device.cause()),
            (Mode::Stopped, cause)
        );
    }
}

#[test]
fn lost_segments_are_requested_and_copies_change_nothing() {
    let mut rig = Rig::armed();
    let start_us = rig.now_us + 60_000;
    rig.open(start_us);
    let knots = wave(&rig.here(), 40, 20_000);
    rig.index += 1;
    rig.segment(start_us + 20_000, 20_000, &knots[1]);
    assert_eq!(
        (rig.last_ack().status, rig.last_ack().next_index),
        (SegmentStatus::Gap, 1)
    );
    rig.index = 1;
    rig.segment(start_us, 20_000, &knots[0]);
    assert_eq!(rig.last_ack().status, SegmentStatus::Accepted);
    rig.index = 1;
    rig.segment(start_us, 20_000, &knots[0]);
    assert_eq!(
        (rig.last_ack().status, rig.last_ack().free),
        (SegmentStatus::Duplicate, 63)
    );
}

#[test]
fn sixty_four_segments_fit_and_the_next_waits() {
    let mut rig = Rig::armed();
    let start_us = rig.now_us + 60_000;
    rig.open(start_us);
    let knots = wave(&rig.here(), 65, 20_000);
    for (index, knot) in knots.iter().enumerate() {
        rig.segment(start_us + index as u32 * 20_000, 20_000, knot);
        let want = if index < 64 {
            SegmentStatus::Accepted
        } else {
            SegmentStatus::Full
        };
        assert_eq!(rig.last_ack().status, want, "{index}");
    }
    assert_eq!(rig.device.mode(), Mode::Running);
}

#[test]
fn an_anchor_must_lie_where_the_arm_stands_and_ahead_in_time() {
    for (offset_urad, ahead_us, status) in [
        (5_001, 50_000, SegmentStatus::Discontinuous),
        (0, LEAD_US - 1_001, SegmentStatus::Late),
        (0, 2_100_000, SegmentStatus::Discontinuous),
        (4_999, LEAD_US, SegmentStatus::Accepted),
    ] {
        let mut rig = Rig::armed();
        let mut here = rig.here();
        here.as_mut_slice()[2].position_urad += offset_urad;
        rig.segment(rig.now_us + ahead_us, 0, &here);
        assert_eq!(rig.last_ack().status, status);
    }
}

#[test]
fn a_copied_command_is_done_once() {
    let mut rig = Rig::armed();
    rig.start_wave(40);
    rig.run_ms(200);
    rig.command(Message::Hold);
    rig.run_ms(400);
    let resume = rig.sequence.wrapping_add(1);
    rig.command(Message::Resume);
    rig.run_ms(100);
    rig.command(Message::Hold);
    rig.run_ms(400);
    rig.send_as(Message::Resume, resume);
    rig.tick();
    assert_eq!(rig.device.mode(), Mode::Held, "an old RESUME moves nothing");
}

#[test]
fn a_pause_between_ticks_holds_the_arm() {
    let mut rig = Rig::armed();
    rig.start_wave(40);
    rig.run_ms(300);
    let before = rig.here();
    rig.now_us += STALL_US + 30_000;
    rig.tick_in_place();
    for (after, before) in rig.here().iter().zip(&before) {
        assert!(
            after.position_urad.abs_diff(before.position_urad)
                <= VELOCITY as u32 * u32::from(TICK_US) / 1_000_000 + 1
        );
    }
    rig.run_ms(400);
    assert_eq!(
        (rig.device.mode(), rig.device.cause()),
        (Mode::Held, Cause::Stalled)
    );
}

#[test]
fn a_new_hello_stops_a_motion_and_makes_its_segments_stale() {
    let mut rig = Rig::armed();
    rig.start_wave(40);
    rig.run_ms(300);
    let epoch = rig.epoch;
    rig.hello();
    assert_ne!(rig.epoch, epoch);
    rig.run_ms(500);
    assert_eq!(
        (rig.device.mode(), rig.device.cause()),
        (Mode::Stopped, Cause::Hello)
    );
}

#[test]
fn the_clock_may_wrap_during_a_motion() {
    let mut rig = Rig::armed_at(u32::MAX - 300_000);
    let goal = rig.start_wave(40);
    rig.run_ms(1_500);
    assert!(rig.now_us < 2_000_000);
    assert_eq!((rig.device.mode(), rig.here()), (Mode::Idle, goal));
}

#[test]
fn a_message_of_a_newer_minor_version_is_counted_and_ignored() {
    let mut rig = Rig::armed();
    let before = rig.device.state().ignored;
    rig.send_bytes(
        firmware_protocol::frame::encode(0x1F, 0, &[1, 2, 3])
            .unwrap()
            .as_slice(),
    );
    assert_eq!(rig.device.state().ignored, before + 1);
    assert_eq!(rig.device.mode(), Mode::Idle);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// After loss, copies, swaps, flipped bits, silences, unexpected commands and invalid segments, the set-points
    /// of each tick are within all limits.
    #[test]
    fn no_line_makes_the_arm_leave_its_limits(script in prop::collection::vec(rig::any_move(), 1..60), seed: u64) {
        let mut rig = Rig::armed();
        rig.disturb(seed);
        for step in &script {
            rig.play(step);
        }
        rig.run_ms(300);
        prop_assert_eq!(&rig.violation, &None);
    }
}
