//! Schedules segments: the goal stream and the controller together, tick by tick.

use std::time::Duration;

use firmware_protocol::message::{Cause, Message, Mode, SegmentStatus};

use super::controller_fault::ControllerFault;
use super::goal_stream::{self, GoalStream, STEP_US};
use super::{FirmwareDriver, StreamPhase, rest_knots};
use crate::error::DriverError;
use crate::servo_map::JointCommand;
use base::units::ClockInstant;

/// Delay between receiving a goal and reaching it, in microseconds.
const LEAD_US: u32 = 100_000;

/// Largest lead of sent segments over the present, in microseconds.
const AHEAD_MAX_US: i32 = 150_000;

/// Queued time below which, with nothing to follow, the arm is held along its path.
const HOLD_AT_US: i32 = 45_000;

/// Queued time from which a held motion goes on.
const RESUME_AT_US: i32 = 80_000;

/// Longest time that a held motion waits for its next goal before it is dropped.
const HOLD_TIMEOUT: Duration = Duration::from_millis(500);

impl FirmwareDriver {
    pub(super) fn send_emergency_stop(&mut self) {
        let now_us = self.session.now_us();
        self.session.host.emergency_stop(now_us);
        self.stream = GoalStream::new(&self.limits);
        self.phase = StreamPhase::Stopped;
        self.halt = None;
    }

    pub(super) fn take(&mut self, command: &JointCommand) -> Result<(), DriverError> {
        if !self.is_energised() {
            return Err(DriverError::Limp);
        }
        let goals = self.map.goals(command, &self.found_urad)?;
        let goal = goals.into_iter().flatten().map(|(urad, _)| urad.round());
        if self.stream.push_goal(goal.collect()) {
            Ok(())
        } else {
            Err(ControllerFault::Behind(goal_stream::GOALS_MAX).into())
        }
    }

    /// Acts on the controller's mode and the waiting goals.
    pub(super) fn steer(&mut self) -> Result<(), DriverError> {
        if self.halt.take().is_some() {
            self.hold(true);
        }
        match self.phase {
            StreamPhase::Limp | StreamPhase::Stopped => Ok(()),
            StreamPhase::Resting if self.stream.has_goals() => self.begin(),
            StreamPhase::Resting => Ok(()),
            StreamPhase::Running => self.run(),
            StreamPhase::Holding { since, drop } => {
                self.wait_held(since, drop);
                Ok(())
            }
            StreamPhase::Resuming => {
                if !self.session.host.command_pending() {
                    self.phase = StreamPhase::Running;
                }
                self.feed();
                Ok(())
            }
            StreamPhase::Flushing => {
                if !self.session.host.command_pending() && self.session.mode() == Mode::Idle {
                    self.phase = StreamPhase::Resting;
                }
                Ok(())
            }
        }
    }

    /// Decelerates along the path, at once.
    fn hold(&mut self, drop: bool) {
        if matches!(self.phase, StreamPhase::Limp | StreamPhase::Stopped) {
            return;
        }
        if drop {
            self.stream = GoalStream::new(&self.limits);
        }
        self.session.queue_command(Message::Hold);
        self.phase = StreamPhase::Holding {
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
            // It held while nothing was under way, perhaps because beats were missing.
            Mode::Held | Mode::Stopped => {
                self.drop_queue();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Opens a motion at the controller's present set-points.
    #[expect(clippy::expect_used, reason = "a STATE has no more joints than it may")]
    fn open(&mut self) -> Result<(), DriverError> {
        let Some((device_us, (state, _))) = self.session.device_us().zip(self.session.state())
        else {
            return Ok(());
        };
        self.check_joints(state.joints.len())?;
        let start = firmware_protocol::Joints::from_slice(&rest_knots(state));
        let start = start.expect("a STATE has no more joints than fit");
        self.stream.begin(start.as_slice());
        self.tail_us = device_us.wrapping_add(LEAD_US);
        let now_us = self.session.now_us();
        let opened = self.session.host.open(self.tail_us, &start, now_us);
        if opened.is_ok() {
            self.phase = StreamPhase::Running;
            self.feed();
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), DriverError> {
        self.feed();
        let Some(ahead_us) = self.queued_us() else {
            return Ok(());
        };
        if self.stream.has_ended() {
            let is_idle = self.session.mode() == Mode::Idle && self.state_is_past_tail();
            if is_idle && !self.session.host.has_unacknowledged() {
                self.phase = StreamPhase::Resting;
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
    fn queued_us(&self) -> Option<i32> {
        let path_us = self.session.path_us()?;
        Some(self.tail_us.wrapping_sub(path_us).cast_signed())
    }

    /// Sends waiting goals, but never far ahead.
    #[expect(
        clippy::expect_used,
        reason = "as many knots as a motion was opened with"
    )]
    fn feed(&mut self) {
        while self.queued_us().is_some_and(|ahead| ahead < AHEAD_MAX_US)
            && let Some(end) = self.stream.next()
        {
            let knots = firmware_protocol::Joints::from_slice(&end);
            let knots = knots.expect("a motion has no more joints than fit");
            let now_us = self.session.now_us();
            let push_result = self
                .session
                .host
                .push(self.tail_us, STEP_US, &knots, now_us);
            if push_result.is_err() {
                break;
            }
            self.tail_us = self.tail_us.wrapping_add(u32::from(STEP_US));
            self.stream.mark_sent(end);
        }
    }

    fn wait_held(&mut self, since: ClockInstant, drop: bool) {
        if !drop {
            self.feed();
        }
        let is_held = matches!(self.session.mode(), Mode::Held | Mode::Stopped);
        if self.session.host.command_pending() || !is_held {
            return;
        }
        let waited = self.session.clock.now().since(since);
        let can_resume = self.queued_us().is_some_and(|ahead| ahead >= RESUME_AT_US);
        if drop || waited > HOLD_TIMEOUT {
            self.drop_queue();
        } else if can_resume || self.stream.has_ended() {
            self.session.queue_command(Message::Resume);
            self.phase = StreamPhase::Resuming;
        }
    }

    fn drop_queue(&mut self) {
        self.session.queue_command(Message::Flush);
        if self.phase != StreamPhase::Resting {
            self.stream = GoalStream::new(&self.limits);
            self.phase = StreamPhase::Flushing;
        }
    }

    /// Checks for anything that the controller did without a command.
    pub(super) fn check_controller(&mut self) -> Result<(), DriverError> {
        if let Some((before, after)) = self.session.take_reboot() {
            self.phase = StreamPhase::Limp;
            return Err(ControllerFault::Rebooted { before, after }.into());
        }
        let refused = self.session.take_refusal();
        if matches!(self.phase, StreamPhase::Limp | StreamPhase::Stopped) {
            return Ok(());
        }
        let refusal = refused.map(|ack| {
            let names = self.map.entries.iter().map(|entry| &entry.name);
            (ack.status, ControllerFault::refused(&ack, names))
        });
        let fault = match refusal {
            // A controller that takes no segments gives the reason in its STATE.
            Some((SegmentStatus::NotReady, fault)) => self.find_fault().or(Some(fault)),
            Some((_, fault)) => Some(fault),
            None => self.find_fault(),
        };
        let Some(fault) = fault else {
            return Ok(());
        };
        self.phase = StreamPhase::Limp;
        self.stream = GoalStream::default();
        Err(fault.into())
    }

    pub(super) fn find_fault(&self) -> Option<ControllerFault> {
        let stopped = ControllerFault::Stopped(self.session.cause());
        match self.session.mode() {
            Mode::Estop | Mode::Fault => Some(self.latched()),
            Mode::Unpaired | Mode::Disarmed => Some(ControllerFault::Limp),
            Mode::Stopping | Mode::Held | Mode::Stopped => {
                self.left_motion_by_itself().then_some(stopped)
            }
            _ => None,
        }
    }

    /// Returns whether a controller has left its motion without a command.
    fn left_motion_by_itself(&self) -> bool {
        match self.phase {
            StreamPhase::Running => true,
            StreamPhase::Holding { drop: false, .. } => {
                self.session.mode() == Mode::Stopped
                    || !matches!(self.session.cause(), Cause::Hold | Cause::None)
            }
            _ => false,
        }
    }

    pub(super) fn latched(&self) -> ControllerFault {
        let (mode, cause, faults) = self
            .session
            .state()
            .map_or((Mode::Fault, Cause::None, 0), |(state, _)| {
                (state.mode, state.cause, state.drive_faults)
            });
        let failed = self.map.entries.iter().enumerate();
        let failed = failed.filter(|(index, _)| faults >> index & 1 == 1);
        ControllerFault::Latched {
            mode,
            cause,
            joints: failed.map(|(_, entry)| entry.name.to_string()).collect(),
        }
    }
}
