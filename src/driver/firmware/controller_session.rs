//! The host state machine on a link: what it wants sent goes out, what comes in reaches it.

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
const ANSWER: Duration = Duration::from_millis(500);

/// Between two looks at the line while an answer is awaited.
const LOOK: Duration = Duration::from_millis(2);

/// More bytes than this in one look are noise without end.
const BYTES_MAX: usize = 16 * 1024;

/// One session after another with a controller.
pub(super) struct ControllerSession {
    pub(super) host: Host,
    pub(super) clock: NodeClock,
    pub(super) counts: BusCounts,
    state: Option<State>,
    /// Time at which that was true; `None` where the controller's clock was not known yet.
    state_at: Option<ClockInstant>,
    refused: Option<SegmentAck>,
    /// A controller that was not ready has restarted, or its next STATE says what else it is doing.
    unexplained: Option<SegmentAck>,
    rebooted: Option<(u32, u32)>,
    mismatch: Option<ControllerFault>,
    boot: u32,
    tally: FrameTally,
    /// Frames that the controller dropped since it started, which wraps; `None` before that is
    /// known, and behind a restart.
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
            refused: None,
            unexplained: None,
            rebooted: None,
            mismatch: None,
            boot: 0,
            tally: FrameTally::default(),
            device_corrupt: None,
        }
    }

    /// Nothing that was known of another port or before a break is believed.
    pub(super) fn forget(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        *self = Self::new(&self.clock.clone(), counts);
    }

    pub(super) fn now_us(&self) -> u64 {
        micros(self.clock.now())
    }

    /// The last STATE, and when it was true: `None` where it came before the controller's clock was
    /// known. It may be as old as what waited in an adapter then, and is no reading.
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

    /// The controller's clock now; `None` until it is known.
    pub(super) fn device_us(&self) -> Option<u32> {
        let device_us = self.host.clock().device_us(self.now_us())?;
        u32::try_from(device_us & u64::from(u32::MAX)).ok()
    }

    /// The time in which segments are scheduled, now; `None` until the controller has said it.
    pub(super) fn path_us(&self) -> Option<u32> {
        let shift_us = self.state?.shift_us;
        Some(self.device_us()?.wrapping_sub(shift_us))
    }

    /// The first refusal since this was last asked.
    pub(super) fn take_refusal(&mut self) -> Option<SegmentAck> {
        self.refused.take()
    }

    /// The boot before and after a restart since this was last asked.
    pub(super) fn take_reboot(&mut self) -> Option<(u32, u32)> {
        self.rebooted.take()
    }

    /// Clears errors that have been reported.
    pub(super) fn clear_errors(&mut self) {
        (self.refused, self.unexplained, self.rebooted) = (None, None, None);
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

    /// Takes what arrives until `until`, or until there was something and it `suffices`.
    pub(super) async fn listen(
        &mut self,
        link: &mut dyn ByteLink,
        until: ClockInstant,
        suffices: impl Fn(&Self) -> bool,
    ) -> Result<(), DriverError> {
        let mut buffer = [0_u8; 1024];
        let mut heard = 0;
        while heard < BYTES_MAX {
            let count = link
                .receive(&mut buffer, until)
                .await
                .map_err(BusError::Read)?;
            if count == 0 {
                break;
            }
            heard += count;
            let now_us = self.now_us();
            let (bytes, _) = buffer.split_at(count);
            self.host.receive(bytes, now_us);
            self.take_events();
            if suffices(self) {
                break;
            }
        }
        self.count();
        Ok(())
    }

    /// Counts what has happened on the line since this was last done.
    fn count(&mut self) {
        let line = self.host.counters();
        let now = FrameTally {
            frames: line.frames,
            corrupt: line.corrupt,
            resent: self.host.resent(),
            ignored: self.host.ignored(),
        };
        let before = std::mem::replace(&mut self.tally, now);
        let more = |now: u32, before: u32| u64::from(now.saturating_sub(before));
        let resent = more(now.resent, before.resent);
        let counts = &mut self.counts;
        counts.frames += more(now.frames, before.frames) + resent;
        counts.corrupt += more(now.corrupt, before.corrupt);
        counts.resent += resent;
        counts.foreign += more(now.ignored, before.ignored);
        // A piece of motion is for every joint.
        let servos = counts.servos.iter_mut();
        servos.for_each(|servo| servo.retries += resent);
    }

    /// A cycle of such a length gave no reading of any joint.
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
                    // The boot is the old one: the refusal was none of a restart.
                    self.refused = self.refused.or(self.unexplained.take());
                    self.take_state(state);
                }
                Event::Paired(ack) => {
                    if self.boot != 0 && ack.boot_id != self.boot {
                        self.rebooted = Some((self.boot, ack.boot_id));
                        self.device_corrupt = None;
                    }
                    self.unexplained = None;
                    self.boot = ack.boot_id;
                }
                Event::Refused(ack) if ack.status == SegmentStatus::NotReady => {
                    self.unexplained = self.unexplained.or(Some(ack));
                }
                Event::Refused(ack) => self.refused = self.refused.or(Some(ack)),
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
        // What the controller dropped before this session is nothing of now.
        if let Some(before) = self.device_corrupt.replace(state.corrupt) {
            self.counts.corrupt += u64::from(state.corrupt.wrapping_sub(before));
        }
        let now = self.clock.now();
        self.state_at = self.device_us().map(|device_us| {
            let age_us = device_us.wrapping_sub(state.clock_us);
            // A clock that is not known well may make a STATE a little younger than new.
            let age_us = if age_us > u32::MAX / 2 { 0 } else { age_us };
            now.before(Duration::from_micros(u64::from(age_us)))
        });
        self.state = Some(state);
    }

    /// Exchanges bytes until `done`; whether it came to that before `patience` was over.
    pub(super) async fn until(
        &mut self,
        link: &mut dyn ByteLink,
        patience: Duration,
        done: impl Fn(&Self) -> bool,
    ) -> Result<bool, DriverError> {
        let end = self.clock.now().after(patience);
        loop {
            self.send(link).await?;
            let look = self.clock.now().after(LOOK);
            self.listen(link, look, &done).await?;
            if done(self) {
                return Ok(true);
            }
            if self.clock.now() >= end {
                return Ok(false);
            }
        }
    }

    /// Sends a command with the next frames, without waiting for its answer.
    pub(super) fn tell(&mut self, message: Message) {
        let now_us = self.now_us();
        self.host.command(message, now_us);
    }

    /// Gives a command and waits for what became of it.
    pub(super) async fn command(
        &mut self,
        link: &mut dyn ByteLink,
        message: Message,
    ) -> Result<(), DriverError> {
        self.tell(message);
        let answered = |session: &Self| !session.host.command_pending();
        if !self.until(link, ANSWER, answered).await? {
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

/// A moment in whole microseconds.
fn micros(at: ClockInstant) -> u64 {
    at.as_nanos() / 1_000
}

const fn verb(message: &Message) -> &'static str {
    match message {
        Message::Hold => "hold",
        Message::Resume => "resume",
        Message::Flush => "drop its queue",
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

    /// It counted as new, however long it had waited in an adapter.
    #[test]
    fn a_state_before_the_clock_is_known_is_no_reading() {
        let mut session = ControllerSession::new(&NodeClock::simulated(), BusCounts::default());
        assert!(session.device_us().is_none());
        session.take_state(state(5_000_000));
        let (seen, at) = session.state().unwrap();
        assert_eq!((seen.mode, at), (Mode::Idle, None));
    }
}
