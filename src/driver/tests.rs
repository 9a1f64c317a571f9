//! Drivers against the simulated arm, over memory and a simulated clock.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]

use std::time::Duration;

use super::*;
use base::units::Joints;
use link::memory::MemoryLink;
use sim::{Fault, Simulator};

mod begin;
mod diagnose;
mod dynamixel;
mod faults;
mod firmware;
mod rates;
mod replay;

pub(super) const PERIOD: Duration = Duration::from_millis(10);

pub(super) struct Bench {
    pub(super) clock: Clock,
    pub(super) sim: Simulator,
    pub(super) link: MemoryLink<Simulator>,
    pub(super) driver: Driver,
    pub(super) arm: Arm,
}

fn arm_file(name: &str) -> Arm {
    let path = format!(
        "{}/scenes/arms/{name}.toml",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../..")
    );
    let text = std::fs::read_to_string(path).unwrap();
    Arm::new(toml::from_str(&text).unwrap()).unwrap()
}

impl Bench {
    pub(super) fn new(name: &str) -> Self {
        let arm = arm_file(name);
        let clock = Clock::simulated();
        let start = Joints::zeros(arm.dof()).map(|joint, _| 0.1 * joint as f64);
        let sim = Simulator::new(&arm, &start);
        Self {
            link: MemoryLink::new(sim.clone(), &clock, "bench").unwrap(),
            driver: Driver::new(&arm, &clock),
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

    /// One cycle, then waits for the next one's moment.
    pub(super) async fn cycle(
        &mut self,
        command: Option<Command>,
    ) -> Result<Measured, DriverError> {
        let begun = self.clock.now();
        let next = begun.after(PERIOD);
        let result = self
            .driver
            .follow(&mut self.link, command.as_ref(), next)
            .await;
        self.clock.jump_to(next);
        result
    }

    pub(super) fn command(&self, goal_rad: Joints) -> Command {
        Command {
            goal_rad,
            velocity_cap_rad_s: self.arm.limits.velocity_rad_s,
        }
    }
}

/// A wire that keeps what was sent.
pub(super) struct Tapped<'a>(pub(super) &'a mut MemoryLink<Simulator>, pub(super) Vec<u8>);

impl Link for Tapped<'_> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> link::LinkFuture<'a, ()> {
        self.1.extend(bytes);
        self.0.send(bytes)
    }

    fn receive<'a>(
        &'a mut self,
        into: &'a mut [u8],
        until: Instant,
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
struct Turned<'a>(&'a mut MemoryLink<Simulator>, Simulator, u16, u16);

impl Link for Turned<'_> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> link::LinkFuture<'a, ()> {
        self.2 += self.3;
        self.1.break_it(Fault::Position {
            id: 1,
            word: Some(self.2),
        });
        self.0.send(bytes)
    }

    fn receive<'a>(
        &'a mut self,
        into: &'a mut [u8],
        until: Instant,
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
    for (ticks_a_request, takes) in [(0, true), (3, false)] {
        let mut bench = Bench::new("so101");
        bench.driver.attach(&mut bench.link).await.unwrap();
        let mut hand = Turned(&mut bench.link, bench.sim.clone(), 2048, ticks_a_request);
        let energised = bench.driver.energise(&mut hand).await;
        assert_eq!(energised.is_ok(), takes, "{energised:?}");
        assert_eq!(bench.driver.is_energised(), takes);
        if let Err(why) = energised {
            assert!(matches!(why, DriverError::Turned { .. }), "{why}");
            let seen = bench.cycle(None).await.unwrap();
            let on = seen.servos.iter().filter(|one| one.torque_on == Some(true));
            assert_eq!(on.count(), 0);
        }
    }
}

const TICK_RAD: f64 = std::f64::consts::TAU / 4096.0;

#[tokio::test]
async fn attaching_finds_every_servo_and_moves_nothing() {
    let mut bench = Bench::new("so101");
    let before = bench.sim.truth();
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
    assert_eq!(bench.sim.truth(), before);
}

#[tokio::test]
async fn energising_holds_where_the_arm_stands() {
    let mut bench = Bench::energised("so101").await;
    let before = bench.sim.truth();
    for _ in 0..100 {
        let measured = bench.cycle(None).await.unwrap();
        assert!(
            measured
                .servos
                .iter()
                .all(|servo| servo.torque_on == Some(true))
        );
    }
    assert!(bench.sim.truth().distance_max(&before) <= 5.0 * TICK_RAD);
}

#[tokio::test]
async fn a_thousand_cycles_follow_a_slow_wave() {
    let mut bench = Bench::energised("so101").await;
    let start = bench.sim.truth();
    let began = bench.clock.now();
    let mut worst = 0.0_f64;
    for cycle in 0..1000 {
        let swing = 0.3 * (1.0 - (f64::from(cycle) * 0.01).cos());
        let goal = start.map(|_, angle| angle + swing);
        let measured = bench.cycle(Some(bench.command(goal))).await.unwrap();
        worst = worst.max(measured.position_rad.distance_max(&bench.sim.truth()));
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
    // A reading is one turn-round older than the truth it is compared with.
    assert!(worst < 0.02, "{worst}");
}

#[tokio::test]
async fn a_step_is_followed_within_the_caps_that_travel_with_it() {
    let mut bench = Bench::energised("so101").await;
    let start = bench.sim.truth();
    let goal = start.map(|_, angle| angle + 0.5);
    let mut fastest = 0.0_f64;
    let mut before = start;
    for _ in 0..200 {
        bench
            .cycle(Some(Command {
                goal_rad: goal,
                velocity_cap_rad_s: Joints::zeros(5).map(|_, _| 1.0),
            }))
            .await
            .unwrap();
        bench.sim.advance(bench.clock.now());
        fastest = fastest.max(bench.sim.truth().distance_max(&before) / PERIOD.as_secs_f64());
        before = bench.sim.truth();
    }
    // The simulated arm moves on a grid of 1 ms: eleven of its steps may fall into one period.
    assert!(fastest < 1.0 * 1.1 + 1e-3, "{fastest}");
    assert!(bench.sim.truth().distance_max(&goal) <= 2.0 * TICK_RAD);
}

#[tokio::test]
async fn release_takes_torque_off_every_servo() {
    let mut bench = Bench::energised("so101").await;
    let released = bench.driver.release(&mut bench.link).await.unwrap();
    assert_eq!((released.off.len(), released.failed.len()), (6, 0));
    assert!(!bench.driver.is_energised());
    let refused = bench.cycle(Some(bench.command(Joints::zeros(5)))).await;
    assert!(matches!(refused, Err(DriverError::Limp)));
}

#[tokio::test]
async fn an_unplugged_arm_is_told_from_a_silent_one() {
    let mut bench = Bench::energised("so101").await;
    bench.sim.break_it(Fault::Unplug);
    assert!(bench.cycle(None).await.unwrap_err().is_unplugged());
}

#[tokio::test]
async fn goals_that_are_no_numbers_or_beyond_limits_never_leave() {
    let mut bench = Bench::energised("so101").await;
    for goal in [f64::NAN, f64::INFINITY, 2.5, -1e300] {
        let goal = Joints::zeros(5).map(|_, _| goal);
        let refused = bench.cycle(Some(bench.command(goal))).await;
        assert!(
            matches!(refused, Err(DriverError::Goal { .. })),
            "{refused:?}"
        );
    }
}
