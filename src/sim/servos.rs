//! All servos of one bus, whatever bytes they speak: who there is, and what befalls each.

use std::time::Duration;

use crate::body::Body;
use crate::device::{Answer, Device};
use base::units::Instant;

/// The id that all of them obey.
pub(crate) const BROADCAST: u8 = 254;

/// Both families count their return delay in so many microseconds, and no further than this.
const DELAY_STEP_US: u64 = 2;
const DELAY_MAX: u8 = 254;

/// A servo of one family. `place` is where it stands among the body's.
pub(crate) trait Model: Send + Sized {
    /// A request as this family's servos read it.
    type Request;
    /// Collects requests byte by byte, as a servo's own receiver does.
    type Listener: Default + Send;

    /// As it leaves the factory, then set up for an arm.
    fn new(id: u8, return_delay_steps: u8) -> Self;

    /// The request that this byte completes.
    fn listen(listener: &mut Self::Listener, byte: u8) -> Option<Self::Request>;

    /// What all of them do about a request, and answer.
    fn obey_all(
        servos: &mut [Self],
        request: &Self::Request,
        body: &mut Body,
        at: Instant,
    ) -> Vec<Answer>;

    fn id(&self) -> u8;

    /// The goal becomes the present position.
    fn aim_here(&mut self, place: usize, body: &Body, at: Instant);

    /// Forgets what is not kept over power cycles.
    fn restart(&mut self, place: usize, body: &mut Body, at: Instant);

    fn set_error(&mut self, bits: u8, place: usize, body: &mut Body);

    fn force_position(&mut self, word: Option<u16>);

    fn poke(&mut self, address: usize, value: u8);

    fn kept_writes(&self) -> u64;

    /// When it does something by itself if nobody speaks.
    fn next_due(&self) -> Option<Instant> {
        None
    }

    /// Does it.
    fn wake(&mut self, place: usize, body: &mut Body, now: Instant) {
        let _ = (place, body, now);
    }
}

/// The bus.
pub(crate) struct Servos<S: Model> {
    listener: S::Listener,
    servos: Vec<S>,
}

impl<S: Model> Servos<S> {
    pub(crate) fn new(body: &Body, return_delay: Duration) -> Self {
        let steps = return_delay.as_micros() / u128::from(DELAY_STEP_US);
        let steps = u8::try_from(steps).unwrap_or(DELAY_MAX).min(DELAY_MAX);
        let servos = body.servos().enumerate().map(|(place, servo)| {
            let mut servo = S::new(servo.id, steps);
            servo.aim_here(place, body, Instant::ZERO);
            servo
        });
        Self {
            listener: S::Listener::default(),
            servos: servos.collect(),
        }
    }

    /// Every servo that has this id; two may.
    fn called(&mut self, id: u8) -> impl Iterator<Item = (usize, &mut S)> {
        let all = self.servos.iter_mut().enumerate();
        all.filter(move |(_, servo)| servo.id() == id)
    }
}

impl<S: Model> Device for Servos<S> {
    fn hear(&mut self, byte: u8, body: &mut Body, at: Instant) -> Vec<Answer> {
        match S::listen(&mut self.listener, byte) {
            Some(request) => S::obey_all(&mut self.servos, &request, body, at),
            None => Vec::new(),
        }
    }

    fn next_due(&self) -> Option<Instant> {
        self.servos.iter().filter_map(Model::next_due).min()
    }

    fn wake(&mut self, body: &mut Body, now: Instant) -> Vec<Answer> {
        for (place, servo) in self.servos.iter_mut().enumerate() {
            if servo.next_due().is_some_and(|due| due <= now) {
                servo.wake(place, body, now);
            }
        }
        Vec::new()
    }

    fn power_cycle(&mut self, id: u8, body: &mut Body, at: Instant) {
        self.called(id)
            .for_each(|(place, servo)| servo.restart(place, body, at));
    }

    fn poke(&mut self, id: u8, address: u16, value: u8) {
        self.called(id)
            .for_each(|(_, servo)| servo.poke(usize::from(address), value));
    }

    fn set_error(&mut self, id: u8, bits: u8, body: &mut Body) {
        self.called(id)
            .for_each(|(place, servo)| servo.set_error(bits, place, body));
    }

    fn force_position(&mut self, id: u8, word: Option<u16>) {
        self.called(id)
            .for_each(|(_, servo)| servo.force_position(word));
    }

    fn place(&self, id: u8) -> Option<usize> {
        self.servos.iter().position(|servo| servo.id() == id)
    }

    fn kept_writes(&self) -> u64 {
        self.servos.iter().map(Model::kept_writes).sum()
    }
}

/// How long a servo waits before it answers, by its register.
pub(crate) fn delay(steps: u8) -> Duration {
    Duration::from_micros(DELAY_STEP_US * u64::from(steps))
}

/// A servo's memory. Addresses beyond it read as zero and take nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory<const N: usize>([u8; N]);

impl<const N: usize> Memory<N> {
    /// Zeros, and these bytes.
    fn new(factory: &[(usize, u8)]) -> Self {
        let mut memory = Self([0; N]);
        for (address, value) in factory {
            memory.set(*address, &[*value]);
        }
        memory
    }

    /// The same of a servo with such an id that waits so long before it answers; the addresses of
    /// both come first.
    pub(crate) fn of(
        factory: &[(usize, u8)],
        [id_at, delay_at]: [usize; 2],
        id: u8,
        return_delay_steps: u8,
    ) -> Self {
        let mut memory = Self::new(factory);
        memory.set(id_at, &[id]);
        memory.set(delay_at, &[return_delay_steps]);
        memory
    }

    pub(crate) fn set(&mut self, address: usize, bytes: &[u8]) {
        for (slot, byte) in self.0.iter_mut().skip(address).zip(bytes) {
            *slot = *byte;
        }
    }

    pub(crate) fn byte(&self, address: usize) -> u8 {
        self.0.get(address).copied().unwrap_or(0)
    }

    /// Two bytes, the lower first.
    pub(crate) fn word(&self, address: usize) -> u16 {
        u16::from_le_bytes([0, 1].map(|at| self.byte(address + at)))
    }

    /// Four bytes, the lowest first.
    pub(crate) fn long(&self, address: usize) -> i32 {
        i32::from_le_bytes([0, 1, 2, 3].map(|at| self.byte(address + at)))
    }

    /// `None` where it does not reach so far.
    pub(crate) fn read(&self, address: usize, length: usize) -> Option<Vec<u8>> {
        self.0.get(address..address + length).map(<[u8]>::to_vec)
    }

    /// Everything from `kept` on is lost.
    pub(crate) fn forget(&mut self, kept: usize) {
        self.0.iter_mut().skip(kept).for_each(|byte| *byte = 0);
    }
}
