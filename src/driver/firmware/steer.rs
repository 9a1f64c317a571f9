//! Schedules segments: the goal stream and the controller together, tick by tick.

use std::time::Duration;

use firmware_protocol::message::{Cause, Message, Mode};

use super::complaint::Complaint;
use super::stream::{self, STEP_US, Stream};
use super::{Firmware, Phase, knots_here};
use crate::error::DriverError;
use crate::map::Command;
use base::units::Instant;

/// Delay between receiving a goal and reaching it, in microseconds.
const LEAD_US: u32 = 100_000;

/// Nothing is sent further ahead than this, in microseconds.
const AHEAD_MAX_US: i32 = 150_000;

/// With less than this queued and nothing to follow, the arm is held along its path.
const HOLD_AT_US: i32 = 45_000;

/// With this much queued a held motion goes on.
const RESUME_AT_US: i32 = 80_000;

/// Longest time that a held motion waits for its next goal before it is dropped.
const HELD: Duration = Duration::from_millis(500);

impl Firmware {
    pub(super) fn stop_dead(&mut self) {
        let now_us = self.session.now_us();
        self.session.host.emergency_stop(now_us);
        self.stream = Stream::new(&self.limits);
        self.phase = Phase::Stopped;
        self.halt = None;
    }

    pub(super) fn take(&mut self, command: &Command) -> Result<(), DriverError> {
        if !self.is_energised() {
            return Err(DriverError::Limp);
        }
        let goals = self.map.goals(command, &self.found_urad)?;
        let goal = goals.into_iter().flatten().map(|(urad, _)| urad.round());
        if self.stream.goal(goal.collect()) {
            Ok(())
        } else {
            Err(Complaint::Behind(stream::GOALS_MAX).into())
        }
    }

    /// Does what the controller's mode and the goals that wait call for.
    pub(super) fn steer(&mut self) -> Result<(), DriverError> {
        if self.halt.take().is_some() {
            self.hold(true);
        }
        match self.phase {
            Phase::Limp | Phase::Stopped => Ok(()),
            Phase::Resting if self.stream.has_goals() => self.begin(),
            Phase::Resting => Ok(()),
            Phase::Running => self.run(),
            Phase::Holding { since, drop } => {
                self.wait_held(since, drop);
                Ok(())
            }
            Phase::Resuming => {
                if !self.session.host.command_pending() {
                    self.phase = Phase::Running;
                }
                self.feed();
                Ok(())
            }
            Phase::Flushing => {
                if !self.session.host.command_pending() && self.session.mode() == Mode::Idle {
                    self.phase = Phase::Resting;
                }
                Ok(())
            }
        }
    }

    /// Decelerates along the path, at once.
    fn hold(&mut self, drop: bool) {
        if matches!(self.phase, Phase::Limp | Phase::Stopped) {
            return;
        }
        if drop {
            self.stream = Stream::new(&self.limits);
        }
        let now_us = self.session.now_us();
        self.session.host.command(Message::Hold, now_us);
        self.phase = Phase::Holding {
            since: self.session.clock.now(),
            drop,
        };
    }

    fn begin(&mut self) -> Result<(), DriverError> {
        if self.session.host.command_pending() {
            return Ok(());
        }
        match self.session.mode() {
            Mode::Idle => self.open(),
            // It held while nothing was under way, for want of beats perhaps.
            Mode::Held | Mode::Stopped => {
                self.drop_queue();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Anchors a motion where the controller's set-points stand.
    #[expect(clippy::expect_used, reason = "a STATE has no more joints than it may")]
    fn open(&mut self) -> Result<(), DriverError> {
        let Some((device_us, (state, _))) = self.session.device_us().zip(self.session.state())
        else {
            return Ok(());
        };
        self.check_joints(state)?;
        let here = firmware_protocol::Joints::from_slice(&knots_here(state));
        let here = here.expect("the joints of a STATE");
        self.stream.begin(here.as_slice());
        self.tail_us = device_us.wrapping_add(LEAD_US);
        let now_us = self.session.now_us();
        let opened = self.session.host.open(self.tail_us, &here, now_us);
        if opened.is_ok() {
            self.phase = Phase::Running;
            self.feed();
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), DriverError> {
        self.feed();
        let Some(ahead_us) = self.ahead_us() else {
            return Ok(());
        };
        if self.stream.has_ended() {
            let idle = self.session.mode() == Mode::Idle && self.state_is_past_tail();
            if idle && !self.session.host.has_unacknowledged() {
                self.phase = Phase::Resting;
            }
        } else if ahead_us < HOLD_AT_US {
            self.hold(false);
        }
        Ok(())
    }

    fn state_is_past_tail(&self) -> bool {
        self.session.state().is_some_and(|(state, _)| {
            let path_us = state.clock_us.wrapping_sub(state.shift_us);
            path_us.wrapping_sub(self.tail_us).cast_signed() >= 0
        })
    }

    /// Returns the queued path time.
    fn ahead_us(&self) -> Option<i32> {
        let path_us = self.session.path_us()?;
        Some(self.tail_us.wrapping_sub(path_us).cast_signed())
    }

    /// Sends goals that wait, but never far ahead.
    #[expect(
        clippy::expect_used,
        reason = "as many knots as a motion was opened with"
    )]
    fn feed(&mut self) {
        while self.ahead_us().is_some_and(|ahead| ahead < AHEAD_MAX_US)
            && let Some(end) = self.stream.next()
        {
            let knots = firmware_protocol::Joints::from_slice(&end);
            let knots = knots.expect("the joints of a motion");
            let now_us = self.session.now_us();
            let pushed = self
                .session
                .host
                .push(self.tail_us, STEP_US, &knots, now_us);
            if pushed.is_err() {
                break;
            }
            self.tail_us = self.tail_us.wrapping_add(u32::from(STEP_US));
            self.stream.sent(end);
        }
    }

    fn wait_held(&mut self, since: Instant, drop: bool) {
        if !drop {
            self.feed();
        }
        let stands = matches!(self.session.mode(), Mode::Held | Mode::Stopped);
        if self.session.host.command_pending() || !stands {
            return;
        }
        let waited = self.session.clock.now().since(since);
        let ready = self.ahead_us().is_some_and(|ahead| ahead >= RESUME_AT_US);
        if drop || waited > HELD {
            self.drop_queue();
        } else if ready || self.stream.has_ended() {
            let now_us = self.session.now_us();
            self.session.host.command(Message::Resume, now_us);
            self.phase = Phase::Resuming;
        }
    }

    fn drop_queue(&mut self) {
        let now_us = self.session.now_us();
        self.session.host.command(Message::Flush, now_us);
        if self.phase != Phase::Resting {
            self.stream = Stream::new(&self.limits);
            self.phase = Phase::Flushing;
        }
    }

    /// Checks for anything that the controller did without a command.
    pub(super) fn find_fault(&mut self) -> Result<(), DriverError> {
        if let Some((before, after)) = self.session.take_reboot() {
            self.phase = Phase::Limp;
            return Err(Complaint::Rebooted { before, after }.into());
        }
        let refused = self.session.take_refusal();
        if matches!(self.phase, Phase::Limp | Phase::Stopped) {
            return Ok(());
        }
        let complaint = match refused {
            Some(ack) => {
                let names = self.map.entries.iter().map(|entry| &entry.name);
                Some(Complaint::refused(&ack, names))
            }
            None => self.broken(),
        };
        let Some(complaint) = complaint else {
            return Ok(());
        };
        self.phase = Phase::Limp;
        self.stream = Stream::default();
        Err(complaint.into())
    }

    pub(super) fn broken(&self) -> Option<Complaint> {
        let stopped = Complaint::Stopped(self.session.cause());
        match self.session.mode() {
            Mode::Estop | Mode::Fault => Some(self.latched()),
            Mode::Unpaired | Mode::Disarmed => Some(Complaint::Limp),
            Mode::Stopping | Mode::Held | Mode::Stopped => self.is_astray().then_some(stopped),
            _ => None,
        }
    }

    /// Returns whether a controller has left its motion without a command.
    fn is_astray(&self) -> bool {
        match self.phase {
            Phase::Running => true,
            Phase::Holding { drop: false, .. } => {
                self.session.mode() == Mode::Stopped
                    || !matches!(self.session.cause(), Cause::Hold | Cause::None)
            }
            _ => false,
        }
    }

    pub(super) fn latched(&self) -> Complaint {
        let (mode, cause, faults) = self
            .session
            .state()
            .map_or((Mode::Fault, Cause::None, 0), |(state, _)| {
                (state.mode, state.cause, state.drive_faults)
            });
        let failed = self.map.entries.iter().enumerate();
        let failed = failed.filter(|(place, _)| faults >> place & 1 == 1);
        Complaint::Latched {
            mode,
            cause,
            joints: failed.map(|(_, entry)| entry.name.to_string()).collect(),
        }
    }
}
