//! Tests the bus tools against simulated servos.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]

mod settings;

use std::path::Path;
use std::time::Duration;

use super::diagnose::{BusDiagnosis, DiagnosisCause, ExpectedServos, diagnose};
use super::dialect::{Dialect, RegisterSetting, ServoRequest};
use super::dynamixel::DynamixelDialect;
use super::feetech::FeetechDialect;
use super::host::HostSystem;
use super::reboot::reboot;
use super::scan::{BusScan, ScanEffort, scan};
use super::setup::{self, SetupChange};
use super::*;
use arm::ArmModel;
use base::clock::NodeClock;
use base::units::{ClockInstant, JointVector};
use link::memory::{FarEnd, MemoryLink};
use sim::{ArmSimulator, SimulatedFault};

struct Bench {
    clock: NodeClock,
    arm: ArmModel,
    sim: ArmSimulator,
}

impl Bench {
    fn new(name: &str) -> Self {
        Self::at(name, 1_000_000)
    }

    fn at(name: &str, baud: u32) -> Self {
        let path = format!(
            "{}/scenes/arms/{name}.toml",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../..")
        );
        let mut file: arm::ArmFile =
            toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        file.baud = baud;
        let arm = ArmModel::new(file).unwrap();
        let sim = ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()));
        Self {
            clock: NodeClock::simulated(),
            arm,
            sim,
        }
    }

    /// Returns an opener of a port that runs at the speed it is opened at.
    fn opener(&self) -> impl FnMut(u32) -> Result<Box<dyn ByteLink>, LinkError> + Send + use<> {
        let (sim, clock) = (self.sim.clone(), self.clock.clone());
        move |baud| {
            let mut device = sim.clone();
            device.tune(baud);
            let link = MemoryLink::new(device, &clock, "bench").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        }
    }

    fn link(&self) -> Box<dyn ByteLink> {
        (self.opener())(self.arm.file.baud).unwrap()
    }

    fn line(&self, protocol: ServoProtocol) -> ServoLine {
        let settings = BusSettings::new(protocol, self.arm.file.baud, SLACK);
        ServoLine::new(self.link(), &self.clock, settings)
    }

    /// Switches a servo's torque on.
    async fn switch_torque_on(&self, protocol: ServoProtocol, id: u8) {
        let authority = MotionAuthority::claim();
        let mut frame = Vec::new();
        let on = [(id, vec![1])];
        let is_known = match protocol {
            ServoProtocol::FeetechSts => FeetechDialect::encode(
                &mut frame,
                ServoRequest::MotionWrite(FeetechDialect::TORQUE_ENABLE, &on, &authority),
            ),
            ServoProtocol::Dynamixel2 => DynamixelDialect::encode(
                &mut frame,
                ServoRequest::MotionWrite(DynamixelDialect::TORQUE_ENABLE, &on, &authority),
            ),
        };
        assert!(is_known);
        let mut link = self.link();
        link.send(&frame).await.unwrap();
        let mut line = self.line(protocol);
        let servo = servo_readout::read_servo(&mut line, id).await.unwrap();
        assert!(servo.unwrap().torque_on);
    }

    async fn scan(&self, first: bool) -> BusScan {
        let effort = ScanEffort {
            slack: SLACK,
            first,
        };
        let mut open = self.opener();
        scan(&mut open, &self.clock, effort, |_, _| {})
            .await
            .unwrap()
    }

    async fn diagnose(&self, expected: Option<&ExpectedServos>) -> BusDiagnosis {
        let empty_host = HostSystem {
            root: "/nowhere".into(),
        };
        let mut open = self.opener();
        diagnose(
            &mut open,
            &self.clock,
            &empty_host,
            "bench",
            expected,
            |_, _| {},
        )
        .await
        .unwrap()
    }
}

fn so101() -> ExpectedServos {
    ExpectedServos {
        arm: "so101".to_owned(),
        protocol: ServoProtocol::FeetechSts,
        baud: 1_000_000,
        ids: (1..=6).collect(),
        beside: Vec::new(),
        supply_v: None,
        others: Vec::new(),
    }
}

fn causes(diagnosis: &BusDiagnosis) -> Vec<DiagnosisCause> {
    diagnosis.findings.iter().map(|it| it.cause).collect()
}

#[tokio::test]
async fn a_scan_finds_servos_at_their_speed_and_writes_nothing() {
    for (name, baud, count, model) in [
        ("so101", 1_000_000, 6, "STS3215"),
        ("so101", 115_200, 6, "STS3215"),
        ("widowx250s", 57_600, 9, "XM430-W350"),
    ] {
        let bench = Bench::at(name, baud);
        let before = bench.sim.true_joints();
        let scan = bench.scan(false).await;
        assert_eq!(scan.found.len(), count, "{name} at {baud}");
        for found in &scan.found {
            assert_eq!((found.baud, found.servo.name.as_str()), (baud, model));
            assert!(found.servo.voltage_v.is_some_and(|volts| volts > 7.0));
            assert!(!found.servo.torque_on);
        }
        assert_eq!(bench.sim.kept_writes(), 0);
        assert_eq!(bench.sim.true_joints(), before);
    }
}

#[tokio::test]
async fn each_cause_is_distinguished_from_the_others() {
    let silent =
        |bench: &Bench| (1..=9).for_each(|id| bench.sim.break_it(SimulatedFault::Silence(id)));
    type Break<'a> = &'a dyn Fn(&Bench);
    let cases: [(&str, u32, Break<'_>, &[DiagnosisCause]); 7] = [
        ("so101", 1_000_000, &|_| {}, &[]),
        ("so101", 1_000_000, &silent, &[DiagnosisCause::NoPower]),
        ("so101", 57_600, &|_| {}, &[DiagnosisCause::WrongBaud]),
        (
            "widowx250s",
            1_000_000,
            &|_| {},
            &[DiagnosisCause::WrongFamily],
        ),
        (
            "so101",
            1_000_000,
            &|bench| bench.sim.break_it(SimulatedFault::Silence(4)),
            &[DiagnosisCause::MissingServo],
        ),
        (
            "so101",
            1_000_000,
            &|bench| bench.sim.break_it(SimulatedFault::Duplicate(2)),
            &[DiagnosisCause::DuplicateId],
        ),
        (
            "so101",
            1_000_000,
            &|bench| {
                silent(bench);
                bench.sim.break_it(SimulatedFault::Echo(true));
            },
            &[DiagnosisCause::EchoOnly],
        ),
    ];
    for (name, baud, break_it, expected) in cases {
        let bench = Bench::at(name, baud);
        break_it(&bench);
        let diagnosis = bench.diagnose(Some(&so101())).await;
        assert_eq!(
            causes(&diagnosis),
            expected,
            "{name} at {baud}: {:#?}",
            diagnosis.findings
        );
        assert_eq!(bench.sim.kept_writes(), 0);
    }
}

#[tokio::test]
async fn a_scan_finds_a_servo_of_low_voltage_and_none_that_is_an_echo() {
    for echo in [false, true] {
        for low in [2, 4] {
            let bench = Bench::at("so101", 1_000_000);
            bench.sim.break_it(SimulatedFault::Echo(echo));
            bench.sim.break_it(SimulatedFault::Silence(3));
            bench
                .sim
                .break_it(SimulatedFault::ErrorBits { id: low, bits: 1 });
            let scan = bench.scan(false).await;
            let ids: Vec<u8> = scan.found.iter().map(|found| found.servo.id).collect();
            assert_eq!(ids, [1, 2, 4, 5, 6], "echo: {echo}");
            assert_eq!(scan.noise.echoes > 0, echo);
            assert_eq!(
                causes(&bench.diagnose(Some(&so101())).await),
                [DiagnosisCause::MissingServo, DiagnosisCause::Complaint]
            );
        }
    }
}

#[tokio::test]
async fn failing_replies_are_distinguished_from_two_servos_with_one_id() {
    let noise = [
        SimulatedFault::DropReplies(0.3),
        SimulatedFault::CorruptReplies {
            share: 0.3,
            bits: 3,
        },
    ];
    for fault in noise {
        let bench = Bench::new("so101");
        bench.sim.break_it(fault);
        let diagnosis = bench.diagnose(Some(&so101())).await;
        assert_eq!(
            causes(&diagnosis),
            [DiagnosisCause::LostReplies],
            "{:#?}",
            diagnosis.findings
        );
        let what = &diagnosis.findings[0].what;
        assert!(what.contains("12 pings to each servo: id"), "{what}");
    }
}

#[tokio::test]
async fn a_servo_with_an_unexpected_id_is_named_with_the_missing_one() {
    let bench = Bench::new("so101");
    let other_ids = ExpectedServos {
        ids: vec![1, 2, 3, 4, 9, 6],
        ..so101()
    };
    let finding = bench.diagnose(Some(&other_ids)).await.findings.remove(0);
    assert_eq!(finding.cause, DiagnosisCause::MissingServo);
    assert_eq!(finding.what, "id 5 answers, id 9 does not");
    assert!(finding.fix.contains("--id 5 --new-id 9"), "{finding:?}");
    let several = ExpectedServos {
        ids: vec![1, 2, 3, 4, 9, 10],
        ..so101()
    };
    let finding = bench.diagnose(Some(&several)).await.findings.remove(0);
    assert_eq!(finding.what, "id 5, 6 answers, id 9, 10 does not");
    assert!(finding.fix.contains("--id N --new-id M"), "{finding:?}");
    let fewer = ExpectedServos {
        ids: (1..=5).collect(),
        ..so101()
    };
    let finding = bench.diagnose(Some(&fewer)).await.findings.remove(0);
    assert_eq!(finding.cause, DiagnosisCause::UnexpectedServo);
    assert_eq!(
        finding.what,
        "id 6 answers, but arm `so101` has no such servo"
    );
}

#[tokio::test]
async fn another_arm_of_the_family_is_named_before_any_servo_is_set_otherwise() {
    let bench = Bench::new("so101");
    for (ids, named) in [
        (
            11..=15,
            "the ids that answer belong to arm `so101`: connect the right arm",
        ),
        (
            1..=4,
            "the ids that answer belong to arm `so101`: connect the right arm",
        ),
        (1..=9, "check the cable from the servo before it"),
    ] {
        let other = ExpectedServos {
            arm: "other".to_owned(),
            ids: ids.collect(),
            others: vec![("so101".to_owned(), (1..=6).collect())],
            ..so101()
        };
        let finding = bench.diagnose(Some(&other)).await.findings.remove(0);
        assert!(finding.fix.starts_with(named), "{finding:?}");
        assert!(finding.fix.contains("arm `so101`"), "{finding:?}");
    }
}

#[tokio::test]
async fn the_servos_own_reports_are_judged() {
    let faults = [
        (
            SimulatedFault::SupplyV(3.4),
            "its supply is 3.4 V (its limits: 4.0 to 14.0 V)",
        ),
        (
            SimulatedFault::Heat {
                id: 3,
                temperature_c: 66.0,
            },
            "it is at 66 °C and switches its torque off at 70 °C",
        ),
        (
            SimulatedFault::ErrorBits { id: 3, bits: 32 },
            "it reports overload: free the arm",
        ),
    ];
    for (fault, expected) in faults {
        let bench = Bench::new("so101");
        bench.sim.break_it(fault);
        let diagnosis = bench.diagnose(Some(&so101())).await;
        let finding = diagnosis.findings.iter().find(|finding| {
            finding.cause == DiagnosisCause::Complaint && finding.what.starts_with("servo 3: ")
        });
        let what = &finding
            .unwrap_or_else(|| panic!("{expected}: {diagnosis:#?}"))
            .what;
        assert!(what.contains(expected), "{what}");
    }
}

#[tokio::test]
async fn servos_that_are_silent_before_others_that_answer_are_no_loose_cable() {
    for (silent, is_cable) in [
        (vec![1, 6], false),
        (vec![3], false),
        (vec![1], false),
        (vec![6], true),
        (vec![5, 6], true),
    ] {
        let bench = Bench::new("so101");
        for id in &silent {
            bench.sim.break_it(SimulatedFault::Silence(*id));
        }
        let diagnosis = bench.diagnose(Some(&so101())).await;
        let finding = &diagnosis.findings[0];
        assert_eq!(finding.cause, DiagnosisCause::MissingServo);
        assert_eq!(
            finding.fix.contains("--new-id"),
            !is_cable,
            "{silent:?}: {finding:?}"
        );
    }
}

#[tokio::test]
async fn a_supply_that_destroys_servos_is_told_once_and_first() {
    let bench = Bench::new("so101");
    for id in 1..=6 {
        bench.sim.break_it(SimulatedFault::Register {
            id,
            address: 14,
            value: 80,
        });
    }
    bench
        .sim
        .break_it(SimulatedFault::ErrorBits { id: 6, bits: 32 });
    bench.sim.break_it(SimulatedFault::SupplyV(12.0));
    let diagnosis = bench.diagnose(Some(&so101())).await;
    let overvoltage = [DiagnosisCause::Overvoltage, DiagnosisCause::Complaint];
    assert_eq!(causes(&diagnosis), overvoltage, "{diagnosis:#?}");
    let finding = &diagnosis.findings[0];
    assert!(
        finding.what.contains("servos 1, 2, 3, 4, 5, 6"),
        "{finding:?}"
    );
    assert!(finding.fix.contains("supply off"), "{finding:?}");
}

#[tokio::test]
async fn servos_are_compared_with_each_other_and_with_the_stated_supply() {
    let diagnose = async |fault: Option<SimulatedFault>, supply_v: Option<f64>| {
        let bench = Bench::new("so101");
        fault
            .into_iter()
            .for_each(|fault| bench.sim.break_it(fault));
        let expected = ExpectedServos {
            supply_v,
            ..so101()
        };
        let diagnosis = bench.diagnose(Some(&expected)).await;
        (causes(&diagnosis), diagnosis.findings)
    };
    let at_4 = SimulatedFault::ServoSupplyV {
        id: 4,
        volts: Some(4.5),
    };
    let (found, findings) = diagnose(Some(at_4), None).await;
    assert_eq!(found, [DiagnosisCause::Complaint]);
    assert!(findings[0].what.starts_with("servo 4: "), "{findings:?}");
    let low = || Some(SimulatedFault::SupplyV(7.0));
    // Half of what they allow, and nobody says that this is their supply.
    assert_eq!(diagnose(low(), None).await.0, [DiagnosisCause::Complaint]);
    assert_eq!(diagnose(low(), Some(7.4)).await.0, []);
    assert_eq!(
        diagnose(low(), Some(12.0)).await.0,
        [DiagnosisCause::Complaint]
    );
    let high = Some(SimulatedFault::SupplyV(12.0));
    assert_eq!(
        diagnose(high, Some(7.4)).await.0,
        [DiagnosisCause::Overvoltage]
    );
}

/// An arm and a satellite receiver on one wire.
struct ArmAndTalker {
    arm: ArmSimulator,
    next: ClockInstant,
}

impl FarEnd for ArmAndTalker {
    fn hear(&mut self, now: ClockInstant, bytes: &[u8]) {
        self.arm.hear(now, bytes);
    }

    fn next_due(&self) -> Option<ClockInstant> {
        Some(
            self.arm
                .next_due()
                .map_or(self.next, |due| due.min(self.next)),
        )
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        self.arm.speak(now, into);
        if now >= self.next {
            self.next = now.after(Duration::from_millis(400));
            into.extend(b"$GPGGA,123519,4807.038,N,01131.000,E\r\n");
        }
    }
}

#[tokio::test]
async fn a_device_that_talks_next_to_good_servos_is_named() {
    let bench = Bench::new("so101");
    let (sim, clock) = (bench.sim.clone(), bench.clock.clone());
    let mut open = move |_| {
        let next = clock.now().after(Duration::from_millis(200));
        let device = ArmAndTalker {
            arm: sim.clone(),
            next,
        };
        let link = MemoryLink::new(device, &clock, "bench").map_err(LinkError::Read)?;
        Ok(Box::new(link) as Box<dyn ByteLink>)
    };
    let empty_host = HostSystem {
        root: "/nowhere".into(),
    };
    let arm = so101();
    let diagnosis = diagnose(
        &mut open,
        &bench.clock,
        &empty_host,
        "bench",
        Some(&arm),
        |_, _| {},
    )
    .await
    .unwrap();
    let finding = diagnosis
        .findings
        .iter()
        .find(|finding| finding.cause == DiagnosisCause::OtherTalk);
    let what = &finding.unwrap_or_else(|| panic!("{diagnosis:#?}")).what;
    assert!(
        what.contains("besides") && what.contains("$GPGGA,"),
        "{what}"
    );
}

/// A line on which bytes arrive all the time, such as that of a wire that hangs free.
struct Flood {
    next: ClockInstant,
    byte: Option<u8>,
    state: u32,
}

impl FarEnd for Flood {
    fn hear(&mut self, _: ClockInstant, _: &[u8]) {}

    fn next_due(&self) -> Option<ClockInstant> {
        Some(self.next)
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        while now >= self.next {
            self.next = self.next.after(Duration::from_millis(1));
            self.state = self
                .state
                .wrapping_mul(1_664_525)
                .wrapping_add(1_013_904_223);
            into.push(self.byte.unwrap_or(self.state.to_be_bytes()[0]));
        }
    }
}

/// Diagnoses a port of an SO-101 with such a device on its far end, anew at each opening.
async fn diagnose_device<D: FarEnd + 'static>(
    device: impl Fn(&NodeClock) -> D + Sync,
) -> BusDiagnosis {
    let clock = NodeClock::simulated();
    let mut open = |_| {
        let link = MemoryLink::new(device(&clock), &clock, "bench").map_err(LinkError::Read)?;
        Ok(Box::new(link) as Box<dyn ByteLink>)
    };
    let nowhere = HostSystem {
        root: "/nowhere".into(),
    };
    let arm = so101();
    let diagnosis = diagnose(&mut open, &clock, &nowhere, "bench", Some(&arm), |_, _| {});
    diagnosis.await.unwrap()
}

#[tokio::test]
async fn a_line_that_is_flooded_is_not_called_silent() {
    for byte in [Some(0xff), None] {
        let diagnosis = diagnose_device(|clock| Flood {
            next: clock.now(),
            byte,
            state: 1,
        });
        let diagnosis = diagnosis.await;
        assert_eq!(causes(&diagnosis), [DiagnosisCause::OtherTalk], "{byte:?}");
        let finding = &diagnosis.findings[0];
        assert!(finding.what.contains("no servo"), "{finding:?}");
        assert!(finding.fix.contains("data wire"), "{finding:?}");
    }
}

#[tokio::test]
async fn an_adapter_that_holds_replies_back_is_distinguished_from_a_dead_bus() {
    let bench = Bench::new("so101");
    let by = Duration::from_millis(16);
    let late = SimulatedFault::LateReplies { share: 1.0, by };
    bench.sim.break_it(late);
    let diagnosis = bench.diagnose(Some(&so101())).await;
    assert_eq!(causes(&diagnosis), [DiagnosisCause::Latency]);
    assert!(
        diagnosis.findings[0].what.contains("16 ms"),
        "{diagnosis:?}"
    );
}

#[tokio::test]
async fn servos_that_reply_very_late_are_distinguished_from_a_dead_bus() {
    let bench = Bench::new("so101");
    let by = Duration::from_millis(45);
    let late = SimulatedFault::LateReplies { share: 1.0, by };
    bench.sim.break_it(late);
    for expected in [None, Some(so101())] {
        let diagnosis = bench.diagnose(expected.as_ref()).await;
        assert_eq!(causes(&diagnosis), [DiagnosisCause::Latency]);
        let what = &diagnosis.findings[0].what;
        assert!(what.contains("45 ms") || what.contains("46 ms"), "{what}");
    }
}

/// An adapter without servos that answers everything it is sent.
struct LoneAdapter {
    answer: fn(&[u8]) -> Vec<u8>,
    delay: Duration,
    answers: Vec<(ClockInstant, Vec<u8>)>,
}

impl FarEnd for LoneAdapter {
    fn hear(&mut self, now: ClockInstant, bytes: &[u8]) {
        let answer = (self.answer)(bytes);
        self.answers.push((now.after(self.delay), answer));
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.answers.first().map(|(at, _)| *at)
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        while self.next_due().is_some_and(|at| at <= now) {
            into.extend(self.answers.remove(0).1);
        }
    }
}

#[tokio::test]
async fn an_adapter_alone_is_told_from_silence_and_from_two_servos() {
    use DiagnosisCause::{EchoOnly, Unreadable};
    type Answer = fn(&[u8]) -> Vec<u8>;
    let inverted: Answer = |bytes| bytes.iter().map(|byte| !byte).collect();
    let seven_bits: Answer = |bytes| bytes.iter().map(|byte| byte & 0x7F).collect();
    let zeros: Answer = |_| vec![0; 6];
    let echo: Answer = <[u8]>::to_vec;
    for (answer, delay_ms, cause) in [
        (inverted, 1, Unreadable),
        (seven_bits, 1, Unreadable),
        (zeros, 1, Unreadable),
        (echo, 1, EchoOnly),
        (echo, 8, EchoOnly),
        (echo, 45, EchoOnly),
    ] {
        let diagnosis = diagnose_device(|_| LoneAdapter {
            answer,
            delay: Duration::from_millis(delay_ms),
            answers: Vec::new(),
        });
        let diagnosis = diagnosis.await;
        let findings = &diagnosis.findings;
        assert_eq!(causes(&diagnosis), [cause], "{delay_ms} ms: {findings:?}");
    }
}

#[tokio::test]
async fn ports_that_cannot_be_opened_say_why() {
    let clock = NodeClock::simulated();
    let port = "/dev/ttyACM0";
    let path = || port.to_owned();
    type Refusal = fn(String) -> LinkError;
    let refusals: [(Refusal, DiagnosisCause); 3] = [
        (|path| LinkError::Missing { path }, DiagnosisCause::NoPort),
        (
            |path| LinkError::Permission { path },
            DiagnosisCause::NoPermission,
        ),
        (
            |path| LinkError::Busy {
                path,
                holder: "process 7".to_owned(),
            },
            DiagnosisCause::AnotherProgram,
        ),
    ];
    for (refusal, cause) in refusals {
        let mut open = |_| Err(refusal(path()));
        let host = HostSystem {
            root: "/nowhere".into(),
        };
        let diagnosis = diagnose(&mut open, &clock, &host, port, None, |_, _| {})
            .await
            .unwrap();
        assert_eq!(causes(&diagnosis), [cause]);
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn modem_manager_and_the_latency_timer_are_read_from_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "proc/77/comm", "ModemManager\n");
    write(root, "sys/class/tty/ttyUSB0/device/latency_timer", "16\n");
    write(root, "sys/class/tty/ttyUSB0/dev", "188:0\n");
    let host = HostSystem { root: root.into() };
    let bench = Bench::new("so101");
    let diagnosis = |host: HostSystem| {
        let (mut open, clock) = (bench.opener(), bench.clock.clone());
        async move {
            let expected = so101();
            let port = "/dev/ttyUSB0";
            let diagnosis = diagnose(&mut open, &clock, &host, port, Some(&expected), |_, _| {});
            causes(&diagnosis.await.unwrap())
        }
    };
    assert_eq!(
        diagnosis(host.clone()).await,
        [DiagnosisCause::ModemManager, DiagnosisCause::Latency]
    );
    // Both are fixed by the udev rules.
    write(root, "run/udev/data/c188:0", "E:ID_MM_DEVICE_IGNORE=1\n");
    write(root, "sys/class/tty/ttyUSB0/device/latency_timer", "1\n");
    assert_eq!(diagnosis(host).await, []);
}

#[cfg(unix)]
#[test]
fn the_process_that_has_a_file_open_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let port = root.join("port");
    write(root, "port", "");
    write(root, "proc/4242/comm", "screen\n");
    std::fs::create_dir_all(root.join("proc/4242/fd")).unwrap();
    std::os::unix::fs::symlink(port.canonicalize().unwrap(), root.join("proc/4242/fd/5")).unwrap();
    let host = HostSystem { root: root.into() };
    assert_eq!(host.users_of(&port), [("screen".to_owned(), 4242)]);
}

#[cfg(unix)]
#[test]
fn the_group_that_may_open_a_port_is_found_by_its_number() {
    #[cfg(unix)]
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let port = root.join("port");
    write(root, "port", "");
    let number = port.metadata().unwrap().gid();
    let groups = |name: &str| {
        write(
            root,
            "etc/group",
            &format!("x:x:4321:\n{name}:x:{number}:u\n"),
        );
    };
    let host = HostSystem { root: root.into() };
    assert_eq!(host.group_of(&port), None);
    groups("uucp");
    assert_eq!(host.group_of(&port).as_deref(), Some("uucp"));
    groups("root");
    assert_eq!(host.group_of(&port), None);
}
