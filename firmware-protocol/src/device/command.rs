//! Commands: each is carried out once, in order, and answered by the next STATE.

use super::{AfterStop, Device};
use crate::message::{Cause, CommandResult, Message, Mode};

/// Largest lead of a newer sequence number; all others are older.
const NEWER_MAX: u8 = 127;

impl Device {
    /// Carries out a command unless it is a copy of the last or older. HOLD is always carried out, because a
    /// copy of it can only stop the arm.
    pub(super) fn command(&mut self, message: &Message, sequence: u8) {
        let lead = sequence.wrapping_sub(self.command);
        self.since_state_us = self.config.state_period_us;
        if (1..=NEWER_MAX).contains(&lead) {
            self.command = sequence;
            self.result = self.execute(message);
        } else if *message == Message::Hold {
            self.stop(AfterStop::Keep, Cause::Hold);
        } else if lead != 0 {
            self.ignored = self.ignored.wrapping_add(1);
        }
    }

    fn execute(&mut self, message: &Message) -> CommandResult {
        match message {
            Message::Hold => self.hold(),
            _ if !self.paired => CommandResult::WrongMode,
            Message::ClearFault(nonce) => self.clear_fault(*nonce),
            Message::Torque(false) => self.command_torque_off(),
            _ if self.is_latched() => CommandResult::Latched,
            Message::Torque(true) => self.torque_on(),
            _ if !self.torque => CommandResult::WrongMode,
            Message::Resume => self.resume(),
            Message::Flush => self.flush(),
            Message::Park => self.park(),
            _ => CommandResult::WrongMode,
        }
    }

    fn hold(&mut self) -> CommandResult {
        if self.is_latched() {
            return CommandResult::Latched;
        }
        if !self.torque {
            return CommandResult::WrongMode;
        }
        self.stop(AfterStop::Keep, Cause::Hold);
        CommandResult::Done
    }

    fn resume(&mut self) -> CommandResult {
        match self.mode {
            Mode::Held if self.parking => self.mode = Mode::Parking,
            Mode::Held if self.path.is_open() => self.mode = Mode::Running,
            Mode::Held => self.mode = Mode::Idle,
            Mode::Stopped => self.mode = Mode::Idle,
            Mode::Stopping => return CommandResult::Moving,
            _ => return CommandResult::WrongMode,
        }
        self.cause = Cause::None;
        CommandResult::Done
    }

    fn flush(&mut self) -> CommandResult {
        self.new_epoch();
        if matches!(self.mode, Mode::Running | Mode::Parking | Mode::Stopping) {
            self.stop(AfterStop::Drop, Cause::Flush);
        } else {
            self.path.drop_queue();
            self.parking = false;
            self.mode = Mode::Idle;
            self.cause = Cause::None;
        }
        CommandResult::Done
    }

    fn clear_fault(&mut self, nonce: u32) -> CommandResult {
        if !self.is_latched() {
            return CommandResult::WrongMode;
        }
        if self.is_moving() {
            return CommandResult::Moving;
        }
        if nonce != self.nonce {
            return CommandResult::WrongNonce;
        }
        self.path.place_at_rest(&self.brake.now());
        self.path.rest_at(self.clock_us);
        self.nonce = 0;
        self.cause = Cause::None;
        self.mode = self.resting_mode();
        CommandResult::Done
    }

    fn torque_on(&mut self) -> CommandResult {
        if self.torque {
            return CommandResult::Done;
        }
        let Some(measured) = self
            .drives
            .measured
            .filter(|measured| self.is_within_range(measured))
        else {
            return CommandResult::NoPosition;
        };
        self.path.place_at_rest(&measured);
        self.path.rest_at(self.clock_us);
        self.new_epoch();
        self.torque = true;
        self.cause = Cause::None;
        self.mode = Mode::Idle;
        CommandResult::Done
    }

    fn is_within_range(&self, measured: &crate::Joints<crate::message::Knot>) -> bool {
        measured.iter().zip(self.limits()).all(|(knot, limits)| {
            (limits.position_min_urad..=limits.position_max_urad).contains(&knot.position_urad)
        })
    }

    fn command_torque_off(&mut self) -> CommandResult {
        if self.is_moving() {
            return CommandResult::Moving;
        }
        self.torque_off();
        CommandResult::Done
    }

    fn park(&mut self) -> CommandResult {
        if self.is_moving() {
            return CommandResult::Moving;
        }
        self.cause = Cause::None;
        self.begin_park();
        CommandResult::Done
    }
}
