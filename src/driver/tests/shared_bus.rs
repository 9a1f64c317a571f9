//! An arm whose servos share their bus with another arm's.

use super::*;

/// Two arms of one kind on one wire, the second with ids moved to 7 and on.
struct SharedWire {
    link: MemoryLink<Vec<ArmSimulator>>,
    clock: NodeClock,
    arms: [ArmModel; 2],
}

impl SharedWire {
    fn new(name: &str) -> Self {
        let low = arm_file(name);
        let high = low.with_first_id(7).unwrap();
        let start = JointVector::zeros(low.dof());
        let clock = NodeClock::simulated();
        let sims = [&low, &high].map(|arm| ArmSimulator::new(arm, &start));
        Self {
            link: MemoryLink::new(sims.to_vec(), &clock, "bus").unwrap(),
            clock,
            arms: [low, high],
        }
    }
}

#[tokio::test]
async fn each_arm_of_a_bus_reads_its_own_servos_and_knows_the_others_as_no_strangers() {
    for name in ["so101", "koch"] {
        let mut wire = SharedWire::new(name);
        let [low, high] = wire.arms.clone();
        for (mut arm, others) in [(high.clone(), low.ids()), (low.clone(), high.ids())] {
            arm.bus.others = others;
            let mut driver = ArmDriver::new(&arm, &wire.clock);
            let report = driver.attach(&mut wire.link).await.unwrap();
            let ids: Vec<u8> = report.servos.iter().map(|servo| servo.servo.id).collect();
            assert_eq!(ids, arm.ids(), "{name}");
            assert_eq!(report.warnings, [""; 0], "{name}");
            driver.energise(&mut wire.link).await.unwrap();
        }
    }
}

#[tokio::test]
async fn servos_of_an_arm_that_nobody_named_are_warned_of() {
    let mut wire = SharedWire::new("so101");
    let high = wire.arms[1].clone();
    let report = ArmDriver::new(&high, &wire.clock)
        .attach(&mut wire.link)
        .await;
    let warnings = report.unwrap().warnings;
    assert!(
        warnings
            .iter()
            .any(|it| it.contains("id 1, 2, 3, 4, 5, 6 answers")),
        "{warnings:?}"
    );
}
