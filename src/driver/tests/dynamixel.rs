//! Tests of what only Dynamixel servos have: a watchdog, coupled servos, replies in one packet.

use super::*;
use crate::error::ServoFault;

#[tokio::test]
async fn an_arm_is_attached_energised_and_follows_a_wave() {
    let mut bench = Bench::new("widowx250s");
    let before = bench.sim.true_joints();
    let attached = bench.driver.attach(&mut bench.link).await.unwrap();
    assert_eq!(attached.servos.len(), 9);
    assert!(attached.warnings.is_empty(), "{:?}", attached.warnings);
    assert_eq!(bench.sim.true_joints(), before);
    bench.driver.energise(&mut bench.link).await.unwrap();
    for cycle in 0..1000 {
        let swing = 0.3 * (1.0 - (f64::from(cycle) * 0.01).cos());
        let goal = before.map(|_, angle| angle + swing);
        let measured = bench.cycle(Some(bench.command(goal))).await.unwrap();
        let error_rad = measured.position_rad.distance_max(&bench.sim.true_joints());
        assert!(error_rad < 0.02, "{error_rad}");
    }
    let counts = bench.driver.counts();
    assert!(counts.servos.iter().all(|s| (s.retries, s.jumps) == (0, 0)));
    let measured = bench.cycle(None).await.unwrap();
    assert!(
        measured
            .servos
            .iter()
            .all(|s| s.voltage_v.is_some_and(|volts| volts > 11.0))
    );
    assert_eq!(bench.sim.kept_writes(), 0);
}

/// Attaches the first arm where the second one is connected, some of whose servos are silent; returns the result.
async fn attach_other(
    arm: &str,
    connected: &str,
    silent: &[u8],
) -> Result<AttachReport, DriverError> {
    let mut bench = Bench::new(connected);
    let silent = silent.iter().copied().map(SimulatedFault::Silence);
    silent.for_each(|fault| bench.sim.break_it(fault));
    bench.driver = ArmDriver::new(&arm_file(arm), &bench.clock);
    bench.driver.attach(&mut bench.link).await
}

#[tokio::test]
async fn another_arm_of_the_family_is_refused_by_its_ids() {
    for (arm, connected) in [
        ("koch", "widowx250s"),
        ("koch", "vx300"),
        ("koch", "openmanipulator-x"),
        ("vx300", "widowx250s"),
        ("openmanipulator-x", "koch"),
    ] {
        let error = attach_other(arm, connected, &[]).await.unwrap_err();
        let DriverError::OtherArm { other, .. } = &error else {
            panic!("{arm} where {connected} is connected: {error}");
        };
        assert_eq!(*other, connected);
    }
    // A cable may be loose as well.
    let error = attach_other("widowx250s", "koch", &[]).await.unwrap_err();
    assert!(matches!(error, DriverError::NoReply { .. }), "{error}");
}

#[tokio::test]
async fn a_servo_that_may_be_of_another_arm_is_a_warning() {
    let attached = attach_other("koch", "widowx250s", &[8, 9]).await.unwrap();
    let [warning] = attached.warnings.as_slice() else {
        panic!("{:?}", attached.warnings);
    };
    assert!(
        warning.starts_with("id 7 answers, but arm `koch` has no such servo"),
        "{warning}"
    );
}

#[tokio::test]
async fn the_watchdog_stops_an_arm_whose_host_has_died() {
    let mut bench = Bench::energised("widowx250s").await;
    let start = bench.sim.true_joints();
    let far = start.map(|_, angle| angle + 1.0);
    for _ in 0..10 {
        bench.cycle(Some(bench.command(far))).await.unwrap();
    }
    bench
        .clock
        .jump_to(bench.clock.now().after(Duration::from_millis(605)));
    bench.sim.advance(bench.clock.now());
    let stopped = bench.sim.true_joints();
    bench
        .clock
        .jump_to(bench.clock.now().after(Duration::from_secs(2)));
    bench.sim.advance(bench.clock.now());
    assert!(bench.sim.true_joints().distance_max(&stopped) < 0.02);
    assert!(stopped.distance_max(&far) > 0.3);
    // Nothing moves again before the arm is energised again.
    let error = loop {
        if let Err(error) = bench.cycle(Some(bench.command(far))).await {
            break error;
        }
        assert!(bench.driver.counts().cycles < 50);
    };
    assert!(
        matches!(
            error,
            DriverError::Device {
                fault: ServoFault::Watchdog,
                ..
            }
        ),
        "{error}"
    );
    assert!(bench.sim.true_joints().distance_max(&stopped) < 0.02);
    bench.driver.energise(&mut bench.link).await.unwrap();
    assert!(bench.sim.true_joints().distance_max(&stopped) < 0.02);
    bench.cycle(Some(bench.command(stopped))).await.unwrap();
}

#[tokio::test]
async fn a_servo_set_up_for_something_else_is_refused_by_name() {
    for (address, value, expected) in [
        (11, 4, "operating mode (register 11) is 4"),
        (10, 4, "drive mode"),
        (12, 2, "secondary id (register 12) is 2"),
        (0, 1, "not a Dynamixel X servo"),
    ] {
        let mut bench = Bench::new("widowx250s");
        bench.sim.break_it(SimulatedFault::Register {
            id: 3,
            address,
            value,
        });
        let message = bench
            .driver
            .attach(&mut bench.link)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("servo 3 (shoulder)") && message.contains(expected),
            "{message}"
        );
    }
}

#[tokio::test]
async fn servos_that_cannot_answer_together_are_asked_one_by_one() {
    let mut bench = Bench::energised("widowx250s").await;
    bench.sim.break_it(SimulatedFault::CorruptReplies {
        share: 0.05,
        bits: 2,
    });
    let start = bench.sim.true_joints();
    let mut read_cycles = 0;
    for cycle in 0..2000 {
        let goal = start.map(|_, angle| angle + 0.3 * (f64::from(cycle) * 0.01).sin());
        match bench.cycle(Some(bench.command(goal))).await {
            Ok(measured) => {
                read_cycles += 1;
                let error_rad = measured.position_rad.distance_max(&bench.sim.true_joints());
                assert!(error_rad < 0.1, "{error_rad}");
            }
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
    assert!(read_cycles > 1900, "{read_cycles}");
}

#[tokio::test]
async fn a_hardware_error_is_named_and_needs_a_restart() {
    let mut bench = Bench::energised("widowx250s").await;
    bench
        .sim
        .break_it(SimulatedFault::ErrorBits { id: 5, bits: 0x20 });
    let error = loop {
        match bench.cycle(None).await {
            Ok(_) => {}
            Err(error) => break error,
        }
        assert!(bench.driver.counts().cycles < 50);
    };
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
    assert!(error.to_string().contains("servo 5 (elbow)"), "{error}");
    assert!(bench.driver.energise(&mut bench.link).await.is_err());
    bench.sim.break_it(SimulatedFault::PowerCycle(5));
    bench.driver.attach(&mut bench.link).await.unwrap();
    bench.driver.energise(&mut bench.link).await.unwrap();
}

#[tokio::test]
async fn a_restart_of_one_of_two_coupled_servos_is_noticed_within_200_ms() {
    let mut bench = Bench::energised("widowx250s").await;
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
}

/// Returns the length of each servo's block, for each sync write of goals in what was sent.
fn goal_blocks(sent: &[u8]) -> Vec<usize> {
    let header = [0xFF, 0xFF, 0xFD, 0x00, 0xFE];
    let mut lengths = Vec::new();
    for frame in sent.windows(12) {
        if frame.starts_with(&header) && frame[7] == 0x83 && [108, 116].contains(&frame[8]) {
            lengths.push(usize::from(frame[10]));
        }
    }
    lengths
}

#[tokio::test]
async fn caps_are_sent_on_change_and_now_and_then_else_goals_alone() {
    let mut bench = Bench::energised("widowx250s").await;
    let mut link = RecordingLink(&mut bench.link, Vec::new());
    let start = bench.sim.true_joints();
    let fast = bench.arm.limits.velocity_rad_s;
    for cycle in 0..60 {
        let slower = if cycle < 30 { 1.0 } else { 0.5 };
        let command = JointCommand {
            goal_rad: start,
            velocity_cap_rad_s: fast.map(|_, cap| cap * slower),
        };
        let next = bench.clock.now().after(PERIOD);
        let cycle = bench.driver.follow(&mut link, Some(&command), next);
        cycle.await.unwrap();
        bench.clock.jump_to(next);
    }
    let lengths = goal_blocks(&link.1);
    assert_eq!(lengths.len(), 60);
    assert!(lengths.iter().all(|length| [4, 12].contains(length)));
    assert_eq!(lengths[..4], [12, 12, 12, 4]);
    assert_eq!(lengths[29..34], [4, 12, 12, 12, 4]);
}

#[tokio::test]
async fn a_reboot_clears_a_latch_and_is_refused_while_the_arm_is_held() {
    let mut bench = Bench::energised("widowx250s").await;
    let held = bench.driver.reboot(&mut bench.link, 4).await;
    assert!(
        matches!(held, Err(DriverError::Bus(BusError::NoReboot { id: 4 }))),
        "{held:?}"
    );
    bench
        .sim
        .break_it(SimulatedFault::ErrorBits { id: 4, bits: 0x20 });
    let mut message = None;
    for _ in 0..20 {
        if let Err(error) = bench.cycle(None).await {
            message = Some(error.to_string());
        }
    }
    assert!(message.is_some_and(|message| message.contains("servo 4")));
    bench.driver.release(&mut bench.link).await.unwrap();
    bench.driver.reboot(&mut bench.link, 4).await.unwrap();
    bench.driver.energise(&mut bench.link).await.unwrap();
    let unknown = bench.driver.reboot(&mut bench.link, 99).await;
    assert!(matches!(
        unknown,
        Err(DriverError::Bus(BusError::NoReboot { id: 99 }))
    ));
}

#[tokio::test]
async fn one_servo_with_old_firmware_makes_all_be_asked_one_by_one() {
    let mut bench = Bench::new("widowx250s");
    bench.sim.break_it(SimulatedFault::Register {
        id: 5,
        address: 6,
        value: 40,
    });
    bench.driver.attach(&mut bench.link).await.unwrap();
    bench.driver.energise(&mut bench.link).await.unwrap();
    let mut link = RecordingLink(&mut bench.link, Vec::new());
    let next = bench.clock.now().after(PERIOD);
    bench.driver.follow(&mut link, None, next).await.unwrap();
    let request_count = |instruction: u8| {
        let header = [0xFF, 0xFF, 0xFD, 0x00, 0xFE];
        let frames = link.1.windows(8);
        frames
            .filter(|frame| frame.starts_with(&header) && frame[7] == instruction)
            .count()
    };
    assert_eq!(request_count(0x8A), 0);
    assert!(request_count(0x82) > 0);
}

/// Makes servo 3, which turns the shoulder together with servo 2, report another position.
fn report_position(bench: &Bench, ticks: i32) {
    let word = u16::try_from(ticks).ok();
    bench.sim.break_it(SimulatedFault::Position { id: 3, word });
}

fn position_ticks(measured: &ArmMeasurement, id: u8) -> i32 {
    let mut servos = measured.servos.iter();
    let servo = servos.find(|servo| servo.id == id).unwrap();
    servo.position_ticks.unwrap()
}

fn check_twins_differ(error: &DriverError) {
    let text = error.to_string();
    assert!(matches!(error, DriverError::TwinsDiffer { .. }), "{text}");
    assert!(
        text.contains("servo 3") && text.contains("servo 2"),
        "{text}"
    );
    assert!(!error.is_transient());
}

#[tokio::test]
async fn servos_of_one_joint_that_differ_are_not_attached() {
    let mut bench = Bench::new("widowx250s");
    let attached = bench.driver.attach(&mut bench.link).await.unwrap();
    report_position(&bench, position_ticks(&attached.measured, 3) + 250);
    let error = bench.driver.attach(&mut bench.link).await.unwrap_err();
    check_twins_differ(&error);
}

#[tokio::test]
async fn servos_of_one_joint_that_come_apart_are_a_fault() {
    let mut bench = Bench::energised("widowx250s").await;
    let measured = bench.cycle(None).await.unwrap();
    let ticks = position_ticks(&measured, 3);
    for off_ticks in [20, 40] {
        report_position(&bench, ticks + off_ticks);
        bench.cycle(None).await.unwrap();
    }
    report_position(&bench, ticks + 70);
    check_twins_differ(&bench.cycle(None).await.unwrap_err());
}

/// A link at whose far end servo 3 reports this position to the next request only.
struct OnceDamagedLink<'a>(&'a mut Bench, Option<i32>);

impl ByteLink for OnceDamagedLink<'_> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> link::LinkFuture<'a, ()> {
        let word = self.1.take().map(|ticks| u16::try_from(ticks).unwrap());
        let damage = SimulatedFault::Position { id: 3, word };
        self.0.sim.break_it(damage);
        self.0.link.send(bytes)
    }

    fn receive<'a>(
        &'a mut self,
        into: &'a mut [u8],
        until: ClockInstant,
    ) -> link::LinkFuture<'a, usize> {
        self.0.link.receive(into, until)
    }

    fn discard_input(&mut self) -> Result<(), link::LinkError> {
        self.0.link.discard_input()
    }

    fn name(&self) -> &str {
        self.0.link.name()
    }
}

/// An eight-bit checksum lets damaged replies pass.
#[tokio::test]
async fn one_damaged_reply_of_a_servo_with_a_twin_is_no_fault() {
    let mut bench = Bench::energised("widowx250s").await;
    let measured = bench.cycle(None).await.unwrap();
    let ticks = position_ticks(&measured, 3);
    let mut driver = ArmDriver::new(&bench.arm, &bench.clock);
    std::mem::swap(&mut driver, &mut bench.driver);
    let deadline = bench.clock.now().after(PERIOD);
    let mut link = OnceDamagedLink(&mut bench, Some(ticks + 70));
    let measured = driver.cycle(&mut link, None, deadline).await.unwrap();
    assert_eq!(position_ticks(&measured, 3), ticks);
    assert_eq!(link.1, None);
}
