//! The path: queued segments, path time, which a hold can slow, and a tail after the last segment.
//!
//! A hold does not leave the path: it slows *path time* until it stands still. Joint speed is path speed
//! times rate, so every point that a hold passes lies on the proven path.

use super::curve::Curve;
use super::limits::travel_us;
use crate::message::{JointLimits, Knot, Segment};
use crate::ring::Ring;
use crate::{Joints, QUEUE_DEPTH};

/// Rate at which path time runs as fast as the clock.
const FULL_RATE: u32 = 1 << 16;

/// A queued segment; it begins where and when the previous one ends.
#[derive(Debug, Clone, Copy, Default)]
struct Queued {
    end: Joints<Knot>,
    duration_us: u16,
}

/// Result of an advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Moving, or waiting for the motion to begin.
    Underway,
    /// The queue ended in motion: the tail has begun.
    RanDry,
    /// Everything queued is done and the joints are at rest.
    Finished,
}

/// Everything between an accepted segment and a set-point.
#[derive(Debug, Clone)]
pub(super) struct Path {
    queue: Ring<Queued, QUEUE_DEPTH>,
    curve: Option<Curve>,
    next_us: u32,
    now_us: u32,
    fraction: u32,
    rate: u32,
    here: Joints<Knot>,
    tail: Joints<Knot>,
    tail_us: u32,
    open: bool,
}

impl Path {
    pub(super) fn new(joints: usize, now_us: u32) -> Self {
        let rest = Joints::zeroed(joints).unwrap_or_default();
        Self {
            queue: Ring::new(Queued::default()),
            curve: None,
            next_us: now_us,
            now_us,
            fraction: 0,
            rate: FULL_RATE,
            here: rest,
            tail: rest,
            tail_us: now_us,
            open: false,
        }
    }

    /// Returns whether an anchor has opened a motion that is not over.
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    pub(super) const fn now_us(&self) -> u32 {
        self.now_us
    }

    /// Returns the end of the last queued segment, in path time.
    pub(super) const fn tail_us(&self) -> u32 {
        self.tail_us
    }

    /// Returns the joints at the end of the last queued segment.
    pub(super) const fn tail(&self) -> &Joints<Knot> {
        &self.tail
    }

    /// Returns the joints on the path, at full rate.
    pub(super) const fn here(&self) -> &Joints<Knot> {
        &self.here
    }

    pub(super) fn free(&self) -> u8 {
        u8::try_from(self.queue.free()).unwrap_or(u8::MAX)
    }

    pub(super) const fn at_full_rate(&self) -> bool {
        self.rate == FULL_RATE
    }

    /// Returns whether path time stands still.
    pub(super) const fn is_still(&self) -> bool {
        self.rate == 0
    }

    /// Returns the joints' positions and their true speeds.
    pub(super) fn scaled(&self) -> Joints<Knot> {
        let mut joints = self.here;
        for knot in joints.as_mut_slice() {
            let speed = i64::from(knot.velocity_urad_s) * i64::from(self.rate);
            knot.velocity_urad_s = super::saturate(speed / i64::from(FULL_RATE));
        }
        joints
    }

    /// Opens a motion that begins at rest at `start_us`.
    pub(super) fn open(&mut self, start_us: u32) {
        self.open = true;
        self.next_us = start_us;
        self.tail_us = start_us;
        self.tail = self.here;
    }

    /// Queues a segment that was proven; there must be a free slot.
    pub(super) fn queue(&mut self, segment: &Segment) {
        self.queue.push_over(Queued {
            end: segment.end,
            duration_us: segment.duration_us,
        });
        self.tail = segment.end;
        self.tail_us = self.tail_us.wrapping_add(u32::from(segment.duration_us));
    }

    /// Drops everything that is not yet executed; the joints stay where they are.
    pub(super) fn drop_queue(&mut self) {
        self.curve = None;
        self.queue.clear();
        self.rate = FULL_RATE;
        self.open = false;
        for knot in self.here.as_mut_slice() {
            knot.velocity_urad_s = 0;
        }
    }

    /// Sets the positions of joints at rest.
    pub(super) fn place_at_rest(&mut self, at: &Joints<Knot>) {
        self.here = *at;
        for knot in self.here.as_mut_slice() {
            knot.velocity_urad_s = 0;
        }
    }

    /// Sets path time to the clock while no motion is open.
    pub(super) fn rest_at(&mut self, now_us: u32) {
        self.now_us = now_us;
        self.fraction = 0;
        self.next_us = now_us;
        self.tail_us = now_us;
    }

    /// Starts for a pose, from rest to rest.
    pub(super) fn travel_to(&mut self, pose_urad: &Joints<i32>, limits: &Joints<JointLimits>) {
        let mut end = self.here;
        let mut duration_us = 1;
        for ((knot, &to), limits) in end.as_mut_slice().iter_mut().zip(pose_urad).zip(limits) {
            duration_us = duration_us.max(travel_us(knot.position_urad, to, limits));
            knot.position_urad = to;
        }
        self.curve = Some(Curve::between(&self.here, &end, self.now_us, duration_us));
        self.next_us = self.now_us.wrapping_add(duration_us);
    }

    /// Slows path time for one step, within every joint's acceleration limit.
    pub(super) fn slow_down(&mut self, limits: &Joints<JointLimits>, step_us: u32) {
        self.rate = self.rate.saturating_sub(self.rate_change(limits, step_us));
    }

    /// Speeds up path time towards full rate for one step, within every joint's acceleration limit.
    pub(super) fn speed_up(&mut self, limits: &Joints<JointLimits>, step_us: u32) {
        if self.rate < FULL_RATE {
            self.rate = (self.rate + self.rate_change(limits, step_us)).min(FULL_RATE);
        }
    }

    fn rate_change(&self, limits: &Joints<JointLimits>, step_us: u32) -> u32 {
        let mut change = u64::from(FULL_RATE);
        for (knot, limits) in self.here.iter().zip(limits) {
            let allowed =
                u64::from(limits.acceleration_max_urad_s2) * u64::from(step_us) / 1_000_000;
            let speed = u64::from(knot.velocity_urad_s.unsigned_abs());
            change = change.min(allowed * u64::from(FULL_RATE) / (speed + allowed).max(1));
        }
        u32::try_from(change).unwrap_or(FULL_RATE).max(1)
    }

    /// Advances path time, and the joints with it, by one step.
    pub(super) fn advance(&mut self, step_us: u32, limits: &Joints<JointLimits>) -> Step {
        let scaled = u64::from(step_us) * u64::from(self.rate) + u64::from(self.fraction);
        self.fraction = u32::try_from(scaled % u64::from(FULL_RATE)).unwrap_or(0);
        let whole_us = u32::try_from(scaled / u64::from(FULL_RATE)).unwrap_or(u32::MAX);
        self.now_us = self.now_us.wrapping_add(whole_us);
        self.find_curve(limits)
    }

    /// Finds the curve at the present path time and moves the joints there. A step is shorter than five segments, and
    /// a tail is the last curve, so the loop ends long before its bound.
    fn find_curve(&mut self, limits: &Joints<JointLimits>) -> Step {
        let mut step = Step::Underway;
        for _ in 0..=QUEUE_DEPTH {
            if let Some(curve) = self.curve {
                if let Some(here) = curve.at(self.now_us, self.fraction) {
                    self.here = here;
                    return step;
                }
                self.here = *curve.end();
                self.next_us = curve.end_us();
                self.curve = None;
            }
            if self.now_us.wrapping_sub(self.next_us).cast_signed() < 0 {
                return step;
            }
            match self.begin_next(limits) {
                Some(begun) if begun == Step::Finished => return begun,
                Some(begun) => step = begun,
                None => {}
            }
        }
        step
    }

    /// Begins the next queued segment, or the tail if there is none; finishes if nothing moves.
    fn begin_next(&mut self, limits: &Joints<JointLimits>) -> Option<Step> {
        if let Some(next) = self.queue.pop() {
            let duration_us = u32::from(next.duration_us);
            self.curve = Some(Curve::between(
                &self.here,
                &next.end,
                self.next_us,
                duration_us,
            ));
            return None;
        }
        if self.here.iter().all(|knot| knot.velocity_urad_s == 0) {
            return Some(Step::Finished);
        }
        self.curve = Some(Curve::tail(&self.here, limits, self.next_us));
        Some(Step::RanDry)
    }
}
