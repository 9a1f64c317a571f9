//! Computes the time with the pen up, and a lower bound for any plan of the same lines in the same
//! order under the same limits.

use super::PERIOD_S;
use super::scalar_profile::{ProfileLimits, ScalarProfile, rest_to_rest_s};
use super::time_parameterization::TipLimits;
use super::trajectory::{SpanKind, Trajectory, TrajectorySpan};
use super::trajectory_builder::hop_limits;
use base::units::JointVector;
use scene::Scene;

/// The time with the pen up, and the least that it could be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PenUpTime {
    /// Everything after the approach but the lines.
    pub(super) spent_s: f64,
    /// Its lower bound. A dip counts as it is.
    pub(super) bound_s: f64,
}

/// A motion with the pen up, from one standstill to the next.
struct PenUpWay<'t> {
    samples: &'t [JointVector],
    /// The pen at either end.
    pens: [usize; 2],
    /// `true` where the tip touches the sheet, at either end.
    touches: [bool; 2],
}

/// Adds up all motions with the pen up.
pub(super) fn pen_up_time(scene: &Scene, trajectory: &Trajectory) -> PenUpTime {
    let (mut time, mut touches) = (PenUpTime::default(), false);
    let mut spans = trajectory.spans.iter().peekable();
    while let Some(span) = spans.next() {
        match span.kind {
            SpanKind::Approach => touches = false,
            SpanKind::Draw => touches = true,
            SpanKind::Dip => {
                time.spent_s += seconds(span.first, span.end);
                time.bound_s += seconds(span.first, span.end);
                touches = false;
            }
            _ => {
                let mut last = span;
                while let Some(next) = spans.next_if(|next| is_pen_up_motion(next)) {
                    last = next;
                }
                let touches_next = spans.peek().is_some_and(|next| next.kind == SpanKind::Draw);
                let motion = PenUpWay {
                    samples: trajectory.between(span.first.saturating_sub(1), last.end),
                    pens: [span.pen, last.pen],
                    touches: [touches, touches_next],
                };
                time.spent_s += seconds(span.first, last.end);
                time.bound_s += motion.bound_s(scene);
                touches = false;
            }
        }
    }
    time
}

fn is_pen_up_motion(span: &TrajectorySpan) -> bool {
    !matches!(
        span.kind,
        SpanKind::Approach | SpanKind::Draw | SpanKind::Dip
    )
}

fn seconds(first: usize, end: usize) -> f64 {
    (end - first) as f64 * PERIOD_S
}

impl PenUpWay<'_> {
    /// Returns the largest of three times: of the joint that takes longest from rest to rest, of
    /// the tip along the straight line, and of the tip up to the least height and down again.
    fn bound_s(&self, scene: &Scene) -> f64 {
        let (Some(from), Some(to)) = (self.samples.first(), self.samples.last()) else {
            return 0.0;
        };
        let limits = self.pens.map(|pen| hop_limits(scene, pen));
        let heights = limits.iter().zip(self.pens).zip(self.touches);
        let rises_s: f64 = heights
            .filter(|(_, touches)| *touches)
            .map(|((limits, pen), _)| rise_s(scene, pen, *limits))
            .sum();
        joints_s(scene, from, to)
            .max(self.straight_s(scene, from, to))
            .max(rises_s)
    }

    /// Returns the time along the straight line; 0 unless one pen is used from end to end.
    fn straight_s(&self, scene: &Scene, from: &JointVector, to: &JointVector) -> f64 {
        let [pen, other] = self.pens;
        let Some(tool) = scene.pen(pen).filter(|_| pen == other) else {
            return 0.0;
        };
        let [a, b] = [from, to].map(|q| scene.arm.chain.point(q, &tool.tip_m));
        rest_to_rest_s((b - a).norm(), hop_limits(scene, pen).as_profile())
    }
}

/// Returns the time in which a pressing tip rises to the least height of a hop.
fn rise_s(scene: &Scene, pen: usize, limits: TipLimits) -> f64 {
    let height_m = (scene.pen_press_mm(pen) + scene.heights.lift_least_mm) / 1e3;
    let profile = ScalarProfile::to_crest(height_m, limits.as_profile());
    profile.map_or(0.0, |profile| profile.duration_s())
}

fn joints_s(scene: &Scene, from: &JointVector, to: &JointVector) -> f64 {
    let limits = &scene.arm.limits;
    let turns = from.zip(to, |from, to| (to - from).abs());
    let cruise_rad_s = limits.cruise_rad_s();
    let speeds = turns.iter().zip(cruise_rad_s.iter());
    let rises = limits
        .acceleration_rad_s2
        .iter()
        .zip(limits.jerk_rad_s3.iter());
    let each = speeds
        .zip(rises)
        .map(|((turn, speed), (acceleration, jerk))| {
            let limits = ProfileLimits {
                speed: *speed,
                acceleration: *acceleration,
                jerk: *jerk,
            };
            rest_to_rest_s(*turn, limits)
        });
    each.fold(0.0, f64::max)
}
