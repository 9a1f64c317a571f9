//! Turns goals, one per tick, into segments: a cubic between every two, at rest at both ends.
//!
//! Pure: no clock and no wire. The speed at a goal is the mean of the steps before and after it, so
//! a goal is sent once the next one is known.

use std::collections::VecDeque;

use firmware_protocol::message::{JointLimits, Knot};

/// One number per joint, in the controller's microradians.
pub(super) type JointsUrad = Vec<f64>;

/// Time between two goals, in microseconds: the period of the loop that makes them.
pub(super) const STEP_US: u16 = 10_000;

const STEP_S: f64 = 0.01;

/// Most goals that may wait while the arm is held. More are refused.
pub(super) const GOALS_MAX: usize = 64;

/// Fraction of a joint's limits that the bridge from its set-point to the goals may use; the goals
/// need the rest.
const BRIDGE_FRACTION: f64 = 0.2;

/// Peaks of the smooth step over its duration, and over its square.
const SMOOTH_PEAKS: (f64, f64) = (1.875, 5.774);

/// The goals of one motion that become segments.
#[derive(Debug, Default)]
pub(super) struct GoalStream {
    limits: Vec<JointLimits>,
    waiting: VecDeque<JointsUrad>,
    last_goal: Option<JointsUrad>,
    bridge: Option<GoalBridge>,
    /// The last knot that became a segment's end.
    sent: Vec<Knot>,
    /// `true` if the arm must come to rest at the only waiting goal.
    is_closed: bool,
    /// `true` if it is on its way to rest there.
    is_ended: bool,
}

/// Leads smoothly from the controller's set-points to the goals.
#[derive(Debug)]
struct GoalBridge {
    offset: JointsUrad,
    step: f64,
    steps: f64,
}

impl GoalStream {
    pub(super) fn new(limits: &[JointLimits]) -> Self {
        Self {
            limits: limits.to_vec(),
            ..Self::default()
        }
    }

    /// Takes a goal; `false` when too many wait.
    pub(super) fn push_goal(&mut self, goal: JointsUrad) -> bool {
        if self.waiting.len() >= GOALS_MAX {
            return false;
        }
        self.last_goal = Some(goal.clone());
        self.waiting.push_back(goal);
        self.is_closed = false;
        true
    }

    /// Notes a tick without a goal: the arm comes to rest at the last one, where it can.
    pub(super) fn pause(&mut self) {
        if self.is_bridging() {
            // The set-points are still on their way onto the goals; there is always room for it.
            if let Some(last) = self.last_goal.clone() {
                self.push_goal(last);
            }
        } else if let Some(last) = self.waiting.back()
            && self.waiting.len() == 1
            && self.can_rest_at(last)
        {
            self.is_closed = true;
        }
    }

    fn is_bridging(&self) -> bool {
        self.bridge
            .as_ref()
            .is_some_and(|bridge| bridge.step < bridge.steps)
    }

    /// Returns whether goals wait that no segment has reached yet.
    pub(super) fn has_goals(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether the segments sent so far end at rest: later goals begin a new motion.
    pub(super) fn has_ended(&self) -> bool {
        self.is_ended
    }

    /// Begins a motion at the controller's set-points.
    pub(super) fn begin(&mut self, start: &[Knot]) {
        self.sent = start.to_vec();
        self.is_ended = false;
        let first = self.waiting.front();
        let offset: JointsUrad = first
            .into_iter()
            .flatten()
            .zip(start)
            .map(|(goal, start)| f64::from(start.position_urad) - goal)
            .collect();
        let steps = self.bridge_steps(&offset);
        self.bridge = Some(GoalBridge {
            offset,
            step: 0.0,
            steps,
        });
    }

    fn bridge_steps(&self, offset: &[f64]) -> f64 {
        let longest_s = offset.iter().zip(&self.limits).map(|(offset, limits)| {
            let speed = BRIDGE_FRACTION * f64::from(limits.velocity_max_urad_s);
            let acceleration = BRIDGE_FRACTION * f64::from(limits.acceleration_max_urad_s2);
            let (by_speed, by_push) = SMOOTH_PEAKS;
            (by_speed * offset.abs() / speed).max((by_push * offset.abs() / acceleration).sqrt())
        });
        (longest_s.fold(0.0, f64::max) / STEP_S).ceil()
    }

    /// Returns the end of the next segment; [`Self::mark_sent`] removes it.
    pub(super) fn next(&self) -> Option<Vec<Knot>> {
        let goal = self.waiting.front().filter(|_| !self.is_ended)?;
        let position = self.bridged(goal, 0.0);
        let Some(following) = self.waiting.get(1) else {
            let rest = position.iter().map(|position| knot(*position, 0.0));
            return self.is_closed.then(|| rest.collect());
        };
        let following = self.bridged(following, 1.0);
        let knots = position.iter().zip(&following).zip(&self.sent);
        let knots = knots.map(|((position, following), previous)| {
            let previous = f64::from(previous.position_urad);
            knot(*position, (following - previous) / (2.0 * STEP_S))
        });
        Some(knots.collect())
    }

    /// Notes that the segment from [`Self::next`] was sent.
    pub(super) fn mark_sent(&mut self, end: Vec<Knot>) {
        self.waiting.pop_front();
        self.is_ended = self.is_closed && self.waiting.is_empty();
        self.sent = end;
        if let Some(bridge) = &mut self.bridge {
            bridge.step += 1.0;
        }
    }

    fn bridged(&self, goal: &[f64], ahead: f64) -> JointsUrad {
        let Some(bridge) = self.bridge.as_ref().filter(|bridge| bridge.steps > 0.0) else {
            return goal.to_vec();
        };
        let fraction = ((bridge.step + ahead) / bridge.steps).min(1.0);
        let remaining = 1.0 - fraction.powi(3) * (10.0 + fraction * (6.0 * fraction - 15.0));
        let joints = goal.iter().zip(&bridge.offset);
        joints.map(|(goal, by)| goal + by * remaining).collect()
    }

    /// Returns whether every joint can come to rest at `goal` within one step and its limits.
    fn can_rest_at(&self, goal: &[f64]) -> bool {
        let joints = self.sent.iter().zip(goal).zip(&self.limits);
        joints.into_iter().all(|((from, to), limits)| {
            let distance = to - f64::from(from.position_urad);
            let speed = f64::from(from.velocity_urad_s);
            let first = (6.0 * distance / STEP_S - 4.0 * speed) / STEP_S;
            let last = (2.0 * speed - 6.0 * distance / STEP_S) / STEP_S;
            first.abs().max(last.abs()) <= f64::from(limits.acceleration_max_urad_s2)
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn knot(position_urad: f64, velocity_urad_s: f64) -> Knot {
    Knot {
        position_urad: position_urad.round() as i32,
        velocity_urad_s: velocity_urad_s.round() as i32,
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    const LIMITS: JointLimits = JointLimits {
        position_min_urad: -3_000_000,
        position_max_urad: 3_000_000,
        velocity_max_urad_s: 4_000_000,
        acceleration_max_urad_s2: 30_000_000,
        stop_urad_s2: 60_000_000,
    };

    fn drain(stream: &mut GoalStream) -> Vec<Knot> {
        let mut ends = Vec::new();
        while let Some(end) = stream.next() {
            ends.push(end[0]);
            stream.mark_sent(end);
        }
        ends
    }

    /// A position under constant acceleration and then deceleration, in microradians.
    fn ramp(at_s: f64) -> f64 {
        let half = 0.5 * 15e6 * 0.1 * 0.1;
        if at_s < 0.1 {
            0.5 * 15e6 * at_s * at_s
        } else {
            2.0 * half - 0.5 * 15e6 * (0.2 - at_s).max(0.0).powi(2)
        }
    }

    /// Returns the largest acceleration of a cubic between two knots.
    fn acceleration(from: Knot, to: Knot) -> f64 {
        let d = f64::from(to.position_urad) - f64::from(from.position_urad);
        let (u, v) = (
            f64::from(from.velocity_urad_s),
            f64::from(to.velocity_urad_s),
        );
        let first = (6.0 * d / STEP_S - 4.0 * u - 2.0 * v) / STEP_S;
        let last = (2.0 * u + 4.0 * v - 6.0 * d / STEP_S) / STEP_S;
        first.abs().max(last.abs())
    }

    #[test]
    fn a_ramp_needs_twice_its_own_acceleration_and_no_more() {
        let mut stream = GoalStream::new(&[LIMITS]);
        stream.push_goal(vec![ramp(0.0)]);
        stream.begin(&[Knot::default()]);
        for step in 1..=20_u32 {
            stream.push_goal(vec![ramp(f64::from(step) * STEP_S)]);
        }
        stream.pause();
        let mut ends = vec![Knot::default()];
        ends.extend(drain(&mut stream));
        stream.pause();
        ends.extend(drain(&mut stream));
        assert!(stream.has_ended());
        assert_eq!(ends.last().unwrap().position_urad, 150_000);
        let hardest = ends.windows(2).map(|pair| acceleration(pair[0], pair[1]));
        let hardest = hardest.fold(0.0, f64::max);
        assert!((15e6..30.01e6).contains(&hardest), "{hardest}");
    }

    #[test]
    fn lagging_set_points_are_led_smoothly_onto_the_goals() {
        let mut stream = GoalStream::new(&[LIMITS]);
        stream.push_goal(vec![500_000.0]);
        stream.begin(&[knot(470_000.0, 0.0)]);
        let mut ends = vec![knot(470_000.0, 0.0)];
        for _ in 0..100 {
            stream.pause();
            ends.extend(drain(&mut stream));
        }
        assert!(stream.has_ended());
        assert_eq!(*ends.last().unwrap(), knot(500_000.0, 0.0));
        let hardest = ends.windows(2).map(|pair| acceleration(pair[0], pair[1]));
        assert!(hardest.fold(0.0, f64::max) < 0.35 * 30e6);
    }

    #[test]
    fn a_motion_that_breaks_off_at_speed_is_not_closed() {
        let mut stream = GoalStream::new(&[LIMITS]);
        for step in 0..30_u32 {
            stream.push_goal(vec![ramp(f64::from(step.min(10)) * STEP_S)]);
            if step == 0 {
                stream.begin(&[Knot::default()]);
            }
            if step == 10 {
                break;
            }
        }
        drain(&mut stream);
        stream.pause();
        assert!(!stream.has_ended() && stream.next().is_none());
    }

    #[test]
    fn goals_that_wait_are_bounded() {
        let mut stream = GoalStream::new(&[LIMITS]);
        assert!((0..GOALS_MAX).all(|_| stream.push_goal(vec![0.0])));
        assert!(!stream.push_goal(vec![0.0]));
    }
}
