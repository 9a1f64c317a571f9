//! Commands: done once each, in order, and answered by the next STATE.

use super::{After, Device};
use crate::message::{Cause, CommandResult, Message, Mode};

/// Sequence numbers up to this far ahead are newer, all others are older.
const NEWER_MAX: u8 = 127;

impl Device {
    /// Carries a command out unless it is a copy or older than the last. HOLD is always carried out:
    /// a copy of it can only stop.
    pub(super) fn command(&mut self, message: &Message, sequence: u8) {
        let age = sequence.wrapping_sub(self.command);
        self.since_state_us = self.config.state_period_us;
        if (1..=NEWER_MAX).contains(&age) {
            self.command = sequence;
            self.result = self.execute(message);
        } else if *message == Message::Hold {
            self.stop(After::Keep, Cause::Hold);
        } else if age != 0 {
            self.ignored = self.ignored.wrapping_add(1);
        }
    }

    fn execute(&mut self, message: &Message) -> CommandResult {
        match message {
            Message::Hold => self.hold(),
            _ if !self.paired => CommandResult::WrongMode,
            Message::ClearFault(nonce) => self.clear_fault(*nonce),
            Message::Torque(false) => self.command_torque_off(),
            _ if self.latched() => CommandResult::Latched,
            Message::Torque(true) => self.torque_on(),
            _ if !self.torque => CommandResult::WrongMode,
            Message::Resume => self.resume(),
            Message::Flush => self.flush(),
            Message::Park => self.park(),
            _ => CommandResult::WrongMode,
        }
    }

    fn hold(&mut self) -> CommandResult {
        if self.latched() {
            return CommandResult::Latched;
        }
        if !self.torque {
            return CommandResult::WrongMode;
        }
        self.stop(After::Keep, Cause::Hold);
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
            self.stop(After::Drop, Cause::Flush);
        } else {
            self.path.drop_rest();
            self.parking = false;
            self.mode = Mode::Idle;
            self.cause = Cause::None;
        }
        CommandResult::Done
    }

    fn clear_fault(&mut self, nonce: u32) -> CommandResult {
        if !self.latched() {
            return CommandResult::WrongMode;
        }
        if self.moving() {
            return CommandResult::Moving;
        }
        if nonce != self.nonce {
            return CommandResult::WrongNonce;
        }
        self.path.stand(&self.brake.now());
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
            .filter(|measured| self.inside(measured))
        else {
            return CommandResult::NoPosition;
        };
        self.path.stand(&measured);
        self.path.rest_at(self.clock_us);
        self.new_epoch();
        self.torque = true;
        self.cause = Cause::None;
        self.mode = Mode::Idle;
        CommandResult::Done
    }

    fn inside(&self, measured: &crate::Joints<crate::message::Knot>) -> bool {
        measured.iter().zip(self.limits()).all(|(knot, limits)| {
            (limits.position_min_urad..=limits.position_max_urad).contains(&knot.position_urad)
        })
    }

    fn command_torque_off(&mut self) -> CommandResult {
        if self.moving() {
            return CommandResult::Moving;
        }
        self.torque_off();
        CommandResult::Done
    }

    fn park(&mut self) -> CommandResult {
        if self.moving() {
            return CommandResult::Moving;
        }
        self.cause = Cause::None;
        self.begin_park();
        CommandResult::Done
    }
}
