//! The driver for self-built controllers, against the protocol crate's own device.

use super::*;
use crate::firmware::ControllerFault;
use firmware_protocol::message::{Cause, Message};

/// Ticks between a goal and reaching it, with room for the drives' lag.
const LAG_TICKS: usize = 14;

/// Waits until the arm has settled and returns its distance from the goal.
async fn settle(bench: &mut Bench, goal: &JointVector) -> f64 {
    for _ in 0..100 {
        bench.cycle(None).await.unwrap();
        if bench.driver.is_settled() {
            break;
        }
    }
    assert!(bench.driver.is_settled());
    for _ in 0..10 {
        bench.cycle(None).await.unwrap();
    }
    bench.sim.true_joints().distance_max(goal)
}

/// Returns a joint's position on its way out and back, at rest at both ends.
fn swing(start: &JointVector, tick: u32, period: u32) -> JointVector {
    let angle = std::f64::consts::TAU * f64::from(tick) / f64::from(period);
    start.map(|_, at| at + 0.2 * (1.0 - angle.cos()))
}

#[tokio::test]
async fn attaching_pairs_and_moves_nothing() {
    let mut bench = Bench::new("custom");
    let before = bench.sim.true_joints();
    let attached = bench.driver.attach(&mut bench.link).await.unwrap();
    assert_eq!(attached.servos.len(), 5);
    assert!(attached.warnings.is_empty(), "{:?}", attached.warnings);
    assert!(attached.measured.position_rad.distance_max(&before) < 1e-6);
    assert!(!attached.servos[0].torque_on);
    assert_eq!(bench.sim.true_joints(), before);
}

#[tokio::test]
async fn a_motion_is_followed_within_100_ms_and_ends_where_it_was_sent() {
    let mut bench = Bench::energised("custom").await;
    let start = bench.sim.true_joints();
    let mut sent = Vec::new();
    let mut worst = 0.0_f64;
    for tick in 1..=300 {
        let goal = swing(&start, tick, 300);
        sent.push(goal);
        bench.cycle(Some(bench.command(goal))).await.unwrap();
        bench.sim.advance(bench.clock.now());
        if let Some(then) = sent.len().checked_sub(LAG_TICKS) {
            let true_rad = bench.sim.true_joints();
            let distances = sent[then..].iter().map(|goal| goal.distance_max(&true_rad));
            worst = worst.max(distances.fold(f64::INFINITY, f64::min));
        }
    }
    assert!(worst < 0.002, "{worst}");
    let last = sent.last().copied().unwrap();
    assert!(settle(&mut bench, &last).await < 1e-4);
    assert_eq!(bench.driver.counts().corrupt, 0);
}

#[tokio::test]
async fn one_motion_follows_another() {
    let mut bench = Bench::energised("custom").await;
    let start = bench.sim.true_joints();
    for period in [100, 150, 200] {
        for tick in 1..=period / 2 {
            let goal = swing(&start, tick, period);
            bench.cycle(Some(bench.command(goal))).await.unwrap();
        }
        let top = swing(&start, period / 2, period);
        assert!(settle(&mut bench, &top).await < 1e-4);
        for tick in period / 2 + 1..=period {
            let goal = swing(&start, tick, period);
            bench.cycle(Some(bench.command(goal))).await.unwrap();
        }
        assert!(settle(&mut bench, &swing(&start, period, period)).await < 1e-4);
    }
}

#[tokio::test]
async fn goals_that_stop_coming_hold_the_arm_along_its_path_and_it_goes_on() {
    let mut bench = Bench::energised("custom").await;
    let start = bench.sim.true_joints();
    for tick in 1..=300 {
        let goal = swing(&start, tick, 300);
        bench.cycle(Some(bench.command(goal))).await.unwrap();
        if tick == 75 {
            for _ in 0..30 {
                bench.cycle(None).await.unwrap();
            }
        }
    }
    assert!(settle(&mut bench, &start).await < 1e-4);
}

#[tokio::test]
async fn an_emergency_stop_is_the_next_thing_on_the_wire_and_stays() {
    let mut bench = Bench::energised("custom").await;
    let start = bench.sim.true_joints();
    for tick in 1..=75 {
        let goal = swing(&start, tick, 300);
        bench.cycle(Some(bench.command(goal))).await.unwrap();
    }
    bench.driver.halt(HaltMode::Emergency);
    for _ in 0..50 {
        bench.cycle(None).await.unwrap();
    }
    assert!(bench.driver.is_settled() && !bench.driver.is_energised());
    let stands = bench.sim.true_joints();
    // 1.2 mrad a tick at most, and it brakes within two: nowhere near where the queue led.
    assert!(stands.distance_max(&swing(&start, 66, 300)) < 0.02);
    let refused = bench.cycle(Some(bench.command(start))).await;
    assert!(matches!(refused, Err(DriverError::Limp)), "{refused:?}");
    bench.driver.energise(&mut bench.link).await.unwrap();
    assert!(bench.sim.true_joints().distance_max(&stands) < 1e-4);
    bench.cycle(Some(bench.command(stands))).await.unwrap();
}

#[tokio::test]
async fn a_halt_drops_what_is_queued() {
    let mut bench = Bench::energised("custom").await;
    let start = bench.sim.true_joints();
    for tick in 1..=75 {
        let goal = swing(&start, tick, 300);
        bench.cycle(Some(bench.command(goal))).await.unwrap();
    }
    bench.driver.halt(HaltMode::Hold);
    for _ in 0..100 {
        bench.cycle(None).await.unwrap();
    }
    assert!(bench.driver.is_settled());
    let stands = bench.sim.true_joints();
    assert!(stands.distance_max(&swing(&start, 75, 300)) < 0.06);
    assert!(settle(&mut bench, &stands).await < 1e-5);
}

#[tokio::test]
async fn a_node_that_falls_silent_leaves_a_held_arm_that_says_why() {
    let mut bench = Bench::energised("custom").await;
    let start = bench.sim.true_joints();
    for tick in 1..=75 {
        let goal = swing(&start, tick, 300);
        bench.cycle(Some(bench.command(goal))).await.unwrap();
    }
    let later = bench.clock.now().after(Duration::from_millis(400));
    bench.sim.advance(later);
    let stands = bench.sim.true_joints();
    bench.sim.advance(later.after(Duration::from_secs(10)));
    assert_eq!(bench.sim.true_joints(), stands);
    bench.clock.jump_to(later.after(Duration::from_secs(10)));
    let mut result = Ok(());
    for _ in 0..20 {
        result = bench.cycle(None).await.map(|_| ());
        if matches!(&result, Err(error) if !error.is_transient()) {
            break;
        }
    }
    let Err(DriverError::Controller(ControllerFault::Stopped(cause))) = result else {
        panic!("{result:?}");
    };
    assert!(
        matches!(cause, Cause::Underrun | Cause::Deadman),
        "{cause:?}"
    );
    let told = ControllerFault::Stopped(cause).to_string();
    assert!(told.contains("cable"), "{told}");
    assert!(!bench.driver.is_energised());
}

#[tokio::test]
async fn a_controller_that_restarts_is_a_fault_and_is_not_energised_again() {
    let mut bench = Bench::energised("custom").await;
    bench.sim.break_it(SimulatedFault::PowerCycle(1));
    let mut result = Ok(());
    for _ in 0..60 {
        result = bench.cycle(None).await.map(|_| ());
        if result.is_err() {
            break;
        }
    }
    let error = result.unwrap_err();
    assert!(error.to_string().contains("restarted"), "{error}");
    assert!(!bench.driver.is_energised() && !error.is_transient());
    for _ in 0..20 {
        let measured = bench.cycle(None).await;
        let on = measured.is_ok_and(|m| m.servos.iter().any(|s| s.torque_on == Some(true)));
        assert!(!on);
    }
}

#[tokio::test]
async fn a_drive_that_fails_names_its_joint() {
    let mut bench = Bench::energised("custom").await;
    bench
        .sim
        .break_it(SimulatedFault::ErrorBits { id: 3, bits: 1 });
    let mut message = String::new();
    for _ in 0..10 {
        if let Err(error) = bench.cycle(None).await {
            message = error.to_string();
            break;
        }
    }
    assert!(message.contains("servo 3 (elbow_flex)"), "{message}");
    assert!(bench.driver.energise(&mut bench.link).await.is_err());
    bench
        .sim
        .break_it(SimulatedFault::ErrorBits { id: 3, bits: 0 });
    for _ in 0..3 {
        bench.cycle(None).await.unwrap();
    }
    bench.driver.energise(&mut bench.link).await.unwrap();
}

#[tokio::test]
async fn frames_lost_in_both_directions_do_not_stop_a_motion() {
    let mut bench = Bench::energised("custom").await;
    bench.sim.break_it(SimulatedFault::DropReplies(0.05));
    let start = bench.sim.true_joints();
    for tick in 1..=600 {
        let goal = swing(&start, tick, 300);
        bench.cycle(Some(bench.command(goal))).await.unwrap();
    }
    assert!(settle(&mut bench, &start).await < 1e-4);
}

#[tokio::test]
async fn release_switches_torque_off_and_reports_every_joint() {
    let mut bench = Bench::energised("custom").await;
    let released = bench.driver.release(&mut bench.link).await.unwrap();
    assert_eq!((released.off.len(), released.failed.len()), (5, 0));
    assert!(!bench.driver.is_energised());
}

#[tokio::test]
async fn an_arm_that_is_too_fast_for_its_controller_is_not_attached() {
    let mut bench = Bench::new("custom");
    let mut file = bench.arm.file.clone();
    file.joints[2].velocity_max_rad_s = base::units::Finite::new(4.0).unwrap();
    let arm = ArmModel::new(file).unwrap();
    let mut driver = ArmDriver::new(&arm, &bench.clock);
    let message = driver
        .attach(&mut bench.link)
        .await
        .unwrap_err()
        .to_string();
    let expected = "limits for servo 3 (elbow_flex) that are narrower";
    assert!(
        message.contains(expected) && message.contains("velocity_max_rad_s"),
        "{message}"
    );
}

#[tokio::test]
async fn a_silent_controller_is_named_with_its_speed() {
    let mut bench = Bench::new("custom");
    bench.sim.break_it(SimulatedFault::Silence(1));
    let error = bench.driver.attach(&mut bench.link).await.unwrap_err();
    assert!(error.to_string().contains("1000000 baud"), "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn frames_dropped_before_this_session_are_not_counted() {
    let mut bench = Bench::new("custom");
    // Noise of another program that looks like frames.
    for _ in 0..20 {
        bench.link.send(&[7, 1, 2, 3, 4, 5, 6, 0]).await.unwrap();
    }
    bench.driver.attach(&mut bench.link).await.unwrap();
    bench.cycle(None).await.unwrap();
    assert_eq!(bench.driver.counts().corrupt, 0);
    for _ in 0..3 {
        bench.link.send(&[7, 1, 2, 3, 4, 5, 6, 0]).await.unwrap();
    }
    for _ in 0..20 {
        bench.cycle(None).await.unwrap();
    }
    assert_eq!(bench.driver.counts().corrupt, 3);
    // Counters never go back.
    bench.driver.attach(&mut bench.link).await.unwrap();
    assert_eq!(bench.driver.counts().corrupt, 3);
}

#[tokio::test]
async fn repeated_frames_and_cycles_without_a_reading_are_counted() {
    let mut bench = Bench::energised("custom").await;
    let start = bench.sim.true_joints();
    bench.sim.break_it(SimulatedFault::DropReplies(0.3));
    for tick in 1..=200 {
        let goal = swing(&start, tick, 200);
        bench.cycle(Some(bench.command(goal))).await.unwrap();
    }
    let counts = bench.driver.counts().clone();
    assert!(counts.resent > 0 && counts.frames > 100, "{counts:?}");
    assert_eq!(counts.servos[1].retries, counts.resent);
    bench.sim.break_it(SimulatedFault::Silence(1));
    for _ in 0..20 {
        drop(bench.cycle(None).await);
    }
    let servo = &bench.driver.counts().servos[1];
    assert!(servo.blind > 0 && servo.blind_time > PERIOD, "{servo:?}");
}

/// A link at whose far end a controller leaves the last joint out of every STATE.
struct MissingJointLink<'a>(&'a mut MemoryLink<ArmSimulator>, firmware_protocol::Decoder);

impl MissingJointLink<'_> {
    fn shorten(&mut self, mut received: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !received.is_empty() {
            let firmware_protocol::Received::Frame(frame) = self.1.take(&mut received) else {
                continue;
            };
            let mut message = Message::decode(&frame).unwrap();
            if let Message::State(state) = &mut message {
                let joints = state.joints.as_slice();
                state.joints =
                    firmware_protocol::Joints::from_slice(&joints[..joints.len() - 1]).unwrap();
            }
            bytes.extend_from_slice(message.encode(frame.sequence).as_slice());
        }
        bytes
    }
}

impl ByteLink for MissingJointLink<'_> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> link::LinkFuture<'a, ()> {
        self.0.send(bytes)
    }

    fn receive<'a>(
        &'a mut self,
        into: &'a mut [u8],
        until: ClockInstant,
    ) -> link::LinkFuture<'a, usize> {
        Box::pin(async move {
            let mut raw = vec![0; into.len() / 2];
            let count = self.0.receive(&mut raw, until).await?;
            let received = self.shorten(&raw[..count]);
            into[..received.len()].copy_from_slice(&received);
            Ok(received.len())
        })
    }

    fn discard_input(&mut self) -> Result<(), link::LinkError> {
        self.0.discard_input()
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

/// A joint that is left out must not be read as zero.
#[tokio::test]
async fn refuses_a_state_that_leaves_out_a_joint() {
    let mut bench = Bench::new("custom");
    let mut link = MissingJointLink(&mut bench.link, firmware_protocol::Decoder::new());
    let attached = bench.driver.attach(&mut link).await;
    let attached = attached.map(|attached| attached.measured.position_rad);
    let text = attached.unwrap_err().to_string();
    assert!(
        text.contains("4 joints, but the arm's file has 5"),
        "{text}"
    );
}
