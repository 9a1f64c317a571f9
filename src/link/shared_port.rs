//! One open port with several holders: each owns it from the first byte of a request to the end of its replies.
//!
//! The holders' loops run on one thread, to whose runtime the port belongs. They take turns in the order in which they
//! ask, so none waits for more than one request of each other holder, and none keeps the port for longer than
//! [`TURN_MAX`].

use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::{Mutex as TurnMutex, OwnedMutexGuard};

use crate::{ByteLink, LinkError, LinkFuture};
use base::clock::NodeClock;
use base::lock::MutexExt;
use base::units::ClockInstant;

/// Longest wait of a holder for its replies: half of a cycle, so that of two holders each has its time even where the
/// other's servos are silent.
pub const TURN_MAX: Duration = Duration::from_millis(5);

/// Opens the port that is to be shared.
pub type SharedOpener = Box<dyn Fn(&NodeClock) -> Result<Box<dyn ByteLink>, LinkError> + Send>;

/// A port for several holders; clones are the same port.
#[derive(Clone)]
pub struct SharedPort(Arc<Mutex<PortState>>);

struct PortState {
    open: SharedOpener,
    wire: Weak<TurnMutex<Wire>>,
    name: String,
}

/// The open port.
struct Wire {
    link: Box<dyn ByteLink>,
    /// `true` once a holder found that the device went away: the others need not find out by themselves.
    is_gone: bool,
}

impl SharedPort {
    /// Creates a port that is opened by its first holder.
    #[must_use]
    pub fn new(open: SharedOpener) -> Self {
        let (wire, name) = (Weak::new(), String::new());
        Self(Arc::new(Mutex::new(PortState { open, wire, name })))
    }

    /// Joins the holders of the port, which is opened if it has none. A port that went away has holders until all of
    /// them have let go of it.
    ///
    /// # Errors
    /// The port cannot be opened.
    pub fn open(&self, clock: &NodeClock) -> Result<SharedLink, LinkError> {
        let mut port = self.0.locked();
        let wire = match port.wire.upgrade() {
            Some(wire) => wire,
            None => {
                let (link, is_gone) = ((port.open)(clock)?, false);
                link.name().clone_into(&mut port.name);
                let wire = Arc::new(TurnMutex::new(Wire { link, is_gone }));
                port.wire = Arc::downgrade(&wire);
                wire
            }
        };
        Ok(SharedLink {
            wire,
            turn: None,
            clock: clock.clone(),
            name: port.name.clone(),
        })
    }
}

/// One holder's end of a shared port.
pub struct SharedLink {
    wire: Arc<TurnMutex<Wire>>,
    turn: Option<Turn>,
    clock: NodeClock,
    name: String,
}

/// A holder's use of the port.
struct Turn {
    wire: OwnedMutexGuard<Wire>,
    /// Latest time at which it waits for replies.
    until: ClockInstant,
}

impl SharedLink {
    async fn take_turn(&mut self) -> Result<(), LinkError> {
        if self.turn.is_some() {
            return Ok(());
        }
        let wire = Arc::clone(&self.wire).lock_owned().await;
        if wire.is_gone {
            return Err(LinkError::Unplugged);
        }
        let until = self.clock.now().after(TURN_MAX);
        self.turn = Some(Turn { wire, until });
        Ok(())
    }

    async fn send_in_turn(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        let turn = self
            .turn
            .as_mut()
            .ok_or_else(|| LinkError::Write(out_of_turn()))?;
        let sent = turn.wire.link.send(bytes).await;
        turn.note(sent)
    }

    async fn receive_in_turn(
        &mut self,
        into: &mut [u8],
        until: ClockInstant,
    ) -> Result<usize, LinkError> {
        let turn = self
            .turn
            .as_mut()
            .ok_or_else(|| LinkError::Read(out_of_turn()))?;
        let received = turn.wire.link.receive(into, until.min(turn.until)).await;
        turn.note(received)
    }
}

impl Turn {
    /// Notes for all holders if the device went away.
    fn note<T>(&mut self, result: Result<T, LinkError>) -> Result<T, LinkError> {
        self.wire.is_gone |= matches!(result, Err(LinkError::Unplugged));
        result
    }
}

impl ByteLink for SharedLink {
    fn claim(&mut self) -> LinkFuture<'_, ()> {
        Box::pin(self.take_turn())
    }

    fn release(&mut self) {
        self.turn = None;
    }

    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        Box::pin(self.send_in_turn(bytes))
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(self.receive_in_turn(into, until))
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        let turn = self
            .turn
            .as_mut()
            .ok_or_else(|| LinkError::Read(out_of_turn()))?;
        let discarded = turn.wire.link.discard_input();
        turn.note(discarded)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// Refuses bytes of a holder that has not claimed the port: they would lie inside another's request.
fn out_of_turn() -> io::Error {
    io::Error::other("the port is shared and was not claimed")
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use crate::ClaimedLink;
    use crate::memory::{FarEnd, MemoryLink};

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Event {
        Asks(u8),
        Begins(u8),
        Sends(u8),
        Ends(u8),
    }

    type Log = Arc<Mutex<Vec<Event>>>;

    /// Pseudo-random numbers by a seed.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }

        /// Lets the other tasks run, some times.
        async fn pause(&mut self) {
            for _ in 0..self.below(4) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// A port that takes its time, and replies to a request with the request.
    struct SlowLink {
        log: Log,
        dice: Dice,
        heard: Vec<u8>,
    }

    impl ByteLink for SlowLink {
        fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
            Box::pin(async move {
                for byte in bytes {
                    self.log.locked().push(Event::Sends(*byte));
                    self.heard.push(*byte);
                    self.dice.pause().await;
                }
                Ok(())
            })
        }

        fn receive<'a>(
            &'a mut self,
            into: &'a mut [u8],
            _until: ClockInstant,
        ) -> LinkFuture<'a, usize> {
            Box::pin(async move {
                self.dice.pause().await;
                into[0] = self.heard.remove(0);
                Ok(1)
            })
        }

        fn discard_input(&mut self) -> Result<(), LinkError> {
            self.heard.clear();
            Ok(())
        }

        fn name(&self) -> &str {
            "slow"
        }
    }

    /// Notes the end of a turn, however it ends.
    struct NoteEnd<'a>(&'a Log, u8);

    impl Drop for NoteEnd<'_> {
        fn drop(&mut self) {
            self.0.locked().push(Event::Ends(self.1));
        }
    }

    /// Sends a request of three bytes and collects the three of its reply.
    async fn transact(link: &mut SharedLink, holder: u8, log: &Log) {
        log.locked().push(Event::Asks(holder));
        let mut claimed = ClaimedLink::claim(link).await.unwrap();
        let _end = NoteEnd(log, holder);
        log.locked().push(Event::Begins(holder));
        claimed.discard_input().unwrap();
        claimed.send(&[holder; 3]).await.unwrap();
        for _ in 0..3 {
            let mut reply = [0];
            let until = ClockInstant::from_nanos(u64::MAX);
            assert_eq!(claimed.receive(&mut reply, until).await.unwrap(), 1);
            assert_eq!(reply, [holder]);
        }
    }

    /// Every byte is sent in a turn of its sender, turns do not overlap, and none waits for two turns of another holder. A
    /// turn that is given up in the middle ends there.
    #[tokio::test]
    async fn no_request_lies_within_anothers() {
        for seed in 1..=200_u64 {
            let (log, clock) = (Log::default(), NodeClock::simulated());
            let slow = Arc::clone(&log);
            let port = SharedPort::new(Box::new(move |_| {
                let (log, dice) = (Arc::clone(&slow), Dice(seed));
                let heard = Vec::new();
                Ok(Box::new(SlowLink { log, dice, heard }) as Box<dyn ByteLink>)
            }));
            let holders = (1..=3_u8).map(|holder| {
                let mut link = port.open(&clock).unwrap();
                let (log, mut dice) = (Arc::clone(&log), Dice(seed * 1000 + u64::from(holder)));
                tokio::spawn(async move {
                    for _ in 0..30 {
                        dice.pause().await;
                        let gives_up = dice.below(5) == 0;
                        let turns = dice.below(12);
                        let patience = async {
                            for _ in 0..turns {
                                tokio::task::yield_now().await;
                            }
                            if !gives_up {
                                std::future::pending::<()>().await;
                            }
                        };
                        tokio::select! {
                            biased;
                            () = transact(&mut link, holder, &log) => {}
                            () = patience => {}
                        }
                    }
                })
            });
            for holder in holders.collect::<Vec<_>>() {
                holder.await.unwrap();
            }
            check_turns(seed, &log.locked());
        }
    }

    fn check_turns(seed: u64, log: &[Event]) {
        let mut now = None;
        for (place, event) in log.iter().enumerate() {
            match *event {
                Event::Asks(_) => {}
                Event::Begins(holder) => {
                    assert_eq!(now, None, "seed {seed}, {place}");
                    let asked = log[..place].iter().rposition(|e| *e == Event::Asks(holder));
                    let waited = &log[asked.unwrap()..place];
                    for other in 1..=3 {
                        let turns = waited.iter().filter(|e| **e == Event::Begins(other));
                        assert!(turns.count() <= 1, "seed {seed}, {place}: {holder} waits");
                    }
                    now = Some(holder);
                }
                Event::Sends(sender) => assert_eq!(now, Some(sender), "seed {seed}, {place}"),
                Event::Ends(holder) => assert_eq!(now.take(), Some(holder), "seed {seed}"),
            }
        }
        assert_eq!(now, None, "seed {seed}");
        let turns = log.iter().filter(|e| matches!(e, Event::Begins(_)));
        assert!(turns.count() > 45, "seed {seed}: too few turns to tell");
    }

    /// A device that says nothing and can be unplugged.
    #[derive(Clone, Default)]
    struct Mute(Arc<Mutex<bool>>);

    impl FarEnd for Mute {
        fn hear(&mut self, _at: ClockInstant, _bytes: &[u8]) {}

        fn next_due(&self) -> Option<ClockInstant> {
            None
        }

        fn speak(&mut self, _now: ClockInstant, _into: &mut Vec<u8>) {}

        fn is_plugged(&self) -> bool {
            !*self.0.locked()
        }
    }

    /// Returns the port of a device, and the number of times that it was opened.
    fn port_of(device: Mute) -> (SharedPort, Arc<Mutex<u32>>) {
        let opened = Arc::new(Mutex::new(0));
        let count = Arc::clone(&opened);
        let port = SharedPort::new(Box::new(move |clock| {
            *count.locked() += 1;
            let link = MemoryLink::new(device.clone(), clock, "mute").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        }));
        (port, opened)
    }

    #[tokio::test]
    async fn nobody_waits_longer_than_a_turn_for_a_reply_or_speaks_without_one() {
        let clock = NodeClock::simulated();
        let (port, _) = port_of(Mute::default());
        let mut link = port.open(&clock).unwrap();
        let hour = clock.now().after(Duration::from_secs(3600));
        let mut reply = [0; 8];
        {
            let mut claimed = ClaimedLink::claim(&mut link).await.unwrap();
            claimed.send(&[1]).await.unwrap();
            assert_eq!(claimed.receive(&mut reply, hour).await.unwrap(), 0);
            assert_eq!(clock.now(), ClockInstant::ZERO.after(TURN_MAX));
        }
        assert!(link.send(&[1]).await.is_err() && link.discard_input().is_err());
        assert!(link.receive(&mut reply, hour).await.is_err());
    }

    #[tokio::test]
    async fn all_holders_see_that_the_device_is_gone_and_it_is_opened_again_once() {
        let clock = NodeClock::simulated();
        let device = Mute::default();
        let (port, opened) = port_of(device.clone());
        let [mut one, mut other] = [(); 2].map(|()| port.open(&clock).unwrap());
        assert_eq!((one.name(), *opened.locked()), ("mute", 1));
        *device.0.locked() = true;
        let mut claimed = ClaimedLink::claim(&mut one).await.unwrap();
        let lost = claimed.send(&[1]).await;
        assert!(matches!(lost, Err(LinkError::Unplugged)), "{lost:?}");
        drop(claimed);
        drop(one);
        // It is back before the other holder has looked.
        *device.0.locked() = false;
        for link in [&mut other, &mut port.open(&clock).unwrap()] {
            let lost = ClaimedLink::claim(link).await.err();
            assert!(matches!(lost, Some(LinkError::Unplugged)), "{lost:?}");
        }
        drop(other);
        let [mut one, mut other] = [(); 2].map(|()| port.open(&clock).unwrap());
        assert_eq!(*opened.locked(), 2);
        for link in [&mut one, &mut other] {
            ClaimedLink::claim(link)
                .await
                .unwrap()
                .send(&[1])
                .await
                .unwrap();
        }
    }
}
