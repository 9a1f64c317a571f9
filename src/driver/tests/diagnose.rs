//! Findings about an arm's own servos.

use super::*;
use crate::diagnose::setup;
use servo::diagnose::{BusDiagnosis, DiagnosisCause};

#[tokio::test]
async fn a_servo_set_up_otherwise_is_named_with_its_register() {
    let mut bench = Bench::new("so101");
    bench.sim.break_it(SimulatedFault::Register {
        id: 3,
        address: 18,
        value: 0x10,
    });
    let mut diagnosis = BusDiagnosis::default();
    let refused = setup(&mut bench.link, &bench.arm, &bench.clock, &mut diagnosis).await;
    assert!(matches!(refused, Err(DriverError::Setup { .. })));
    assert_eq!(diagnosis.findings.len(), 1, "{diagnosis:?}");
    assert_eq!(diagnosis.findings[0].cause, DiagnosisCause::WrongSetup);
    assert!(
        diagnosis.findings[0]
            .what
            .contains("servo 3 (elbow_flex): phase"),
        "{diagnosis:?}"
    );
}

#[tokio::test]
async fn a_reply_that_is_lost_as_registers_are_read_is_no_wrong_setup() {
    for (faults, id) in [
        (vec![SimulatedFault::Silence(3)], "servo 3"),
        (
            (1..=6).map(SimulatedFault::Silence).collect(),
            "none of the 6",
        ),
    ] {
        let mut bench = Bench::new("so101");
        faults.into_iter().for_each(|it| bench.sim.break_it(it));
        let mut diagnosis = BusDiagnosis::default();
        let refused = setup(&mut bench.link, &bench.arm, &bench.clock, &mut diagnosis).await;
        assert!(refused.is_err());
        let [finding] = diagnosis.findings.as_slice() else {
            panic!("{diagnosis:?}");
        };
        assert_eq!(finding.cause, DiagnosisCause::LostReplies);
        assert!(finding.what.contains(id), "{finding:?}");
        assert!(finding.fix.contains("plug"), "{finding:?}");
    }
}
