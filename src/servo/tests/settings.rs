//! Settings that outlive a servo's power: written with torque off, read back, locked again.

use super::*;

async fn change(
    bench: &Bench,
    protocol: ServoProtocol,
    id: u8,
    change: &SetupChange,
) -> Result<Vec<String>, ServiceError> {
    let mut line = bench.line(protocol);
    let steps = setup::plan(&mut line, id, change, &[]).await?;
    setup::apply_steps(&mut line, id, &steps).await?;
    let id_now = change.id.unwrap_or(id);
    let rest = SetupChange {
        id: None,
        ..change.clone()
    };
    let remaining = setup::plan(&mut line, id_now, &rest, &[]);
    assert!(remaining.await?.is_empty(), "something is still to be done");
    Ok(steps
        .iter()
        .map(|step| format!("{} {} to {}", step.name, step.before, step.after))
        .collect())
}

#[tokio::test]
async fn settings_are_written_with_torque_off_read_back_and_locked_again() {
    for (name, protocol) in [
        ("so101", ServoProtocol::FeetechSts),
        ("widowx250s", ServoProtocol::Dynamixel2),
    ] {
        let bench = Bench::new(name);
        bench.switch_torque_on(protocol, 2).await;
        let requested = SetupChange {
            id: Some(21),
            return_delay: Some(Duration::from_micros(20)),
            limits_ticks: Some((500, 3500)),
            repair: true,
            home: false,
            gain_p: None,
        };
        let steps = change(&bench, protocol, 2, &requested).await.unwrap();
        assert_eq!(steps.last().unwrap(), "id 2 to 21");
        assert!(
            steps.contains(&"least position 0 to 500".to_owned()),
            "{steps:?}"
        );
        assert!(bench.sim.kept_writes() >= 4);
        let scan = bench.scan(true).await;
        let found = scan
            .found
            .iter()
            .find(|found| found.servo.id == 21)
            .unwrap();
        assert_eq!(found.servo.return_delay_us, 20);
        assert!(!found.servo.torque_on);
        // A locked servo takes no setting.
        let kept = bench.sim.kept_writes();
        let scan_again = bench.scan(true).await;
        assert_eq!(
            (scan_again.found.len(), bench.sim.kept_writes()),
            (scan.found.len(), kept)
        );
    }
}

/// Replies of one length look alike: one that comes late must not be taken for the position.
#[tokio::test]
async fn a_servo_is_homed_by_its_own_position_on_a_slow_line_too() {
    let home = SetupChange {
        home: true,
        ..SetupChange::default()
    };
    for late_ms in [0, 8, 12, 20] {
        let bench = Bench::new("so101");
        let by = Duration::from_millis(late_ms);
        let late = SimulatedFault::LateReplies { share: 0.5, by };
        bench.sim.break_it(late);
        for id in 1..=6 {
            let mut line = bench.line(ServoProtocol::FeetechSts);
            match setup::plan(&mut line, id, &home, &[]).await {
                Ok(steps) => assert!(steps.is_empty(), "{late_ms} ms: {steps:?}"),
                Err(error) => assert!(late_ms > 0, "{error}"),
            }
        }
    }
}

#[tokio::test]
async fn a_latched_servo_restarts_on_request() {
    let bench = Bench::new("widowx250s");
    bench
        .sim
        .break_it(SimulatedFault::ErrorBits { id: 5, bits: 0x20 });
    let mut line = bench.line(ServoProtocol::Dynamixel2);
    let latched = servo_readout::read_servo(&mut line, 5).await.unwrap();
    assert_ne!(latched.unwrap().error_bits, 0);
    reboot(&mut line, 5).await.unwrap();
    let free = servo_readout::read_servo(&mut line, 5).await.unwrap();
    assert_eq!(free.unwrap().error_bits, 0);
    let missing = reboot(&mut line, 99).await;
    assert!(
        matches!(missing, Err(ServiceError::NoServo { id: 99, .. })),
        "{missing:?}"
    );
    assert_eq!(bench.sim.kept_writes(), 0);
}

#[tokio::test]
async fn a_family_without_such_a_request_says_so() {
    let bench = Bench::new("so101");
    let mut line = bench.line(ServoProtocol::FeetechSts);
    let refused = reboot(&mut line, 2).await;
    assert!(
        matches!(
            refused,
            Err(ServiceError::Line(BusError::NoReboot { id: 2 }))
        ),
        "{refused:?}"
    );
}

#[tokio::test]
async fn impossible_changes_write_nothing() {
    let bench = Bench::new("so101");
    let id = |id| SetupChange {
        id: Some(id),
        ..SetupChange::default()
    };
    let refused = change(&bench, ServoProtocol::FeetechSts, 2, &id(3)).await;
    assert!(
        matches!(refused, Err(ServiceError::Taken { id: 3 })),
        "{refused:?}"
    );
    let refused = change(&bench, ServoProtocol::FeetechSts, 9, &id(10)).await;
    assert!(
        matches!(refused, Err(ServiceError::NoServo { id: 9, .. })),
        "{refused:?}"
    );
    let wide = SetupChange {
        limits_ticks: Some((3000, 200)),
        ..SetupChange::default()
    };
    let refused = change(&bench, ServoProtocol::FeetechSts, 2, &wide).await;
    assert!(
        matches!(refused, Err(ServiceError::Range { .. })),
        "{refused:?}"
    );
    assert_eq!(bench.sim.kept_writes(), 0);
}

/// An arm that some requests do not reach.
struct LossyArm<F> {
    arm: ArmSimulator,
    loses: F,
}

impl<F: FnMut(&[u8]) -> bool + Send> FarEnd for LossyArm<F> {
    fn hear(&mut self, now: ClockInstant, bytes: &[u8]) {
        if !(self.loses)(bytes) {
            self.arm.hear(now, bytes);
        }
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.arm.next_due()
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        self.arm.speak(now, into);
    }
}

impl Bench {
    /// Returns a line of Feetech servos that requests are lost on.
    fn lossy_line(&self, loses: impl FnMut(&[u8]) -> bool + Send + 'static) -> ServoLine {
        let arm = self.sim.clone();
        let link = MemoryLink::new(LossyArm { arm, loses }, &self.clock, "bench").unwrap();
        let settings = BusSettings::new(ServoProtocol::FeetechSts, 1_000_000, SLACK);
        ServoLine::new(Box::new(link), &self.clock, settings)
    }
}

fn new_id(id: u8) -> SetupChange {
    SetupChange {
        id: Some(id),
        ..SetupChange::default()
    }
}

#[tokio::test]
async fn an_id_is_not_taken_for_free_because_a_reply_of_its_servo_is_lost() {
    const PING_4: [u8; 6] = [0xFF, 0xFF, 4, 2, 1, 0xF8];
    let bench = Bench::new("so101");
    let mut lost = 0;
    let mut line = bench.lossy_line(move |bytes| {
        lost += u32::from(bytes == PING_4);
        bytes == PING_4 && lost < 4
    });
    let refused = setup::plan(&mut line, 3, &new_id(4), &[]).await;
    assert!(
        matches!(refused, Err(ServiceError::Taken { id: 4 })),
        "{refused:?}"
    );
    // A servo that a scan has found has its id, whatever it answers now.
    let mut line = bench.lossy_line(|bytes| bytes == PING_4);
    let refused = setup::plan(&mut line, 3, &new_id(4), &[3, 4]).await;
    assert!(
        matches!(refused, Err(ServiceError::Taken { id: 4 })),
        "{refused:?}"
    );
    // One that wakes before the steps are written is found then.
    let steps = setup::plan(&mut line, 3, &new_id(4), &[]).await.unwrap();
    let mut line = bench.line(ServoProtocol::FeetechSts);
    let refused = setup::apply_steps(&mut line, 3, &steps).await;
    assert!(
        matches!(refused, Err(ServiceError::Taken { id: 4 })),
        "{refused:?}"
    );
    // Two servos that have the new id already speak over each other.
    bench.sim.break_it(SimulatedFault::Duplicate(4));
    let refused = setup::plan(&mut line, 3, &new_id(4), &[]).await;
    assert!(
        matches!(refused, Err(ServiceError::MayBeTaken { id: 4 })),
        "{refused:?}"
    );
    assert_eq!(bench.sim.kept_writes(), 0);
}

#[tokio::test]
async fn a_servo_is_locked_again_whichever_write_is_lost() {
    let lock = ServoRegister::new("lock", 55, 1);
    // A write begins with its address and length, behind the header, 254, length and instruction.
    let writes = |address: u8| move |bytes: &[u8]| bytes.get(4..6) == Some(&[0x83, address]);
    for (address, times) in [(5, 1), (5, u32::MAX), (55, 1), (9, 1), (9, u32::MAX)] {
        let bench = Bench::new("so101");
        let (is_it, mut lost) = (writes(address), 0);
        let mut line = bench.lossy_line(move |bytes| {
            lost += u32::from(is_it(bytes));
            is_it(bytes) && lost <= times
        });
        let change = SetupChange {
            limits_ticks: Some((500, 3500)),
            ..new_id(8)
        };
        let steps = setup::plan(&mut line, 3, &change, &[]).await.unwrap();
        let result = setup::apply_steps(&mut line, 3, &steps).await;
        let at = format!("{times} writes of {address} are lost: {result:?}");
        let is_refused = matches!(result, Err(ServiceError::NotTaken { id: 3, .. }));
        assert_eq!(is_refused, times > 1, "{at}");
        assert_eq!(result.is_ok(), times == 1, "{at}");
        let id = if times == 1 { 8 } else { 3 };
        let locked = line.read(id, lock).await.unwrap();
        assert_eq!(locked.map(|it| it.number()), Some(1), "{at}");
    }
}

#[tokio::test]
async fn settings_that_keep_a_node_from_a_servo_are_repaired() {
    let bench = Bench::new("widowx250s");
    for (address, value) in [(10, 4), (11, 4), (12, 2)] {
        bench.sim.break_it(SimulatedFault::Register {
            id: 5,
            address,
            value,
        });
    }
    let repair = SetupChange {
        repair: true,
        ..SetupChange::default()
    };
    let steps = change(&bench, ServoProtocol::Dynamixel2, 5, &repair)
        .await
        .unwrap();
    assert_eq!(
        steps,
        [
            "drive mode 4 to 0",
            "operating mode 4 to 3",
            "secondary id 2 to 255"
        ]
    );
    let mut line = bench.line(ServoProtocol::Dynamixel2);
    let settings = line.read(5, DynamixelDialect::SETTINGS).await;
    let name = ServoName {
        id: 5,
        name: "forearm".to_owned(),
    };
    let identity = DynamixelDialect::identify(&settings.unwrap().unwrap(), name, &[1, 2, 3, 4, 5]);
    assert!(identity.is_ok(), "{identity:?}");
}

/// Asserts that without authority only bytes that do not move a servo of `D` are written.
fn check_guarded<D: Dialect>(harmless: impl Fn(u16, u16) -> bool) {
    for address in 0..200 {
        for length in 1..=12 {
            let register = ServoRegister {
                name: "any",
                address,
                length,
            };
            let blocks = [(1, vec![1; usize::from(length)])];
            let mut frame = Vec::new();
            let is_sent = D::encode(&mut frame, ServoRequest::SyncWrite(register, &blocks));
            assert_eq!(is_sent, harmless(address, length), "{length} at {address}");
            assert_eq!(frame.is_empty(), !is_sent);
        }
    }
}

#[test]
fn without_authority_no_goal_and_no_torque_is_written() {
    check_guarded::<FeetechDialect>(|address, length| address >= 48 || address + length <= 40);
    check_guarded::<DynamixelDialect>(|address, length| {
        let end = address + length;
        end <= 64 || (address >= 65 && end <= 100) || address >= 120
    });
}

#[test]
fn without_authority_torque_is_only_switched_off() {
    fn check<D: Dialect>(settings: &[RegisterSetting]) {
        let written = |register, block: Vec<u8>| {
            let blocks = [(1, vec![0]), (2, block)];
            D::encode(&mut Vec::new(), ServoRequest::SyncWrite(register, &blocks))
        };
        assert!(written(D::TORQUE_ENABLE, vec![0]));
        for block in [vec![1], vec![128], vec![0, 0]] {
            assert!(!written(D::TORQUE_ENABLE, block.clone()), "{block:?}");
        }
        // A block that reaches beyond torque enable may contain a goal.
        let longer = ServoRegister {
            length: 3,
            ..D::TORQUE_ENABLE
        };
        assert!(!written(longer, vec![0, 0, 0]));
        for (register, value) in settings {
            let bytes = value.to_le_bytes();
            assert!(written(
                *register,
                bytes[..usize::from(register.length)].to_vec()
            ));
        }
    }
    check::<FeetechDialect>(FeetechDialect::ARM);
    check::<DynamixelDialect>(DynamixelDialect::ARM);
}
