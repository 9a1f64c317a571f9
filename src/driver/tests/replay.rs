//! A recorded bus gives the same measurements and the same errors, bit for bit.

use std::io::Write;
use std::sync::{Arc, Mutex};

use super::*;
use link::byte_trace::{RecordLink, ReplayDevice, TraceEvent};

/// A trace in memory that outlives the link that writes it.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<u8>>>);

impl Write for Trace {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns every measurement and every error of a driver on a link, as text.
async fn run_driver(
    arm: &ArmModel,
    clock: &NodeClock,
    link: &mut dyn ByteLink,
    mut break_it: impl FnMut(u32),
) -> Vec<String> {
    let mut driver = ArmDriver::new(arm, clock);
    let mut results = vec![
        format!("{:?}", driver.attach(link).await),
        format!("{:?}", driver.energise(link).await),
    ];
    for cycle in 0..300 {
        break_it(cycle);
        let next = clock.now().after(PERIOD);
        let goal = JointVector::zeros(arm.dof()).map(|_, _| 0.2 * (f64::from(cycle) * 0.02).sin());
        let command = JointCommand {
            goal_rad: goal,
            velocity_cap_rad_s: arm.limits.velocity_rad_s,
        };
        let result = driver.follow(link, Some(&command), next).await;
        results.push(format!("{result:?}"));
        clock.jump_to(next);
    }
    results.push(format!("{:?}", driver.counts()));
    results
}

#[tokio::test]
async fn a_trace_replays_to_the_same_measurements_and_errors() {
    for name in ["so101", "widowx250s"] {
        let arm = arm_file(name);
        let clock = NodeClock::simulated();
        let sim = ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()));
        let trace = Trace::default();
        let inner = MemoryLink::new(sim.clone(), &clock, "recorded").unwrap();
        let mut link = RecordLink::new(inner, &clock, Box::new(trace.clone()));
        let recorded = run_driver(&arm, &clock, &mut link, |cycle| match cycle {
            50 => sim.break_it(SimulatedFault::DropReplies(0.1)),
            100 => sim.break_it(SimulatedFault::CorruptReplies {
                share: 0.1,
                bits: 2,
            }),
            200 => sim.break_it(SimulatedFault::PowerCycle(3)),
            _ => {}
        })
        .await;
        let text = String::from_utf8(trace.0.lock().unwrap().clone()).unwrap();
        let events: Vec<TraceEvent> = text.lines().map(|line| line.parse().unwrap()).collect();
        let clock = NodeClock::simulated();
        let mut link = MemoryLink::new(ReplayDevice::new(events), &clock, "replayed").unwrap();
        let replayed = run_driver(&arm, &clock, &mut link, |_| {}).await;
        for (recorded, replayed) in recorded.iter().zip(&replayed) {
            assert_eq!(recorded, replayed, "{name}");
        }
        assert_eq!(recorded.len(), replayed.len());
        assert!(
            recorded.iter().any(|line| line.contains("TorqueLost")),
            "{name}"
        );
    }
}
