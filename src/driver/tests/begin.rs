//! Questions before a motion: answers that come to nothing on a busy machine, and a bus that is lost.

use super::*;
use gate::TorqueLimit;
use link::{LinkError, LinkFuture};

/// A wire that loses what is answered to the next so many questions.
struct Lossy<'a> {
    inner: &'a mut MemoryLink<ArmSimulator>,
    lost: u32,
}

impl ByteLink for Lossy<'_> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        self.inner.send(bytes)
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(async move {
            let Some(left) = self.lost.checked_sub(1) else {
                return self.inner.receive(into, until).await;
            };
            self.lost = left;
            while self.inner.receive(into, until).await? > 0 {}
            Ok(0)
        })
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.inner.discard_input()
    }

    fn name(&self) -> &'static str {
        "lossy"
    }
}

/// Tries of one question at a motion's beginning: those of a cycle, and the further ones.
const TRIES: u32 = 3 + 8;

/// No beginning of a motion waits longer for a bus that is lost.
const LOST_WITHIN: Duration = Duration::from_millis(200);

const ARMS: [&str; 6] = [
    "so101",
    "so100",
    "widowx250s",
    "vx300",
    "koch",
    "openmanipulator-x",
];

async fn begins(bench: &mut Bench, lost: u32) -> (Result<ArmMeasurement, DriverError>, Duration) {
    let began = bench.clock.now();
    let mut link = Lossy {
        inner: &mut bench.link,
        lost,
    };
    let begun = bench.driver.begin(&mut link, TorqueLimit::Touch).await;
    (begun, bench.clock.now().since(began))
}

/// A machine that was busy for 30 ms had the motion refused.
#[tokio::test]
async fn a_motion_begins_though_the_first_answers_are_lost() {
    for name in ARMS {
        for lost in 0..TRIES {
            let mut bench = Bench::energised(name).await;
            let (begun, took) = begins(&mut bench, lost).await;
            assert!(begun.is_ok(), "{name}, {lost} lost: {begun:?}");
            assert!(took < LOST_WITHIN, "{name}, {lost} lost: {took:?}");
        }
    }
}

#[tokio::test]
async fn torque_goes_on_though_the_first_answers_are_lost() {
    for name in ARMS {
        for lost in 0..TRIES {
            let mut bench = Bench::new(name);
            bench.driver.attach(&mut bench.link).await.unwrap();
            let mut link = Lossy {
                inner: &mut bench.link,
                lost,
            };
            let energised = bench.driver.energise(&mut link).await;
            assert!(energised.is_ok(), "{name}, {lost} lost: {energised:?}");
        }
    }
}

#[tokio::test]
async fn a_lost_bus_is_found_and_named_in_time_before_a_motion() {
    for name in ARMS {
        let mut bench = Bench::energised(name).await;
        let (begun, took) = begins(&mut bench, u32::MAX).await;
        let why = begun.unwrap_err();
        assert!(
            matches!(why, DriverError::NoReply { tries: TRIES, .. }),
            "{name}: {why}"
        );
        assert!(took < LOST_WITHIN, "{name}: {took:?}");
        // What is known of the limit is what was read back: the next motion writes it again.
        let (begun, _) = begins(&mut bench, 0).await;
        assert!(begun.is_ok(), "{name}: {begun:?}");
        let (begun, took) = begins(&mut bench, u32::MAX).await;
        let why = begun.unwrap_err();
        assert!(
            matches!(why, DriverError::SilentBus { .. }),
            "{name}: {why}"
        );
        assert!(took < LOST_WITHIN, "{name}: {took:?}");
    }
}

#[tokio::test]
async fn one_lost_servo_is_named_before_a_motion() {
    let mut bench = Bench::energised("so101").await;
    bench.sim.break_it(SimulatedFault::Silence(3));
    for _ in 0..2 {
        let (begun, took) = begins(&mut bench, 0).await;
        assert_eq!(begun.unwrap_err().servo().unwrap().id, 3);
        assert!(took < LOST_WITHIN, "{took:?}");
    }
}

#[tokio::test]
async fn a_pulled_plug_is_told_at_once_before_a_motion() {
    let mut bench = Bench::energised("so101").await;
    bench.sim.break_it(SimulatedFault::Unplug);
    let (begun, took) = begins(&mut bench, 0).await;
    assert!(begun.unwrap_err().is_unplugged());
    assert_eq!(took, Duration::ZERO);
}

/// In a motion nothing is waited for longer than before.
#[tokio::test]
async fn a_cycle_after_the_beginning_has_the_tries_of_a_cycle() {
    let mut bench = Bench::energised("so101").await;
    begins(&mut bench, 5).await.0.unwrap();
    for id in 1..=6 {
        bench.sim.break_it(SimulatedFault::Silence(id));
    }
    let began = bench.clock.now();
    let far = began.after(Duration::from_secs(1));
    let silent = bench.driver.follow(&mut bench.link, None, far).await;
    assert!(matches!(silent, Err(DriverError::SilentBus { .. })));
    let took = bench.clock.now().since(began);
    assert!(took < Duration::from_millis(30), "{took:?}");
}
