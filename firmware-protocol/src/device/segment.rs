//! Segments: which are queued, which are refused, and which stop the arm.

use super::limits::{Refusal, prove, prove_anchor, refuse};
use super::{AHEAD_MAX_US, ANCHOR_URAD, AfterStop, DURATION_MIN_US, Device, JOIN_US, LEAD_US};
use crate::message::{Cause, Mode, NO_JOINT, Segment, SegmentAck, SegmentStatus};

impl Device {
    /// Checks a segment, queues it if it may be executed, and returns its acknowledgement. One that breaks a
    /// rule stops the arm along its path and makes all later segments stale.
    pub(super) fn segment(&mut self, segment: &Segment) -> SegmentAck {
        let [answers, _] = segment.index.to_le_bytes();
        let (status, joint) = match self.check(segment) {
            Ok(()) => {
                self.accept(segment);
                (SegmentStatus::Accepted, NO_JOINT)
            }
            Err(refusal) => refusal,
        };
        if let Some(cause) = cause_of(status) {
            self.cause = cause;
            self.new_epoch();
            self.stop(AfterStop::Drop, cause);
        }
        SegmentAck {
            epoch: self.epoch,
            next_index: self.next_index,
            free: self.path.free(),
            status,
            joint,
            answers,
            tail_us: self.path.tail_us(),
        }
    }

    fn check(&self, segment: &Segment) -> Result<(), Refusal> {
        self.check_order(segment)?;
        if segment.end.len() != self.limits().len() {
            return Err(refuse(SegmentStatus::Shape));
        }
        if segment.duration_us == 0 {
            self.check_anchor(segment)
        } else {
            self.check_motion(segment)
        }
    }

    /// Checks session, mode, epoch and index.
    fn check_order(&self, segment: &Segment) -> Result<(), Refusal> {
        if !self.paired || !self.accepts_segments() {
            return Err(refuse(SegmentStatus::NotReady));
        }
        if segment.epoch != self.epoch {
            return Err(refuse(SegmentStatus::Stale));
        }
        match segment.index.wrapping_sub(self.next_index).cast_signed() {
            0 => Ok(()),
            1.. => Err(refuse(SegmentStatus::Gap)),
            _ => Err(refuse(SegmentStatus::Duplicate)),
        }
    }

    fn accepts_segments(&self) -> bool {
        let has_motion = self.path.is_open() && !self.parking;
        match self.mode {
            Mode::Idle => true,
            Mode::Running | Mode::Held => has_motion,
            Mode::Stopping => has_motion && self.after_stop == AfterStop::Keep,
            _ => false,
        }
    }

    fn check_anchor(&self, segment: &Segment) -> Result<(), Refusal> {
        if self.mode != Mode::Idle {
            return Err(refuse(SegmentStatus::Discontinuous));
        }
        let ahead_us = segment.start_us.wrapping_sub(self.clock_us).cast_signed();
        if ahead_us < LEAD_US.cast_signed() {
            return Err(refuse(SegmentStatus::Late));
        }
        if ahead_us > AHEAD_MAX_US.cast_signed() {
            return Err(refuse(SegmentStatus::Discontinuous));
        }
        prove_anchor(self.path.here(), &segment.end, ANCHOR_URAD)
    }

    fn check_motion(&self, segment: &Segment) -> Result<(), Refusal> {
        let off_us = segment
            .start_us
            .wrapping_sub(self.path.tail_us())
            .cast_signed();
        if !self.path.is_open() || off_us.unsigned_abs() > JOIN_US {
            return Err(refuse(SegmentStatus::Discontinuous));
        }
        if segment.duration_us < DURATION_MIN_US {
            return Err(refuse(SegmentStatus::Shape));
        }
        let ahead_us = self
            .path
            .tail_us()
            .wrapping_sub(self.path.now_us())
            .cast_signed();
        if ahead_us < LEAD_US.cast_signed() {
            return Err(refuse(SegmentStatus::Late));
        }
        if self.path.free() == 0 {
            return Err(refuse(SegmentStatus::Full));
        }
        prove(
            self.path.tail(),
            &segment.end,
            segment.duration_us,
            self.limits(),
        )
    }

    fn accept(&mut self, segment: &Segment) {
        self.next_index = self.next_index.wrapping_add(1);
        if segment.duration_us > 0 {
            self.path.queue(segment);
            return;
        }
        self.path.rest_at(self.clock_us);
        self.path.open(segment.start_us);
        self.mode = Mode::Running;
        self.cause = Cause::None;
    }
}

/// Returns the cause with which a refused segment stops the arm; `None` if it does not.
fn cause_of(status: SegmentStatus) -> Option<Cause> {
    match status {
        SegmentStatus::Late => Some(Cause::Late),
        SegmentStatus::Discontinuous => Some(Cause::Discontinuous),
        SegmentStatus::Position
        | SegmentStatus::Velocity
        | SegmentStatus::Acceleration
        | SegmentStatus::NoStop => Some(Cause::Limit),
        _ => None,
    }
}
