//! Requests before a motion: replies that a busy machine loses, and a bus that is lost.

use super::*;
use gate::TorqueLimit;
use link::{LinkError, LinkFuture};

/// A link that loses the replies to the next requests.
struct LossyLink<'a> {
    inner: &'a mut MemoryLink<ArmSimulator>,
    lost: u32,
}

impl ByteLink for LossyLink<'_> {
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

/// Tries of one request at a motion's beginning: those of a cycle, and the additional ones.
const TRIES: u32 = 3 + 8;

/// Longest wait for a lost bus at a motion's beginning.
const LOST_WITHIN: Duration = Duration::from_millis(200);

const ARMS: [&str; 6] = [
    "so101",
    "so100",
    "widowx250s",
    "vx300",
    "koch",
    "openmanipulator-x",
];

async fn begin(bench: &mut Bench, lost: u32) -> (Result<ArmMeasurement, DriverError>, Duration) {
    let began = bench.clock.now();
    let mut link = LossyLink {
        inner: &mut bench.link,
        lost,
    };
    let result = bench.driver.begin(&mut link, TorqueLimit::Touch).await;
    (result, bench.clock.now().since(began))
}

/// A machine that is busy for 30 ms must not have the motion refused.
#[tokio::test]
async fn a_motion_begins_though_the_first_replies_are_lost() {
    for name in ARMS {
        for lost in 0..TRIES {
            let mut bench = Bench::energised(name).await;
            let (result, elapsed) = begin(&mut bench, lost).await;
            assert!(result.is_ok(), "{name}, {lost} lost: {result:?}");
            assert!(elapsed < LOST_WITHIN, "{name}, {lost} lost: {elapsed:?}");
        }
    }
}

#[tokio::test]
async fn torque_is_switched_on_though_the_first_replies_are_lost() {
    for name in ARMS {
        for lost in 0..TRIES {
            let mut bench = Bench::new(name);
            bench.driver.attach(&mut bench.link).await.unwrap();
            let mut link = LossyLink {
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
        let (result, elapsed) = begin(&mut bench, u32::MAX).await;
        let error = result.unwrap_err();
        assert!(
            matches!(error, DriverError::NoReply { tries: TRIES, .. }),
            "{name}: {error}"
        );
        assert!(elapsed < LOST_WITHIN, "{name}: {elapsed:?}");
        // The limit was not read back, so the next motion writes it again.
        let (result, _) = begin(&mut bench, 0).await;
        assert!(result.is_ok(), "{name}: {result:?}");
        let (result, elapsed) = begin(&mut bench, u32::MAX).await;
        let error = result.unwrap_err();
        assert!(
            matches!(error, DriverError::SilentBus { .. }),
            "{name}: {error}"
        );
        assert!(elapsed < LOST_WITHIN, "{name}: {elapsed:?}");
    }
}

#[tokio::test]
async fn one_lost_servo_is_named_before_a_motion() {
    let mut bench = Bench::energised("so101").await;
    bench.sim.break_it(SimulatedFault::Silence(3));
    for _ in 0..2 {
        let (result, elapsed) = begin(&mut bench, 0).await;
        assert_eq!(result.unwrap_err().servo().unwrap().id, 3);
        assert!(elapsed < LOST_WITHIN, "{elapsed:?}");
    }
}

#[tokio::test]
async fn a_pulled_plug_is_reported_at_once_before_a_motion() {
    let mut bench = Bench::energised("so101").await;
    bench.sim.break_it(SimulatedFault::Unplug);
    let (result, elapsed) = begin(&mut bench, 0).await;
    assert!(result.unwrap_err().is_unplugged());
    assert_eq!(elapsed, Duration::ZERO);
}

/// During a motion no reply is waited for longer than usual.
#[tokio::test]
async fn a_cycle_after_the_beginning_has_the_tries_of_a_cycle() {
    let mut bench = Bench::energised("so101").await;
    begin(&mut bench, 5).await.0.unwrap();
    for id in 1..=6 {
        bench.sim.break_it(SimulatedFault::Silence(id));
    }
    let began = bench.clock.now();
    let deadline = began.after(Duration::from_secs(1));
    let silent = bench.driver.follow(&mut bench.link, None, deadline).await;
    assert!(matches!(silent, Err(DriverError::SilentBus { .. })));
    let elapsed = bench.clock.now().since(began);
    assert!(elapsed < Duration::from_millis(30), "{elapsed:?}");
}
