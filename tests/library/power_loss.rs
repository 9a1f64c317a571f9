//! The servo supply is switched off and on again, or the plug of one servo comes out: what came back
//! elsewhere stays limp where it is, and nothing that energises or moves leaves the port before a
//! reset. Judged on the bytes and on the arm at the far end.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::time::Duration;

use steadyhand::clock::NodeClock;
use steadyhand::gate::HoldAt;
use steadyhand::motion::{MotionHandle, MotionOutcome, MotionState, Snapshot};
use steadyhand::permit::ActorRank;
use steadyhand::plan::{self, SilentObserver};
use steadyhand::sim::SimulatedFault;

use crate::far_end::{self, Family, Rig, Script};

/// The servo whose plug comes out; it turns the first joint alone.
const UNPLUGGED: u8 = 1;

/// Angle to which a hand turns the first joint meanwhile.
const TURNED_RAD: f64 = 0.7;

/// Most that a limp joint may turn by itself.
const STAYS_RAD: f64 = 0.01;

/// Outages: shorter than what is a fault, and longer.
const OUTAGES: [Duration; 2] = [Duration::from_millis(60), Duration::from_millis(1200)];

/// Every servo loses its power, or one.
const CHOICES: [bool; 2] = [true, false];

/// An arm whose servos lose their power.
struct Supply {
    rig: Rig,
    motion: MotionHandle,
    servos: Vec<u8>,
}

impl Supply {
    /// Energises an arm by a small motion.
    async fn of(family: Family, clock: NodeClock, has_all: bool) -> Self {
        let rig = Rig {
            clock,
            ..Rig::new(family)
        };
        let motion = rig.attach().unwrap();
        let start_rad = motion.snapshot().measured.unwrap().position_rad;
        let near_rad = start_rad.map(|joint, at| if joint == 0 { at + 0.03 } else { at });
        let plan = plan::go_to(&rig.scene, &start_rad, &[near_rad], &SilentObserver).unwrap();
        let proof = rig.check(&motion, rig.permit(), plan.trajectory);
        let outcome = motion.run(proof, motion.stops_requested()).await.unwrap();
        assert!(
            matches!(outcome, MotionOutcome::Reached { .. }),
            "{outcome:?}"
        );
        let servos = rig.scene.arm.servos().map(|(_, servo)| servo.id);
        let servos = servos.filter(|id| has_all || *id == UNPLUGGED).collect();
        Self {
            rig,
            motion,
            servos,
        }
    }

    fn at(&self) -> String {
        format!("{:?}, servos {:?}", self.rig.family, self.servos)
    }

    /// Switches the supply off; returns how much was sent before.
    fn off(&self) -> usize {
        let sent = self.rig.wire.state().sent.len();
        let off = self.servos.iter().map(|id| SimulatedFault::PowerOff(*id));
        self.rig.break_all(&off.collect::<Vec<_>>());
        sent
    }

    /// Turns the first joint by hand and switches the supply on.
    fn turn_and_switch_on(&self) {
        assert!(
            self.rig.sim.turn_by_hand(0, TURNED_RAD),
            "{}: not limp",
            self.at()
        );
        let on = self.servos.iter().map(|id| SimulatedFault::PowerOn(*id));
        self.rig.break_all(&on.collect::<Vec<_>>());
    }

    /// Waits while the arm is read. A simulated arm at rest is read when it is asked to stop.
    async fn wait(&self, time: Duration) {
        let clock = &self.rig.clock;
        let end = clock.now().after(time);
        if !clock.is_simulated() {
            // The arm's thread alone may wait on its clock.
            let machine = NodeClock::real();
            let mut alarm = machine.alarm().unwrap();
            while clock.now() < end {
                let next = machine.now().after(Duration::from_millis(1));
                alarm.until(next).await.unwrap();
            }
            return;
        }
        while clock.now() < end {
            let next = clock.now().after(Duration::from_millis(50));
            clock.jump_to(next);
            self.rig.sim.advance(next);
            let ticket = self.motion.stop(ActorRank::Node, false);
            self.motion.stopped(ticket).await.unwrap();
        }
    }

    async fn fails(&self, outage: Duration) {
        let sent = self.off();
        self.wait(outage).await;
        self.turn_and_switch_on();
        self.stays_limp(sent).await;
    }

    /// Judges an arm whose power is back: no write leaves the port that could energise or move a servo,
    /// be it a goal, a profile or torque.
    async fn stays_limp(&self, sent: usize) {
        self.wait(Duration::from_millis(600)).await;
        let (at, family) = (self.at(), self.rig.family);
        let turned_rad = self.rig.sim.true_joints()[0];
        assert!(
            (turned_rad - TURNED_RAD).abs() < STAYS_RAD,
            "{at}: it turned to {turned_rad}"
        );
        let state = self.rig.wire.state();
        let mut after = state.sent.iter().skip(sent);
        let written = after.find(|(_, bytes)| {
            let requests = far_end::requests(family, bytes);
            let mut writes = requests.iter().map(|one| far_end::writes(family, one));
            writes.any(|writes| !writes.is_empty())
        });
        assert_eq!(written, None, "{at}: written before a reset");
    }

    /// A reset energises the arm where it is by then.
    async fn comes_to_rest(&self) {
        let outcome = self.rig.reset(&self.motion, ActorRank::Operator).await;
        assert!(
            matches!(outcome, MotionOutcome::Reached { .. }),
            "{}: {outcome:?}",
            self.at()
        );
    }
}

#[tokio::test]
async fn an_arm_that_was_stopped_stays_limp_when_its_power_is_back() {
    for (family, has_all, emergency) in cases() {
        let supply = Supply::of(family, NodeClock::simulated(), has_all).await;
        let ticket = supply.motion.stop(ActorRank::Operator, emergency);
        assert!(supply.motion.stopped(ticket).await.unwrap().verified);
        supply.fails(Duration::from_millis(50)).await;
        if !emergency {
            supply.comes_to_rest().await;
        }
    }
}

/// Returns each family, with the power of all servos or of one, and each of two ways.
fn cases() -> Vec<(Family, bool, bool)> {
    let ways = Family::ALL.into_iter().flat_map(|family| {
        let choices = CHOICES.into_iter();
        choices.flat_map(move |has_all| [(family, has_all, false), (family, has_all, true)])
    });
    ways.collect()
}

/// On a clock that keeps the machine's time: an arm that holds in simulated time is not read.
#[tokio::test]
async fn an_arm_that_holds_stays_limp_when_its_power_is_back() {
    for (family, has_all, is_held) in cases() {
        for outage in OUTAGES {
            let supply = Supply::of(family, NodeClock::starvation_tolerant(), has_all).await;
            if is_held {
                supply.hold_a_drawing().await;
            }
            supply.wait(Duration::from_millis(200)).await;
            supply.fails(outage).await;
        }
    }
}

impl Supply {
    /// Draws until it is held in the middle of a line.
    async fn hold_a_drawing(&self) {
        let trajectory = self.rig.plan(&self.motion);
        let middle = far_end::middle_of_ink(&trajectory);
        let proof = self.rig.check(&self.motion, self.rig.permit(), trajectory);
        let run = self.motion.run(proof, self.motion.stops_requested());
        tokio::spawn(run);
        let mut snapshots = self.motion.watch();
        let is_drawing = |now: &Snapshot| now.progress.is_some_and(|at| at.sample > middle);
        snapshots.wait_for(is_drawing).await.unwrap();
        self.motion.hold(HoldAt::Once).await.unwrap().unwrap();
        let is_held = |now: &Snapshot| now.state == MotionState::Held;
        snapshots.wait_for(is_held).await.unwrap();
    }

    /// Returns how much was sent up to the goals that were on their way when the power failed.
    fn sent_when_it_failed(&self) -> usize {
        let state = self.rig.wire.state();
        let broken = state.broken_at.unwrap();
        1 + state.sent.iter().filter(|(at, _)| *at < broken).count()
    }

    /// Draws, and the power fails in the middle of a line.
    async fn fails_in_motion(&self, outage: Duration) {
        let servos = self.servos.clone();
        let script: Script = Box::new(move |number, hands| {
            let off = servos.iter().map(|id| SimulatedFault::PowerOff(*id));
            off.filter(|_| number == 0)
                .for_each(|fault| hands.sim.break_it(fault));
        });
        let comes_back = async {
            while self.rig.wire.state().broken_at.is_none() {
                self.wait(Duration::from_millis(5)).await;
            }
            self.wait(outage).await;
            self.turn_and_switch_on();
        };
        let (outcome, ()) = tokio::join!(self.rig.draw(&self.motion, Some(script)), comes_back);
        assert!(matches!(outcome, MotionOutcome::Faulted(_)), "{outcome:?}");
    }
}

#[tokio::test]
async fn an_arm_in_motion_stays_limp_when_its_power_is_back() {
    for (family, has_all, fails_again) in cases() {
        for outage in OUTAGES {
            let supply = Supply::of(family, NodeClock::starvation_tolerant(), has_all).await;
            supply.fails_in_motion(outage).await;
            let sent = supply.sent_when_it_failed();
            supply.stays_limp(sent).await;
            if fails_again {
                supply.fails(outage).await;
            }
        }
    }
}
