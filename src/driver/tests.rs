//! Drivers against the simulated arm, over memory and a simulated clock.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]

use std::time::Duration;

use super::*;
use base::units::JointVector;
use link::memory::MemoryLink;
use sim::{ArmSimulator, SimulatedFault};

mod begin;
mod diagnose;
mod dynamixel;
mod fault_link;
mod faults;
mod firmware;
mod rates;
mod replay;
mod shared_bus;

pub(super) const PERIOD: Duration = Duration::from_millis(10);

pub(super) struct Bench {
    pub(super) clock: NodeClock,
    pub(super) sim: ArmSimulator,
    pub(super) link: MemoryLink<ArmSimulator>,
    pub(super) driver: ArmDriver,
    pub(super) arm: ArmModel,
}

fn arm_file(name: &str) -> ArmModel {
    let path = format!(
        "{}/scenes/arms/{name}.toml",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../..")
    );
    let text = std::fs::read_to_string(path).unwrap();
    ArmModel::new(toml::from_str(&text).unwrap()).unwrap()
}

impl Bench {
    pub(super) fn new(name: &str) -> Self {
        let arm = arm_file(name);
        let clock = NodeClock::simulated();
        let start = JointVector::zeros(arm.dof()).map(|joint, _| 0.1 * joint as f64);
        let sim = ArmSimulator::new(&arm, &start);
        Self {
            link: MemoryLink::new(sim.clone(), &clock, "bench").unwrap(),
            driver: ArmDriver::new(&arm, &clock),
            clock,
            sim,
            arm,
        }
    }

    pub(super) async fn energised(name: &str) -> Self {
        let mut bench = Self::new(name);
        bench.driver.attach(&mut bench.link).await.unwrap();
        bench.driver.energise(&mut bench.link).await.unwrap();
        bench
    }

    /// Runs one cycle, then waits until the next one is due.
    pub(super) async fn cycle(
        &mut self,
        command: Option<JointCommand>,
    ) -> Result<ArmMeasurement, DriverError> {
        let begun = self.clock.now();
        let next = begun.after(PERIOD);
        let result = self
            .driver
            .follow(&mut self.link, command.as_ref(), next)
            .await;
        self.clock.jump_to(next);
        result
    }

    /// Returns by how far the simulated servos let the most loaded joint hang where the arm is.
    pub(super) fn sag_rad(&self) -> f64 {
        let load_n_m = (self.arm.load).torque_n_m(&self.arm.chain, &self.sim.true_joints());
        let yields = self.arm.servo_yield_rad_per_n_m(|_| Some(32), None);
        let sags = load_n_m.zip(&yields, |load, yields| (load * yields).abs());
        sags.iter().copied().fold(0.0, f64::max)
    }

    pub(super) fn command(&self, goal_rad: JointVector) -> JointCommand {
        JointCommand {
            goal_rad,
            velocity_cap_rad_s: self.arm.limits.velocity_rad_s,
        }
    }
}

/// A link that records what was sent.
pub(super) struct RecordingLink<'a>(
    pub(super) &'a mut MemoryLink<ArmSimulator>,
    pub(super) Vec<u8>,
);

impl ByteLink for RecordingLink<'_> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> link::LinkFuture<'a, ()> {
        self.1.extend(bytes);
        self.0.send(bytes)
    }

    fn receive<'a>(
        &'a mut self,
        into: &'a mut [u8],
        until: ClockInstant,
    ) -> link::LinkFuture<'a, usize> {
        self.0.receive(into, until)
    }

    fn discard_input(&mut self) -> Result<(), link::LinkError> {
        self.0.discard_input()
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

/// A link at whose far end the first servo is turned a little with every request.
struct HandMovedLink<'a>(&'a mut MemoryLink<ArmSimulator>, ArmSimulator, u16, u16);

impl ByteLink for HandMovedLink<'_> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> link::LinkFuture<'a, ()> {
        self.2 += self.3;
        self.1.break_it(SimulatedFault::Position {
            id: 1,
            word: Some(self.2),
        });
        self.0.send(bytes)
    }

    fn receive<'a>(
        &'a mut self,
        into: &'a mut [u8],
        until: ClockInstant,
    ) -> link::LinkFuture<'a, usize> {
        self.0.receive(into, until)
    }

    fn discard_input(&mut self) -> Result<(), link::LinkError> {
        self.0.discard_input()
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

/// Torque would pull a joint back to where it was read before a hand turned it on.
#[tokio::test]
async fn a_limp_joint_that_is_being_turned_gets_no_torque() {
    for (ticks_per_request, is_on) in [(0, true), (3, false)] {
        let mut bench = Bench::new("so101");
        bench.driver.attach(&mut bench.link).await.unwrap();
        let mut hand = HandMovedLink(&mut bench.link, bench.sim.clone(), 2048, ticks_per_request);
        let energised = bench.driver.energise(&mut hand).await;
        assert_eq!(energised.is_ok(), is_on, "{energised:?}");
        assert_eq!(bench.driver.is_energised(), is_on);
        if let Err(error) = energised {
            assert!(matches!(error, DriverError::Turned { .. }), "{error}");
            let measured = bench.cycle(None).await.unwrap();
            let on = measured.servos.iter().filter(|s| s.torque_on == Some(true));
            assert_eq!(on.count(), 0);
        }
    }
}

/// Torque that was not read may hold the arm: it must not be taken off by the cleanup of a failed try.
#[tokio::test]
async fn servos_that_hold_keep_their_torque_where_it_cannot_be_read() {
    for name in ["so101", "widowx250s"] {
        for silent in [1..=9, 3..=3] {
            let mut bench = Bench::energised(name).await;
            for id in silent.clone() {
                bench.sim.break_it(SimulatedFault::Silence(id));
            }
            let error = bench.driver.energise(&mut bench.link).await.unwrap_err();
            assert!(error.is_transient(), "{error}");
            assert!(!bench.driver.is_energised());
            for id in silent.clone() {
                bench.sim.break_it(SimulatedFault::Speak(id));
            }
            let attached = bench.driver.attach(&mut bench.link).await.unwrap();
            let mut servos = attached.servos.iter();
            assert!(servos.all(|servo| servo.torque_on), "{name} {silent:?}");
            bench.driver.energise(&mut bench.link).await.unwrap();
        }
    }
}

const TICK_RAD: f64 = std::f64::consts::TAU / 4096.0;

#[tokio::test]
async fn attaching_finds_every_servo_and_moves_nothing() {
    let mut bench = Bench::new("so101");
    let before = bench.sim.true_joints();
    let attached = bench.driver.attach(&mut bench.link).await.unwrap();
    assert_eq!(attached.servos.len(), 6);
    assert!(
        attached
            .servos
            .iter()
            .all(|servo| servo.model == 777 && !servo.torque_on)
    );
    assert!(attached.warnings.is_empty(), "{:?}", attached.warnings);
    assert!(attached.measured.position_rad.distance_max(&before) <= TICK_RAD);
    assert_eq!(bench.sim.true_joints(), before);
}

#[tokio::test]
async fn energising_holds_where_the_arm_stands() {
    let mut bench = Bench::energised("so101").await;
    let before = bench.sim.true_joints();
    for _ in 0..100 {
        let measured = bench.cycle(None).await.unwrap();
        assert!(
            measured
                .servos
                .iter()
                .all(|servo| servo.torque_on == Some(true))
        );
    }
    // It sinks by its weight over the stiffness of its servos, which no goal of the driver's makes good.
    assert!(bench.sim.true_joints().distance_max(&before) <= bench.sag_rad() + 5.0 * TICK_RAD);
}

#[tokio::test]
async fn a_thousand_cycles_follow_a_slow_wave() {
    let mut bench = Bench::energised("so101").await;
    let start = bench.sim.true_joints();
    let began = bench.clock.now();
    let mut worst = 0.0_f64;
    for cycle in 0..1000 {
        let swing = 0.3 * (1.0 - (f64::from(cycle) * 0.01).cos());
        let goal = start.map(|_, angle| angle + swing);
        let measured = bench.cycle(Some(bench.command(goal))).await.unwrap();
        worst = worst.max(measured.position_rad.distance_max(&bench.sim.true_joints()));
    }
    assert_eq!(bench.clock.now().since(began), 1000 * PERIOD);
    assert_eq!(bench.driver.counts().cycles, 1000);
    assert!(
        bench
            .driver
            .counts()
            .servos
            .iter()
            .all(|s| (s.retries, s.jumps) == (0, 0))
    );
    // A reading is one round trip older than the true position it is compared with.
    assert!(worst < 0.02, "{worst}");
}

#[tokio::test]
async fn a_step_is_followed_within_the_caps_that_travel_with_it() {
    let mut bench = Bench::energised("so101").await;
    let start = bench.sim.true_joints();
    let goal = start.map(|_, angle| angle + 0.5);
    let mut fastest = 0.0_f64;
    let mut last = start;
    for _ in 0..200 {
        bench
            .cycle(Some(JointCommand {
                goal_rad: goal,
                velocity_cap_rad_s: JointVector::zeros(5).map(|_, _| 1.0),
            }))
            .await
            .unwrap();
        bench.sim.advance(bench.clock.now());
        fastest = fastest.max(bench.sim.true_joints().distance_max(&last) / PERIOD.as_secs_f64());
        last = bench.sim.true_joints();
    }
    // The servo's own goal keeps the cap. The joint falls behind it at first, swings after it (1.32 rad/s were measured), and
    // ends below it by its weight.
    assert!(fastest < 1.4, "{fastest}");
    assert!(bench.sim.true_joints().distance_max(&goal) <= bench.sag_rad() + 5.0 * TICK_RAD);
}

#[tokio::test]
async fn release_takes_torque_off_every_servo() {
    let mut bench = Bench::energised("so101").await;
    let released = bench.driver.release(&mut bench.link).await.unwrap();
    assert_eq!((released.off.len(), released.failed.len()), (6, 0));
    assert!(!bench.driver.is_energised());
    let refused = bench
        .cycle(Some(bench.command(JointVector::zeros(5))))
        .await;
    assert!(matches!(refused, Err(DriverError::Limp)));
}

#[tokio::test]
async fn an_unplugged_arm_is_distinguished_from_a_silent_one() {
    let mut bench = Bench::energised("so101").await;
    bench.sim.break_it(SimulatedFault::Unplug);
    assert!(bench.cycle(None).await.unwrap_err().is_unplugged());
}

#[tokio::test]
async fn goals_that_are_not_finite_or_beyond_limits_are_never_sent() {
    let mut bench = Bench::energised("so101").await;
    for goal in [f64::NAN, f64::INFINITY, 2.5, -1e300] {
        let goal = JointVector::zeros(5).map(|_, _| goal);
        let refused = bench.cycle(Some(bench.command(goal))).await;
        assert!(
            matches!(refused, Err(DriverError::Goal { .. })),
            "{refused:?}"
        );
    }
}
