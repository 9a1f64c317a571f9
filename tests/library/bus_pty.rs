//! The driver against the simulated arm through a real serial port crate, a pseudo-terminal and
//! the machine's clock.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]

use std::time::Duration;

use steadyhand::arm::ArmModel;
use steadyhand::clock::NodeClock;
use steadyhand::driver::{ArmDriver, DriverError};
use steadyhand::link::pty;
use steadyhand::link::serial::SerialLink;
use steadyhand::sim::{ArmSimulator, SimulatedFault};
use steadyhand::units::JointVector;

fn arm(name: &str) -> ArmModel {
    let path = format!("{}/scenes/arms/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    ArmModel::new(toml::from_str(&text).unwrap()).unwrap()
}

async fn open(sim: &ArmSimulator, clock: &NodeClock, baud: u32) -> SerialLink {
    let (tell, path) = tokio::sync::oneshot::channel();
    let (device, device_clock) = (sim.clone(), clock.clone());
    tokio::spawn(async move {
        pty::serve(device, &device_clock, |path| {
            tell.send(path.to_str().unwrap().to_owned()).unwrap();
        })
        .await
        .unwrap();
    });
    SerialLink::open(&path.await.unwrap(), baud, clock).unwrap()
}

/// Repeats what a machine that runs neither end of the wire in time makes fail, as an arm's thread does.
macro_rules! once_heard {
    ($attempt:expr) => {
        loop {
            match $attempt.await {
                Err(error) if error.is_transient() => {}
                result => break Result::<_, DriverError>::unwrap(result),
            }
        }
    };
}

async fn holds_a_hundred_cycles(name: &str) {
    let arm = arm(name);
    let clock = NodeClock::real();
    let sim = ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()));
    let mut link = open(&sim, &clock, arm.file.baud).await;
    let mut driver = ArmDriver::new(&arm, &clock);
    let cycle = || clock.now().after(Duration::from_millis(100));
    once_heard!(driver.attach(&mut link));
    once_heard!(driver.energise(&mut link));
    for _ in 0..100 {
        once_heard!(driver.hold(&mut link, cycle()));
    }
    // By its weight it sinks as far as its servos yield.
    let load_n_m = arm.load.torque_n_m(&arm.chain, &sim.true_joints());
    let yields = arm.servo_yield_rad_per_n_m(|_| Some(32), None);
    let sunk_rad = load_n_m.zip(&yields, |load, yields| load * yields);
    assert!(sim.true_joints().distance_max(&sunk_rad) < 0.01);
    sim.break_it(SimulatedFault::Unplug);
    let lost = loop {
        match driver.hold(&mut link, cycle()).await {
            Err(error) if error.is_transient() => {}
            other => break other,
        }
    };
    assert!(lost.unwrap_err().is_unplugged());
}

#[tokio::test]
async fn feetech_servos_hold_over_a_pseudo_terminal() {
    holds_a_hundred_cycles("so101").await;
}

#[tokio::test]
async fn dynamixel_servos_hold_over_a_pseudo_terminal() {
    holds_a_hundred_cycles("widowx250s").await;
}

#[tokio::test]
async fn a_wrong_speed_is_a_silent_bus() {
    let arm = arm("so101");
    let clock = NodeClock::real();
    let sim = ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()));
    let mut link = open(&sim, &clock, 115_200).await;
    let error = ArmDriver::new(&arm, &clock)
        .attach(&mut link)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("6 servos"), "{error}");
}
