//! The host side as a state machine: bytes and instants in, bytes and events out.
//!
//! A host calls [`Host::poll`] from its *control loop* and from nowhere else: the beats that keep an
//! arm moving must stop when that loop stops. It reads no clock and does no input or output.

mod clock;
mod window;

pub use clock::DeviceClock;

use crate::frame::{Decoder, DecoderCounters, ESTOP_BYTES, Received};
use crate::message::{
    Hello, HelloAck, Knot, Log, LostHost, Message, MessageError, Mode, Segment, SegmentAck,
    SegmentStatus, State,
};
use crate::ring::Ring;
use crate::schema::SCHEMA_HASH;
use crate::{Joints, PROTOCOL_MAJOR, PROTOCOL_MINOR};
use window::Window;

/// Interval at which HELLO is repeated until it is answered, in microseconds.
pub const HELLO_US: u64 = 100_000;

/// Interval between two BEAT of a host, in microseconds. At 40 ms, even on a line with jitter, two
/// in a row may be lost within the device's 150 ms; at 50 ms the third would arrive slightly too late.
pub const BEAT_US: u64 = 40_000;

/// Interval at which the device's clock is requested, in microseconds.
pub const TIME_US: u64 = 100_000;

/// Number of times that a segment is sent again before the link counts as lost.
pub const RETRIES_MAX: u32 = 20;

/// Silence of the device after which the link counts as lost, in microseconds.
pub const DEVICE_SILENCE_US: u64 = 500_000;

/// Copies of an emergency stop that are sent in a row.
const ESTOP_COPIES: u8 = 3;

/// Time without a STATE that shows the stop after which it is sent again, in microseconds.
const ESTOP_AGAIN_US: u64 = 25_000;

/// Number of bytes that can wait to be sent.
const OUTBOX_BYTES: usize = 4096;

/// Number of events that can wait to be read; further ones replace the oldest.
const EVENTS_MAX: usize = 16;

/// The reason why a device is incompatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// The device speaks this other major version.
    Version(u8),
    /// The device's layouts differ although its version matches; this is its hash.
    Schema(u32),
}

/// An event of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The device answered and is compatible: its limits and its epoch are known.
    Paired(HelloAck),
    /// The device answered and is incompatible.
    Mismatch(Mismatch),
    /// The device's state.
    State(State),
    /// The device refused a segment for good; everything queued here was dropped.
    Refused(SegmentAck),
    /// The device's epoch changed: everything queued here was dropped, and the next motion needs an anchor.
    EpochChanged(u16),
    /// The device rebooted: nothing may move before a new session.
    Rebooted,
    /// A line for people.
    Log(Log),
    /// No sign of life, or no acknowledgement after [`RETRIES_MAX`] attempts.
    LinkLost,
}

/// The reason why a segment was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError {
    /// There is no session.
    NotPaired,
    /// As many segments wait for acknowledgement as the device has free slots; try again later.
    Full,
    /// The number of joints differs from the device's.
    Joints {
        /// Number of joints given.
        given: usize,
        /// Number of joints of the device.
        device: usize,
    },
}

impl core::fmt::Display for PushError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotPaired => {
                f.write_str("no session with the controller; wait for it to answer hello")
            }
            Self::Full => {
                f.write_str("the controller's queue is full; try again in a few milliseconds")
            }
            Self::Joints { given, device } => {
                write!(f, "{given} joints given, the controller has {device}")
            }
        }
    }
}

impl core::error::Error for PushError {}

/// The host's side of a session.
#[derive(Debug, Clone)]
pub struct Host {
    lost_host: LostHost,
    decoder: Decoder,
    outbox: Ring<u8, OUTBOX_BYTES>,
    events: Ring<Option<Event>, EVENTS_MAX>,
    clock: DeviceClock,
    window: Window,
    paired: Option<HelloAck>,
    epoch: u16,
    sequence: u8,
    time_sequence: u8,
    pending: Option<Message>,
    estop_copies: u8,
    estop_pending: bool,
    estop_at_us: u64,
    hello_at_us: u64,
    beat_at_us: u64,
    time_at_us: u64,
    command_at_us: u64,
    received_at_us: u64,
    is_link_lost: bool,
    ignored: u32,
    resent: u32,
}

impl Host {
    /// Creates a host that sends HELLO at the first poll. `lost_host` is the device's action once this host has
    /// been silent for a second.
    pub fn new(lost_host: LostHost, now_us: u64) -> Self {
        Self {
            lost_host,
            decoder: Decoder::new(),
            outbox: Ring::new(0),
            events: Ring::new(None),
            clock: DeviceClock::new(),
            window: Window::new(),
            paired: None,
            epoch: 0,
            sequence: 0,
            time_sequence: 0,
            pending: None,
            estop_copies: 0,
            estop_pending: false,
            estop_at_us: now_us,
            hello_at_us: now_us,
            beat_at_us: now_us,
            time_at_us: now_us,
            command_at_us: now_us,
            received_at_us: now_us,
            is_link_lost: false,
            ignored: 0,
            resent: 0,
        }
    }

    /// Returns the device's description of itself; `None` before it answers, after a reboot or a mismatch.
    pub const fn paired(&self) -> Option<&HelloAck> {
        self.paired.as_ref()
    }

    /// Returns the estimate of the device's clock.
    pub const fn clock(&self) -> &DeviceClock {
        &self.clock
    }

    /// Returns the next event, oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop().flatten()
    }

    /// Returns the number of segments that were pushed and are not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.window.len()
    }

    /// Returns whether any pushed segment is not acknowledged.
    pub fn has_unacknowledged(&self) -> bool {
        self.window.len() > 0
    }

    /// Returns the decoder's counters of the line.
    pub const fn counters(&self) -> DecoderCounters {
        self.decoder.counters()
    }

    /// Returns the number of intact frames that were ignored so far. Saturates.
    pub const fn ignored(&self) -> u32 {
        self.ignored
    }

    /// Returns the number of segments sent again so far for lack of an acknowledgement. Saturates.
    pub const fn resent(&self) -> u32 {
        self.resent
    }

    /// Returns whether a command still waits for a STATE that answers it.
    pub const fn command_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Opens a motion that begins at rest at `start_us` of the device's clock, in the last commanded position
    /// `here`.
    pub fn open(
        &mut self,
        start_us: u32,
        here: &Joints<Knot>,
        now_us: u64,
    ) -> Result<(), PushError> {
        self.push(start_us, 0, here, now_us)
    }

    /// Sends a segment and keeps it until it is acknowledged.
    pub fn push(
        &mut self,
        start_us: u32,
        duration_us: u16,
        end: &Joints<Knot>,
        now_us: u64,
    ) -> Result<(), PushError> {
        let device = self.paired.ok_or(PushError::NotPaired)?.limits.len();
        if end.len() != device {
            return Err(PushError::Joints {
                given: end.len(),
                device,
            });
        }
        let index = self.window.next_index();
        let segment = Segment {
            epoch: self.epoch,
            index,
            start_us,
            duration_us,
            end: *end,
        };
        if !self.window.push(&segment, now_us) {
            return Err(PushError::Full);
        }
        self.send_segment(&segment);
        Ok(())
    }

    /// Sends a command (`Hold`, `Resume`, `Flush`, `ClearFault`, `Torque`, `Park`) and repeats it
    /// until a STATE answers it. A newer command replaces one that was not answered.
    pub fn command(&mut self, message: Message, now_us: u64) {
        self.sequence = self.sequence.wrapping_add(1);
        self.pending = Some(message);
        self.command_at_us = now_us;
        self.send_command(now_us);
    }

    /// Sends an emergency stop three times before anything else that waits to be sent, and repeats it until
    /// a STATE shows that the device has stopped.
    pub fn emergency_stop(&mut self, now_us: u64) {
        self.estop_pending = true;
        self.estop_copies = ESTOP_COPIES;
        self.estop_at_us = now_us + ESTOP_AGAIN_US;
        self.pending = None;
        self.window.clear();
        self.outbox = Ring::new(0);
    }

    /// Sends what is due: HELLO, BEAT, TIME_REQ, and everything that was not acknowledged in time.
    pub fn poll(&mut self, now_us: u64) {
        if self.estop_pending && now_us >= self.estop_at_us {
            self.estop_copies = ESTOP_COPIES;
            self.estop_at_us = now_us + ESTOP_AGAIN_US;
        }
        if self.paired.is_none() {
            self.send_hello(now_us);
            return;
        }
        if now_us >= self.beat_at_us {
            self.beat_at_us = now_us + BEAT_US;
            self.send(&Message::Beat(low_word(now_us)), 0);
        }
        if now_us >= self.time_at_us {
            self.time_at_us = now_us + TIME_US;
            self.time_sequence = self.time_sequence.wrapping_add(1);
            self.send(&Message::TimeReq(low_word(now_us)), self.time_sequence);
        }
        if now_us >= self.command_at_us {
            self.send_command(now_us);
        }
        self.resend(now_us);
        if !self.is_link_lost && now_us > self.received_at_us + DEVICE_SILENCE_US {
            self.lose_link();
        }
    }

    /// Takes bytes off the wire.
    pub fn receive(&mut self, bytes: &[u8], now_us: u64) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Received::Frame(frame) = self.decoder.take(&mut rest) {
                let message = Message::decode(&frame);
                self.handle(&message, now_us);
            }
        }
    }

    /// Copies bytes that wait to be sent into `out` and returns their number. Emergency stops come first, even
    /// in the middle of another frame.
    pub fn transmit(&mut self, out: &mut [u8]) -> usize {
        let mut written = 0;
        while self.estop_copies > 0 {
            let Some(slot) = out.get_mut(written..written + ESTOP_BYTES.len()) else {
                return written;
            };
            slot.copy_from_slice(&ESTOP_BYTES);
            written += ESTOP_BYTES.len();
            self.estop_copies -= 1;
        }
        written + self.outbox.take(out.get_mut(written..).unwrap_or_default())
    }

    fn send_hello(&mut self, now_us: u64) {
        if now_us >= self.hello_at_us {
            self.hello_at_us = now_us + HELLO_US;
            let hello = Hello {
                major: PROTOCOL_MAJOR,
                minor: PROTOCOL_MINOR,
                lost_host: self.lost_host,
            };
            self.send(&Message::Hello(hello), self.sequence);
        }
    }

    fn handle(&mut self, message: &Result<Message, MessageError>, now_us: u64) {
        self.received_at_us = now_us;
        self.is_link_lost = false;
        match message {
            Ok(Message::HelloAck(ack)) => self.pair(ack),
            Ok(Message::TimeResp(answer)) => self.clock.learn(answer, now_us),
            Ok(Message::SegmentAck(ack)) => self.handle_ack(ack, now_us),
            Ok(Message::State(state)) => self.handle_state(state),
            Ok(Message::Log(log)) => self.events.push_over(Some(Event::Log(*log))),
            Ok(Message::Beat(_)) => {}
            Err(MessageError::Version(version)) if self.paired.is_none() => {
                self.events
                    .push_over(Some(Event::Mismatch(Mismatch::Version(*version))));
            }
            _ => self.ignored = self.ignored.saturating_add(1),
        }
    }

    fn pair(&mut self, ack: &HelloAck) {
        let mismatch = if ack.major != PROTOCOL_MAJOR {
            Some(Mismatch::Version(ack.major))
        } else {
            (ack.schema != SCHEMA_HASH).then_some(Mismatch::Schema(ack.schema))
        };
        if let Some(mismatch) = mismatch {
            self.paired = None;
            self.events.push_over(Some(Event::Mismatch(mismatch)));
            return;
        }
        self.paired = Some(*ack);
        self.epoch = ack.epoch;
        self.window.clear();
        self.window.set_free(ack.queue_depth);
        self.events.push_over(Some(Event::Paired(*ack)));
    }

    fn handle_ack(&mut self, ack: &SegmentAck, now_us: u64) {
        if is_before(ack.epoch, self.epoch) {
            // A late answer to a dropped segment says nothing about the current ones.
            self.ignored = self.ignored.saturating_add(1);
            return;
        }
        if ack.epoch != self.epoch && ack.status as u8 <= SegmentStatus::Full as u8 {
            self.change_epoch(ack.epoch);
            return;
        }
        match ack.status {
            SegmentStatus::Accepted | SegmentStatus::Duplicate | SegmentStatus::Full => {
                self.window.acknowledge(ack, now_us);
            }
            SegmentStatus::Gap => {
                self.window.acknowledge(ack, now_us);
                self.window.send_again_now(now_us);
            }
            _ => {
                self.change_epoch(ack.epoch);
                self.window.restart(ack.next_index);
                self.events.push_over(Some(Event::Refused(*ack)));
            }
        }
    }

    fn handle_state(&mut self, state: &State) {
        if matches!(state.mode, Mode::Estop | Mode::Fault) {
            self.estop_pending = false;
        }
        let Some(paired) = self.paired else { return };
        if state.boot_id != paired.boot_id {
            self.paired = None;
            self.pending = None;
            self.window.clear();
            self.clock = DeviceClock::new();
            self.events.push_over(Some(Event::Rebooted));
            return;
        }
        if state.epoch != self.epoch {
            self.change_epoch(state.epoch);
        }
        self.window.set_free(state.free);
        if state.command == self.sequence {
            self.pending = None;
        }
        self.events.push_over(Some(Event::State(*state)));
    }

    fn change_epoch(&mut self, epoch: u16) {
        let is_changed = epoch != self.epoch;
        self.epoch = epoch;
        self.window.clear();
        if is_changed {
            self.events.push_over(Some(Event::EpochChanged(epoch)));
        }
    }

    /// Sends all unacknowledged segments again once the oldest has timed out.
    fn resend(&mut self, now_us: u64) {
        if !self.window.is_due(now_us) {
            return;
        }
        if !self.window.begin_attempt(now_us) {
            self.window.clear();
            self.lose_link();
            return;
        }
        for position in 0..self.window.len() {
            if let Some(segment) = self.window.get(position) {
                self.resent = self.resent.saturating_add(1);
                self.send_segment(&segment);
            }
        }
    }

    fn lose_link(&mut self) {
        self.is_link_lost = true;
        self.events.push_over(Some(Event::LinkLost));
    }

    fn send_command(&mut self, now_us: u64) {
        if let Some(message) = self.pending {
            self.command_at_us = now_us + self.window.timeout_us();
            self.send(&message, self.sequence);
        }
    }

    fn send_segment(&mut self, segment: &Segment) {
        let [low, _] = segment.index.to_le_bytes();
        self.send(&Message::Segment(*segment), low);
    }

    /// Queues a complete frame for sending. One that does not fit is dropped, and is due again later.
    fn send(&mut self, message: &Message, sequence: u8) {
        self.outbox.put(message.encode(sequence).as_slice());
    }
}

fn low_word(now_us: u64) -> u32 {
    let [a, b, c, d, ..] = now_us.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Returns whether an epoch precedes another; epochs wrap.
const fn is_before(epoch: u16, other: u16) -> bool {
    epoch.wrapping_sub(other) > u16::MAX / 2
}
