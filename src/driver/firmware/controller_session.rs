//! Runs the host state machine of `firmware-protocol` over a link.

use std::time::Duration;

use firmware_protocol::message::{
    Cause, CommandResult, LostHost, Message, Mode, SegmentAck, SegmentStatus, State,
};
use firmware_protocol::{Event, Host};

use super::controller_fault::ControllerFault;
use crate::BusCounts;
use crate::error::{BusError, DriverError};
use base::clock::NodeClock;
use base::units::ClockInstant;
use link::ByteLink;

/// Time after which a command counts as unanswered.
const REPLY_TIMEOUT: Duration = Duration::from_millis(500);

/// Interval at which the line is polled while a reply is awaited.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Most bytes of one poll: more are endless noise.
const BYTES_MAX: usize = 16 * 1024;

/// The sessions with a controller.
pub(super) struct ControllerSession {
    pub(super) host: Host,
    pub(super) clock: NodeClock,
    pub(super) counts: BusCounts,
    state: Option<State>,
    /// Time of that state; `None` where the controller's clock was not known yet.
    state_at: Option<ClockInstant>,
    refusal: Option<SegmentAck>,
    /// A refusal because the controller is not ready: it has restarted, or its next STATE explains it.
    not_ready: Option<SegmentAck>,
    rebooted: Option<(u32, u32)>,
    mismatch: Option<ControllerFault>,
    boot: u32,
    tally: FrameTally,
    /// Frames that the controller dropped since it started, wrapping; `None` before that is known, and
    /// after a restart.
    device_corrupt: Option<u16>,
}

/// Counters of this side at the last update.
#[derive(Clone, Copy, Debug, Default)]
struct FrameTally {
    frames: u32,
    corrupt: u32,
    resent: u32,
    ignored: u32,
}

impl ControllerSession {
    pub(super) fn new(clock: &NodeClock, counts: BusCounts) -> Self {
        Self {
            host: Host::new(LostHost::Hold, micros(clock.now())),
            clock: clock.clone(),
            counts,
            state: None,
            state_at: None,
            refusal: None,
            not_ready: None,
            rebooted: None,
            mismatch: None,
            boot: 0,
            tally: FrameTally::default(),
            device_corrupt: None,
        }
    }

    /// Forgets everything known from another port or before a break.
    pub(super) fn forget(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        *self = Self::new(&self.clock.clone(), counts);
    }

    pub(super) fn now_us(&self) -> u64 {
        micros(self.clock.now())
    }

    /// Returns the last STATE and its time, which is `None` where it came before the controller's clock
    /// was known: it may have waited in an adapter, and is no reading.
    pub(super) fn state(&self) -> Option<(&State, Option<ClockInstant>)> {
        self.state.as_ref().map(|state| (state, self.state_at))
    }

    /// Returns whether the last STATE has a flag; `None` before the first.
    pub(super) fn has(&self, flag: u8) -> Option<bool> {
        self.state.map(|state| state.flags & flag != 0)
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.has(State::MOVING) == Some(false)
    }

    pub(super) fn mode(&self) -> Mode {
        self.state.map_or(Mode::Unpaired, |state| state.mode)
    }

    pub(super) fn cause(&self) -> Cause {
        self.state.map_or(Cause::None, |state| state.cause)
    }

    /// Returns the controller's clock now; `None` until it is known.
    pub(super) fn device_us(&self) -> Option<u32> {
        let device_us = self.host.clock().device_us(self.now_us())?;
        u32::try_from(device_us & u64::from(u32::MAX)).ok()
    }

    /// Returns the present time on the clock of segments; `None` until the controller has reported it.
    pub(super) fn path_us(&self) -> Option<u32> {
        let shift_us = self.state?.shift_us;
        Some(self.device_us()?.wrapping_sub(shift_us))
    }

    /// Takes the first refusal since the last call.
    pub(super) fn take_refusal(&mut self) -> Option<SegmentAck> {
        self.refusal.take()
    }

    /// Takes the boots before and after a restart since the last call.
    pub(super) fn take_reboot(&mut self) -> Option<(u32, u32)> {
        self.rebooted.take()
    }

    /// Clears errors that have been reported.
    pub(super) fn clear_errors(&mut self) {
        (self.refusal, self.not_ready, self.rebooted) = (None, None, None);
    }

    pub(super) fn mismatch(&self) -> Option<ControllerFault> {
        self.mismatch.clone()
    }

    /// Sends what is due and what waits.
    pub(super) async fn send(&mut self, link: &mut dyn ByteLink) -> Result<(), DriverError> {
        self.host.poll(self.now_us());
        let mut buffer = [0_u8; 1024];
        loop {
            let count = self.host.transmit(&mut buffer);
            let (bytes, _) = buffer.split_at(count);
            if bytes.is_empty() {
                return Ok(());
            }
            self.counts.transactions += 1;
            link.send(bytes).await.map_err(BusError::Write)?;
        }
    }

    /// Receives until `until`, or until something has arrived and `is_enough`.
    pub(super) async fn listen(
        &mut self,
        link: &mut dyn ByteLink,
        until: ClockInstant,
        is_enough: impl Fn(&Self) -> bool,
    ) -> Result<(), DriverError> {
        let mut buffer = [0_u8; 1024];
        let mut received = 0;
        while received < BYTES_MAX {
            let count = link
                .receive(&mut buffer, until)
                .await
                .map_err(BusError::Read)?;
            if count == 0 {
                break;
            }
            received += count;
            let now_us = self.now_us();
            let (bytes, _) = buffer.split_at(count);
            self.host.receive(bytes, now_us);
            self.take_events();
            if is_enough(self) {
                break;
            }
        }
        self.count();
        Ok(())
    }

    /// Counts what has happened on the line since the last call.
    fn count(&mut self) {
        let link_counters = self.host.counters();
        let now = FrameTally {
            frames: link_counters.frames,
            corrupt: link_counters.corrupt,
            resent: self.host.resent(),
            ignored: self.host.ignored(),
        };
        let previous = std::mem::replace(&mut self.tally, now);
        let increase = |now: u32, previous: u32| u64::from(now.saturating_sub(previous));
        let resent = increase(now.resent, previous.resent);
        let counts = &mut self.counts;
        counts.frames += increase(now.frames, previous.frames) + resent;
        counts.corrupt += increase(now.corrupt, previous.corrupt);
        counts.resent += resent;
        counts.foreign += increase(now.ignored, previous.ignored);
        // A segment concerns every joint.
        let servos = counts.servos.iter_mut();
        servos.for_each(|servo| servo.retries += resent);
    }

    /// Counts a cycle without a reading of any joint.
    pub(super) fn count_blind(&mut self, period: Duration) {
        for servo in &mut self.counts.servos {
            servo.blind += 1;
            servo.blind_time += period;
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.host.next_event() {
            match event {
                Event::State(state) => {
                    // The boot is the same: the refusal was not due to a restart.
                    self.refusal = self.refusal.or(self.not_ready.take());
                    self.take_state(state);
                }
                Event::Paired(ack) => {
                    if self.boot != 0 && ack.boot_id != self.boot {
                        self.rebooted = Some((self.boot, ack.boot_id));
                        self.device_corrupt = None;
                    }
                    self.not_ready = None;
                    self.boot = ack.boot_id;
                }
                Event::Refused(ack) if ack.status == SegmentStatus::NotReady => {
                    self.not_ready = self.not_ready.or(Some(ack));
                }
                Event::Refused(ack) => self.refusal = self.refusal.or(Some(ack)),
                Event::Mismatch(mismatch) => self.mismatch = Some(mismatch.into()),
                Event::Log(log) => {
                    tracing::info!(
                        "the controller says: {}",
                        String::from_utf8_lossy(log.text())
                    );
                }
                Event::Rebooted | Event::EpochChanged(_) | Event::LinkLost => {}
            }
        }
    }

    fn take_state(&mut self, state: State) {
        // Frames that the controller dropped before this session do not count.
        if let Some(previous) = self.device_corrupt.replace(state.corrupt) {
            self.counts.corrupt += u64::from(state.corrupt.wrapping_sub(previous));
        }
        let now = self.clock.now();
        self.state_at = self.device_us().map(|device_us| {
            let age_us = device_us.wrapping_sub(state.clock_us);
            // An inexact clock may give a STATE a slightly negative age.
            let age_us = if age_us > u32::MAX / 2 { 0 } else { age_us };
            now.before(Duration::from_micros(u64::from(age_us)))
        });
        self.state = Some(state);
    }

    /// Exchanges bytes until `is_done`; returns whether that happened within `timeout`.
    pub(super) async fn until(
        &mut self,
        link: &mut dyn ByteLink,
        timeout: Duration,
        is_done: impl Fn(&Self) -> bool,
    ) -> Result<bool, DriverError> {
        let end = self.clock.now().after(timeout);
        loop {
            self.send(link).await?;
            let poll_end = self.clock.now().after(POLL_INTERVAL);
            self.listen(link, poll_end, &is_done).await?;
            if is_done(self) {
                return Ok(true);
            }
            if self.clock.now() >= end {
                return Ok(false);
            }
        }
    }

    /// Queues a command for the next frames, without waiting for its reply.
    pub(super) fn queue_command(&mut self, message: Message) {
        let now_us = self.now_us();
        self.host.command(message, now_us);
    }

    /// Sends a command and waits for its result.
    pub(super) async fn command(
        &mut self,
        link: &mut dyn ByteLink,
        message: Message,
    ) -> Result<(), DriverError> {
        self.queue_command(message);
        let has_replied = |session: &Self| !session.host.command_pending();
        if !self.until(link, REPLY_TIMEOUT, has_replied).await? {
            return Err(ControllerFault::Unanswered(verb(&message)).into());
        }
        match self.state.map(|state| state.result) {
            Some(CommandResult::Done) => Ok(()),
            Some(CommandResult::NoPosition) => Err(ControllerFault::NoPosition.into()),
            Some(result) => Err(ControllerFault::Disobeyed {
                command: verb(&message),
                result,
            }
            .into()),
            None => Err(ControllerFault::Unanswered(verb(&message)).into()),
        }
    }
}

/// Returns an instant in whole microseconds.
fn micros(at: ClockInstant) -> u64 {
    at.as_nanos() / 1_000
}

const fn verb(message: &Message) -> &'static str {
    match message {
        Message::Hold => "hold",
        Message::Resume => "resume",
        Message::Flush => "empty its queue",
        Message::ClearFault(_) => "clear its latch",
        Message::Torque(true) => "switch torque on",
        Message::Torque(false) => "switch torque off",
        Message::Park => "park",
        _ => "obey",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use firmware_protocol::Joints;

    fn state(clock_us: u32) -> State {
        State {
            clock_us,
            boot_id: 1,
            shift_us: 0,
            nonce: 0,
            epoch: 0,
            drive_faults: 0,
            corrupt: 0,
            ignored: 0,
            mode: Mode::Idle,
            cause: Cause::None,
            flags: State::MEASURED,
            free: 0,
            command: 0,
            result: CommandResult::Done,
            joints: Joints::empty(),
        }
    }

    /// Otherwise it would count as new, however long it had waited in an adapter.
    #[test]
    fn a_state_before_the_clock_is_known_is_no_reading() {
        let mut session = ControllerSession::new(&NodeClock::simulated(), BusCounts::default());
        assert!(session.device_us().is_none());
        session.take_state(state(5_000_000));
        let (state, at) = session.state().unwrap();
        assert_eq!((state.mode, at), (Mode::Idle, None));
    }
}
