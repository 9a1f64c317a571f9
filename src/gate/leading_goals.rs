//! Judges goals that lead: how far they may be from where the arm is expected, and whether they
//! bring it there.

use nalgebra::Point3;

use super::GateRule;
use super::check::{DEPTH_SLACK_MM, SLACK, TrajectoryJudge, exceeds, idle_needles, tip_limit_mm_s};
use super::clearance::height_mm;
use super::joint_rates::excess;
use super::stop_proof::touches;
use arm::JointCompensation;
use base::units::{JointVector, value_and_limit};
use plan::{SpanKind, TrajectorySpan};
use scene::{Scene, ScenePen, SheetCorrection, TIP_MM_S_MAX, ToolKind};

/// Largest distance between where a tip at the sheet is expected and where the calibrated
/// compensation puts it, in addition to half of the joints' play, which may not be compensated.
const EXPECTED_MM: f64 = 1.0;

/// Scale on the explained lead of a tip that does not draw, while the correction changes from one
/// pen to the next.
const PEN_CHANGE: f64 = 1.5;

/// Rounding of a tip that is led by the sheet's correction.
const LED_SLACK_MM: f64 = 0.1;

impl TrajectoryJudge<'_> {
    /// Refuses goals that lead where nothing was calibrated, or that do not lead at every sample.
    pub(super) fn check_leads_form(&mut self) {
        let (goals, expected) = (self.trajectory.samples.len(), self.trajectory.reached.len());
        if expected == 0 {
            return;
        }
        if !self.scene.has_calibrated_leads() || goals != expected {
            self.refuse(GateRule::Form, 0, None, || {
                format!(
                    "there are {goals} goals for {expected} expected places. The two numbers must be equal. Goals that run ahead of their places also need calibrated play or a calibrated correction"
                )
            });
        }
    }

    /// Judges how far every goal is from where the arm is expected, and how far that is from where
    /// the goals bring the arm.
    pub(super) fn check_leads(&mut self, spans: &[(&TrajectorySpan, &ScenePen)]) {
        let (scene, trajectory) = (self.scene, self.trajectory);
        let correction = scene.correction.as_ref();
        let explained_mm = correction.map_or(0.0, SheetCorrection::largest_mm) + LED_SLACK_MM;
        let compensation = scene.arm.compensation.as_ref();
        let mut gears = compensation.map(JointCompensation::gears);
        let mut previous: Option<[JointVector; 2]> = None;
        for (span, pen) in spans {
            let samples = trajectory.samples.iter().zip(&trajectory.reached);
            let samples = samples.enumerate().take(span.end).skip(span.first);
            for (sample, (goal, expected)) in samples {
                let tip = |joints: &JointVector| scene.arm.chain.point(joints, &pen.tip_m);
                let lead = goal.zip(expected, |goal, expected| goal - expected);
                let unexplained_lead = match &scene.arm.compensation {
                    Some(compensation) => unexplained(compensation, &lead),
                    None => lead,
                };
                let lead_mm = tip_shift_mm(scene, pen, expected, &unexplained_lead);
                let is_between_pens = span.kind != SpanKind::Draw && scene.pens.len() > 1;
                let scale = if is_between_pens { PEN_CHANGE } else { 1.0 };
                let values = (lead_mm, explained_mm * scale, "mm");
                self.check_limit(GateRule::Lead, sample, values, 1.0, |lead, limit| {
                    format!("the goal would be {lead} mm ahead of the tip; play and the sheet's correction allow {limit} mm. Calibrate again")
                });
                let gears = gears.as_mut();
                let followed = gears.map_or(*goal, |gears| gears.follow(goal));
                if touches(span.kind) {
                    let error_mm = off_correction_mm(scene, &tip(expected), &tip(&followed));
                    let limit_mm = EXPECTED_MM + half_play_mm(scene, pen, expected);
                    let values = (error_mm, limit_mm, "mm");
                    self.check_limit(GateRule::Lead, sample, values, 1.0, |error, limit| {
                        format!("the goals would bring the tip {error} mm off its expected place; {limit} mm is the limit. Draw slower, or calibrate again")
                    });
                }
                for tool in std::iter::once(*pen).chain(idle_needles(scene, span.pen)) {
                    self.check_led_speed(sample, tool, previous, [*goal, followed]);
                }
                self.check_followed_depth(sample, span, pen, &tip(&followed));
                previous = Some([*goal, followed]);
            }
        }
    }

    /// Judges the speed of a tip for gears as calibrated and for gears without play, by the highest
    /// limit of any tip, or a needle's own.
    fn check_led_speed(
        &mut self,
        sample: usize,
        pen: &ScenePen,
        previous: Option<[JointVector; 2]>,
        joints: [JointVector; 2],
    ) {
        let (scene, Some(previous)) = (self.scene, previous) else {
            return;
        };
        let period_s = self.trajectory.period.as_secs_f64();
        for (then, now) in previous.iter().zip(&joints) {
            let [then, tip] = [then, now].map(|q| scene.arm.chain.point(q, &pen.tip_m));
            let speed = (tip - then).norm() * 1e3 / period_s;
            let limit = match pen.kind {
                ToolKind::Needle => tip_limit_mm_s(scene, pen.kind, SpanKind::Lift, &tip),
                _ => TIP_MM_S_MAX,
            };
            let values = (speed, limit, "mm/s");
            self.check_limit(GateRule::TipSpeed, sample, values, SLACK, |speed, limit| {
                format!(
                    "the goals run ahead of the tip and would move the tip at {speed} mm/s; {limit} mm/s is the limit here"
                )
            });
        }
    }

    /// Refuses goals that would bring a tip into the sheet by the calibrated play: a needle
    /// where it works, and any tip that travels. Half of the
    /// play may be on either side and is not held against a pen that travels.
    fn check_followed_depth(
        &mut self,
        sample: usize,
        span: &TrajectorySpan,
        pen: &ScenePen,
        followed: &Point3<f64>,
    ) {
        let is_needle = pen.kind == ToolKind::Needle;
        let floor_mm = match span.kind {
            SpanKind::Draw | SpanKind::Lower if is_needle => {
                -self.scene.press_mm(pen) - DEPTH_SLACK_MM
            }
            SpanKind::Travel => {
                let expected = self.trajectory.reached().get(sample);
                let half_mm = expected.map_or(0.0, |at| half_play_mm(self.scene, pen, at));
                -DEPTH_SLACK_MM - half_mm
            }
            _ => return,
        };
        let height_mm = height_mm(self.scene, followed);
        let low_mm = height_mm.filter(|height_mm| exceeds(floor_mm, *height_mm));
        if let Some(low_mm) = low_mm {
            self.refuse(GateRule::Sheet, sample, excess(low_mm, floor_mm, "mm"), || {
                let (depth, limit) = value_and_limit(-low_mm, -floor_mm);
                format!("with its calibrated play the arm would bring the tip {depth} mm below the sheet; {limit} mm is the limit here. Raise `heights.lift_mm`, or tighten its joints")
            });
        }
    }
}

/// Returns the distance of a tip from the line between its expected position and that position
/// corrected for the sheet.
fn off_correction_mm(scene: &Scene, expected: &Point3<f64>, followed: &Point3<f64>) -> f64 {
    let at_mm = scene.surface.project(expected).at_mm;
    let correction = scene.correction.as_ref();
    let [dx_mm, dy_mm] = correction.map_or([0.0; 2], |compensation| compensation.at(at_mm));
    let surface = scene.surface.at(at_mm);
    let y = surface.normal.cross(&surface.x);
    let corrected_mm = surface.x.scale(dx_mm) + y.scale(dy_mm);
    let moved_mm = (followed - expected) * 1e3;
    let square = corrected_mm.norm_squared();
    let fraction = match exceeds(square, 0.0) {
        true => (moved_mm.dot(&corrected_mm) / square).clamp(0.0, 1.0),
        false => 0.0,
    };
    (moved_mm - corrected_mm * fraction).norm()
}

/// Returns the part of a lead that exceeds half of each joint's play on either side.
fn unexplained(known: &JointCompensation, lead: &JointVector) -> JointVector {
    lead.zip(&known.play_rad, |lead, play| {
        lead - lead.clamp(-play / 2.0, play / 2.0)
    })
}

/// Returns the most that half of the play of all joints can move a tip.
fn half_play_mm(scene: &Scene, pen: &ScenePen, expected: &JointVector) -> f64 {
    let Some(compensation) = &scene.arm.compensation else {
        return 0.0;
    };
    let plays = compensation.play_rad.iter().enumerate();
    let plays_mm = plays.filter(|(_, play)| **play > 0.0).map(|(joint, play)| {
        let half = expected.map(|index, _| if index == joint { play / 2.0 } else { 0.0 });
        tip_shift_mm(scene, pen, expected, &half)
    });
    plays_mm.sum()
}

/// Returns how far rotations of the joints move a tip.
fn tip_shift_mm(scene: &Scene, pen: &ScenePen, joints: &JointVector, by_rad: &JointVector) -> f64 {
    let tip = |joints: &JointVector| scene.arm.chain.point(joints, &pen.tip_m);
    let moved = joints.zip(by_rad, |joint, by_rad| joint + by_rad);
    (tip(&moved) - tip(joints)).norm() * 1e3
}
