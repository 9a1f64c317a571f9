//! Heeds the arms that are carried out together with this one: it waits for those that are behind,
//! stands while one is held, and stops when one stops.

use super::{Execution, ExecutionError, ExecutionPhase, HoldAt, MotionGoal};
use crate::check::check_at_start;
use crate::concert::PartState;
use crate::following_error::STALL_TIME;
use base::units::{ArmMeasurement, ClockInstant};
use plan::{NEIGHBOUR_FOLLOWING_M, NEIGHBOUR_SKEW};
use scene::BodyPoints;

impl Execution {
    /// Sets what is called when an arm that is carried out together with this one begins, stands or
    /// stops. It must not block. Only the first callback is kept.
    pub fn on_neighbour_change(&self, callback: Box<dyn Fn() + Send + Sync>) {
        self.checked.concert.on_change(callback);
    }

    /// Counts an arm as stopped that goes on without a tick of its thread for a second of own ticks.
    pub fn watch_neighbours(&mut self) {
        self.checked.concert.watch();
    }

    /// Tells the other arms that this one was measured at its end. Without that they stop once this
    /// execution is dropped: an arm that came short of its end is not where they count on it.
    pub fn arrive(&self) {
        self.checked.concert.note(PartState::Arrived);
    }

    /// Returns the name of the arm whose stop made this one stop.
    #[must_use]
    pub fn stopped_with(&self) -> Option<&str> {
        self.stopped_with.as_deref()
    }

    /// Returns whether it stands at its first sample until every other arm has begun.
    #[must_use]
    pub fn awaits_beginning(&self) -> bool {
        let goes_on = self.goes_on() && !self.is_stopped && !self.is_neighbour_stopped();
        goes_on && !self.checked.concert.all_have_begun()
    }

    /// Returns whether another arm has stopped, and this one does not stop yet.
    #[must_use]
    pub fn is_neighbour_stopped(&self) -> bool {
        let goes_on = self.goes_on() && !self.is_stopped && !self.is_at_end();
        goes_on && self.checked.concert.stopped_other().is_some()
    }

    /// Heeds the other arms; returns whether the goal waits for one.
    pub(super) fn heed_neighbours(&mut self, measured: &ArmMeasurement, now: ClockInstant) -> bool {
        self.checked.concert.tick();
        self.note_followed(measured);
        if self.is_neighbour_stopped() {
            let stopped = self.checked.concert.stopped_other();
            self.stopped_with = stopped.map(str::to_owned);
            self.stop();
        }
        self.heed_hold(measured, now);
        self.has_to_wait()
    }

    /// Tells the other arms whether this one goes on.
    pub(super) fn tell_neighbours(&self) {
        let state = if !self.goes_on() || self.monitor.has_error() || self.is_stopped {
            PartState::Stopped
        } else if self.is_at_end() {
            PartState::Ended
        } else if self.stands_held() && self.is_held_with_other {
            PartState::Rests
        } else if self.stands_held() {
            PartState::Held
        } else {
            PartState::Going
        };
        self.checked.concert.note(state);
    }

    fn is_at_end(&self) -> bool {
        let is_on_path = matches!(self.phase, ExecutionPhase::Path) && self.goes_on();
        is_on_path && self.position >= self.last_position()
    }

    /// Stands while another arm is held, and goes on with it.
    fn heed_hold(&mut self, measured: &ArmMeasurement, now: ClockInstant) {
        let is_another_held = self.checked.concert.is_another_held() && !self.is_at_end();
        match self.request {
            MotionGoal::Go if is_another_held => {
                self.request = MotionGoal::Hold(HoldAt::Once);
                self.is_held_with_other = true;
            }
            MotionGoal::Hold(HoldAt::StrokeEnd) if is_another_held => {
                self.request = MotionGoal::Hold(HoldAt::Once);
            }
            MotionGoal::Hold(_) if self.is_held_with_other && !is_another_held => {
                // The first reading after a rest is awaited.
                let is_read = now.since(measured.at) <= self.checked.trajectory.period * 2;
                if is_read {
                    self.go_on_with_others(measured, now);
                }
            }
            _ => {}
        }
    }

    /// Goes on after the hold of another arm; one that was moved meanwhile stays held until an operator
    /// resumes it.
    fn go_on_with_others(&mut self, measured: &ArmMeasurement, now: ClockInstant) {
        self.is_held_with_other = false;
        let scene = &self.checked.scene;
        let is_there = check_at_start(scene, &self.goal_rad, measured, now).is_ok();
        if is_there || !self.stands_held() {
            self.request = MotionGoal::Go;
        }
    }

    /// Returns whether the next sample is too far ahead of where an arm was measured, be it this one or
    /// another.
    fn has_to_wait(&self) -> bool {
        let concert = &self.checked.concert;
        let goes_along = match self.request {
            MotionGoal::Go => true,
            MotionGoal::Hold(at) => self.finishes_stroke(at),
            _ => false,
        };
        if goes_along && concert.does_another_rest() {
            // It comes down no sooner than the one that stood because of it goes on.
            return true;
        }
        let is_on_path = matches!(self.phase, ExecutionPhase::Path);
        let slowest = concert.slowest_other().filter(|_| goes_along && is_on_path);
        let Some(slowest) = slowest else {
            return false;
        };
        let furthest = slowest.min(concert.followed()) + NEIGHBOUR_SKEW;
        !concert.all_have_begun() || self.position + 1.0 > furthest as f64
    }

    /// Notes how far along its path the arm was measured, and for how long it has come no farther although its goal has.
    fn note_followed(&mut self, measured: &ArmMeasurement) {
        let concert = &self.checked.concert;
        let arm_rad = &measured.position_rad;
        let is_read = arm_rad.len() == self.goal_rad.len() && arm_rad.is_finite();
        // One that moves alone is held to its path as well: the gate counts on it where another stands.
        let is_kept = !self.checked.scene.beside.is_empty() && self.goes_on();
        if !is_kept || !is_read || !matches!(self.phase, ExecutionPhase::Path) {
            return;
        }
        let scene = &self.checked.scene;
        let arm = BodyPoints::new(scene, arm_rad);
        let reached = self.checked.trajectory.reached();
        let before = concert.followed();
        let mut sent = (before..=self.sample()).rev();
        let off_m = |sample: usize| {
            let expected = reached.get(sample);
            expected.map_or(f64::INFINITY, |q| {
                arm.farthest_m(&BodyPoints::new(scene, q))
            })
        };
        let found = sent.find(|sample| off_m(*sample) <= NEIGHBOUR_FOLLOWING_M);
        let followed = found.unwrap_or(before);
        concert.note_followed(followed);
        // At its beginning it may have sunk by what gravity explains, and is corrected before it goes on.
        let is_behind = match found {
            None => self.position > 0.0,
            Some(followed) => followed == before && followed < self.sample(),
        };
        self.behind_ticks = if is_behind { self.behind_ticks + 1 } else { 0 };
        if self.checked.trajectory.period * self.behind_ticks > STALL_TIME {
            let off_mm = off_m(self.sample()) * 1e3;
            let joint = reached.get(self.sample()).and_then(|expected| {
                let off_rad = expected.zip(arm_rad, |expected, is| (expected - is).abs());
                let joints = off_rad.iter().enumerate();
                let most = joints.max_by(|(_, a), (_, b)| a.total_cmp(b));
                most.map(|(joint, _)| scene.arm.joint_name(joint))
            });
            let joint = joint.unwrap_or_default();
            self.monitor
                .record(ExecutionError::OffPath { off_mm, joint });
        }
    }
}
