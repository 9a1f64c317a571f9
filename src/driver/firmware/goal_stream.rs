//! Goals, one a tick, become segments: a cubic between every two, at rest at both ends.
//!
//! Pure: no clock and no wire. The speed at a goal is the mean of the steps before and behind it,
//! so that a goal goes out when the one behind it is known.

use std::collections::VecDeque;

use firmware_protocol::message::{JointLimits, Knot};

/// One number a joint, in the controller's microradians.
pub(super) type JointsUrad = Vec<f64>;

/// Between two goals, in microseconds: the period of the loop that makes them.
pub(super) const STEP_US: u16 = 10_000;

const STEP_S: f64 = 0.01;

/// Goals that may wait: what a held arm leaves over. More are refused.
pub(super) const GOALS_MAX: usize = 64;

/// The share of a joint's limits that leading it from where it was told to be onto the goals may
/// use; the goals need the rest.
const BRIDGE_SHARE: f64 = 0.2;

/// Peaks of the smooth step over its duration, and over its square.
const SMOOTH_PEAKS: (f64, f64) = (1.875, 5.774);

/// The goals of one motion on their way to becoming segments.
#[derive(Debug, Default)]
pub(super) struct GoalStream {
    limits: Vec<JointLimits>,
    waiting: VecDeque<JointsUrad>,
    last_goal: Option<JointsUrad>,
    bridge: Option<GoalBridge>,
    /// The last knot that became a segment's end.
    sent: Vec<Knot>,
    /// The arm is to come to rest at the only goal that waits.
    closed: bool,
    /// It is on its way to rest there.
    ended: bool,
}

/// Leads from where the controller's set-points stand to the goals, smoothly.
#[derive(Debug)]
struct GoalBridge {
    off: JointsUrad,
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
    pub(super) fn goal(&mut self, goal: JointsUrad) -> bool {
        if self.waiting.len() >= GOALS_MAX {
            return false;
        }
        self.last_goal = Some(goal.clone());
        self.waiting.push_back(goal);
        self.closed = false;
        true
    }

    /// No goal came in this tick: where the arm can be brought to rest at the last one, it will be.
    pub(super) fn pause(&mut self) {
        if self.is_bridging() {
            // The set-points are still on their way onto the goals; there is always room for it.
            if let Some(last) = self.last_goal.clone() {
                self.goal(last);
            }
        } else if let Some(last) = self.waiting.back()
            && self.waiting.len() == 1
            && self.can_rest_at(last)
        {
            self.closed = true;
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

    /// Returns whether the segments sent so far end at rest: what waits begins a motion of its own.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Begins a motion where the controller's set-points stand.
    pub(super) fn begin(&mut self, here: &[Knot]) {
        self.sent = here.to_vec();
        self.ended = false;
        let first = self.waiting.front();
        let off: JointsUrad = first
            .into_iter()
            .flatten()
            .zip(here)
            .map(|(goal, here)| f64::from(here.position_urad) - goal)
            .collect();
        let steps = self.bridge_steps(&off);
        self.bridge = Some(GoalBridge {
            off,
            step: 0.0,
            steps,
        });
    }

    fn bridge_steps(&self, off: &[f64]) -> f64 {
        let longest_s = off.iter().zip(&self.limits).map(|(off, limits)| {
            let speed = BRIDGE_SHARE * f64::from(limits.velocity_max_urad_s);
            let push = BRIDGE_SHARE * f64::from(limits.acceleration_max_urad_s2);
            let (by_speed, by_push) = SMOOTH_PEAKS;
            (by_speed * off.abs() / speed).max((by_push * off.abs() / push).sqrt())
        });
        (longest_s.fold(0.0, f64::max) / STEP_S).ceil()
    }

    /// The end of the next segment; taken off with [`Self::sent`].
    pub(super) fn next(&self) -> Option<Vec<Knot>> {
        let here = self.waiting.front().filter(|_| !self.ended)?;
        let at = self.bridged(here, 0.0);
        let Some(behind) = self.waiting.get(1) else {
            let rest = at.iter().map(|at| knot(*at, 0.0));
            return self.closed.then(|| rest.collect());
        };
        let behind = self.bridged(behind, 1.0);
        let knots = at.iter().zip(&behind).zip(&self.sent);
        let knots = knots.map(|((at, behind), before)| {
            let before = f64::from(before.position_urad);
            knot(*at, (behind - before) / (2.0 * STEP_S))
        });
        Some(knots.collect())
    }

    /// The segment that [`Self::next`] gave is on its way.
    pub(super) fn sent(&mut self, end: Vec<Knot>) {
        self.waiting.pop_front();
        self.ended = self.closed && self.waiting.is_empty();
        self.sent = end;
        if let Some(bridge) = &mut self.bridge {
            bridge.step += 1.0;
        }
    }

    fn bridged(&self, goal: &[f64], ahead: f64) -> JointsUrad {
        let Some(bridge) = self.bridge.as_ref().filter(|bridge| bridge.steps > 0.0) else {
            return goal.to_vec();
        };
        let share = ((bridge.step + ahead) / bridge.steps).min(1.0);
        let left = 1.0 - share.powi(3) * (10.0 + share * (6.0 * share - 15.0));
        let both = goal.iter().zip(&bridge.off);
        both.map(|(goal, off)| goal + off * left).collect()
    }

    /// Returns whether every joint can come to rest at `goal` within one step and its limits.
    fn can_rest_at(&self, goal: &[f64]) -> bool {
        let joints = self.sent.iter().zip(goal).zip(&self.limits);
        joints.into_iter().all(|((from, to), limits)| {
            let distance = to - f64::from(from.position_urad);
            let leave = f64::from(from.velocity_urad_s);
            let first = (6.0 * distance / STEP_S - 4.0 * leave) / STEP_S;
            let last = (2.0 * leave - 6.0 * distance / STEP_S) / STEP_S;
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
            stream.sent(end);
        }
        ends
    }

    /// Even acceleration up and down again, in microradians.
    fn ramp(at_s: f64) -> f64 {
        let half = 0.5 * 15e6 * 0.1 * 0.1;
        if at_s < 0.1 {
            0.5 * 15e6 * at_s * at_s
        } else {
            2.0 * half - 0.5 * 15e6 * (0.2 - at_s).max(0.0).powi(2)
        }
    }

    /// The hardest that a cubic between two knots pushes.
    fn push(from: Knot, to: Knot) -> f64 {
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
        stream.goal(vec![ramp(0.0)]);
        stream.begin(&[Knot::default()]);
        for step in 1..=20_u32 {
            stream.goal(vec![ramp(f64::from(step) * STEP_S)]);
        }
        stream.pause();
        let mut ends = vec![Knot::default()];
        ends.extend(drain(&mut stream));
        stream.pause();
        ends.extend(drain(&mut stream));
        assert!(stream.has_ended());
        assert_eq!(ends.last().unwrap().position_urad, 150_000);
        let hardest = ends.windows(2).map(|pair| push(pair[0], pair[1]));
        let hardest = hardest.fold(0.0, f64::max);
        assert!((15e6..30.01e6).contains(&hardest), "{hardest}");
    }

    #[test]
    fn set_points_that_lag_are_led_onto_the_goals_gently() {
        let mut stream = GoalStream::new(&[LIMITS]);
        stream.goal(vec![500_000.0]);
        stream.begin(&[knot(470_000.0, 0.0)]);
        let mut ends = vec![knot(470_000.0, 0.0)];
        for _ in 0..100 {
            stream.pause();
            ends.extend(drain(&mut stream));
        }
        assert!(stream.has_ended());
        assert_eq!(*ends.last().unwrap(), knot(500_000.0, 0.0));
        let hardest = ends.windows(2).map(|pair| push(pair[0], pair[1]));
        assert!(hardest.fold(0.0, f64::max) < 0.35 * 30e6);
    }

    #[test]
    fn a_motion_that_breaks_off_at_speed_is_not_closed() {
        let mut stream = GoalStream::new(&[LIMITS]);
        for step in 0..30_u32 {
            stream.goal(vec![ramp(f64::from(step.min(10)) * STEP_S)]);
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
        assert!((0..GOALS_MAX).all(|_| stream.goal(vec![0.0])));
        assert!(!stream.goal(vec![0.0]));
    }
}
