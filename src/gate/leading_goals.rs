//! Goals that lead: how far they may be from where the arm is expected, and that it is expected where such goals bring it.

use nalgebra::Point3;

use super::GateRule;
use super::check::{DEPTH_SLACK_MM, SLACK, TrajectoryJudge, exceeds, tip_limit_mm_s};
use super::clearance::height_mm;
use super::joint_rates::excess;
use super::stop_proof::touches;
use arm::JointCompensation;
use base::units::{JointVector, apart};
use plan::{SpanKind, TrajectorySpan};
use scene::{Scene, ScenePen, SheetCorrection, TIP_MM_S_MAX, ToolKind};

/// Largest distance of a tip at the sheet from where goals bring it by what is known of the arm, beside half of its joints' play,
/// which may not be made good.
const EXPECTED_MM: f64 = 1.0;

/// Lead of a tip that does not draw, over the sheet's largest correction, while that passes over from one pen to the next.
const PASSING_OVER: f64 = 1.5;

/// Rounding of a tip that is led by the sheet's correction.
const LED_SLACK_MM: f64 = 0.1;

impl TrajectoryJudge<'_> {
    /// Refuses goals that lead where nothing is known for which they would, or not at every sample.
    pub(super) fn check_leads_form(&mut self) {
        let (goals, expected) = (self.trajectory.samples.len(), self.trajectory.reached.len());
        if expected == 0 {
            return;
        }
        let is_known = self.scene.arm.compensation.is_some() || self.scene.correction.is_some();
        if !is_known || goals != expected {
            self.refuse(GateRule::Form, 0, None, || {
                format!(
                    "{goals} goals and {expected} places where the arm is expected; there may be as many, and only where play, sag or a correction was calibrated"
                )
            });
        }
    }

    /// Judges the distance of every goal from where the arm is expected, and that from what the goals bring about.
    pub(super) fn check_leads(&mut self, spans: &[(&TrajectorySpan, &ScenePen)]) {
        let (scene, trajectory) = (self.scene, self.trajectory);
        let correction = scene.correction.as_ref();
        let explained_mm = correction.map_or(0.0, SheetCorrection::largest_mm) + LED_SLACK_MM;
        let mut gears = scene.arm.compensation.as_ref().map(|known| known.gears());
        let mut before: Option<[JointVector; 2]> = None;
        for (span, pen) in spans {
            let samples = trajectory.samples.iter().zip(&trajectory.reached);
            let samples = samples.enumerate().take(span.end).skip(span.first);
            for (sample, (goal, expected)) in samples {
                let tip = |joints: &JointVector| scene.arm.chain.point(joints, &pen.tip_m);
                let lead = goal.zip(expected, |goal, expected| goal - expected);
                let beyond = match &scene.arm.compensation {
                    Some(known) => {
                        let sag = known.sag_rad(&scene.arm.chain, expected);
                        unexplained(known, &lead, &sag)
                    }
                    None => lead,
                };
                let by_mm = moved_mm(scene, pen, expected, &beyond);
                let is_between_pens = span.kind != SpanKind::Draw && scene.pens.len() > 1;
                let share = if is_between_pens { PASSING_OVER } else { 1.0 };
                let by = (by_mm, explained_mm * share, "mm");
                self.check_most(GateRule::Lead, sample, by, 1.0, |by, limit| {
                    format!("the goal would lead the tip by {by} mm; play, sag and the sheet's correction explain {limit} mm: calibrate again")
                });
                let gears = gears.as_mut();
                let followed = gears.map_or(*goal, |gears| gears.follow(&scene.arm.chain, goal));
                if touches(span.kind) {
                    let apart_mm = off_correction_mm(scene, &tip(expected), &tip(&followed));
                    let limit_mm = EXPECTED_MM + half_play_mm(scene, pen, expected);
                    let apart = (apart_mm, limit_mm, "mm");
                    self.check_most(GateRule::Lead, sample, apart, 1.0, |apart, limit| {
                        format!("the goals would bring the tip {apart} mm from where it is expected; {limit} mm is the limit: draw slower, or calibrate again")
                    });
                }
                let tips_before = before.map(|joints| joints.map(|joints| tip(&joints)));
                self.check_led_speed(sample, pen, tips_before, [tip(goal), tip(&followed)]);
                self.check_followed_depth(sample, span, pen, &tip(&followed));
                before = Some([*goal, followed]);
            }
        }
    }

    /// Judges the speed of a tip where the gears are as known, and where they have no play: the highest that any tip may have, and of
    /// a needle its own.
    fn check_led_speed(
        &mut self,
        sample: usize,
        pen: &ScenePen,
        before: Option<[Point3<f64>; 2]>,
        now: [Point3<f64>; 2],
    ) {
        let scene = self.scene;
        let period_s = self.trajectory.period.as_secs_f64();
        for (index, tip) in now.iter().enumerate() {
            let before = before.and_then(|before| before.get(index).copied());
            let speed = before.map_or(0.0, |before| (tip - before).norm() * 1e3 / period_s);
            let limit = match pen.kind {
                ToolKind::Needle => tip_limit_mm_s(scene, pen.kind, SpanKind::Lift, tip),
                _ => TIP_MM_S_MAX,
            };
            let at = (speed, limit, "mm/s");
            self.check_most(GateRule::TipSpeed, sample, at, SLACK, |speed, limit| {
                format!(
                    "goals that lead would move the tip at {speed} mm/s; {limit} is the limit here"
                )
            });
        }
    }

    /// Refuses to bring a tip into the sheet by what is known of the gears: a needle where it works, and any tip that travels, which
    /// sinks as its goals cease to lead. Half of the play may be on either side and is not held against a pen that travels.
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
                let (depth, limit) = apart(-low_mm, -floor_mm);
                format!("by what is known of its play and sag the arm would bring the tip {depth} mm below the sheet; {limit} mm is the limit here: raise heights.lift_mm, or tighten its joints")
            });
        }
    }
}

/// Returns how far a tip is from where it is expected, or from the way there to where the sheet's correction leads it.
fn off_correction_mm(scene: &Scene, expected: &Point3<f64>, led: &Point3<f64>) -> f64 {
    let at_mm = scene.surface.project(expected).at_mm;
    let correction = scene.correction.as_ref();
    let [dx_mm, dy_mm] = correction.map_or([0.0; 2], |known| known.at(at_mm));
    let surface = scene.surface.at(at_mm);
    let y = surface.normal.cross(&surface.x);
    let corrected_mm = surface.x.scale(dx_mm) + y.scale(dy_mm);
    let moved_mm = (led - expected) * 1e3;
    let square = corrected_mm.norm_squared();
    let share = match exceeds(square, 0.0) {
        true => (moved_mm.dot(&corrected_mm) / square).clamp(0.0, 1.0),
        false => 0.0,
    };
    (moved_mm - corrected_mm * share).norm()
}

/// Returns what of a lead is beyond half of each joint's play on either side, and beyond its sag.
fn unexplained(known: &JointCompensation, lead: &JointVector, sag: &JointVector) -> JointVector {
    let half = known.play_rad.map(|_, play| play / 2.0);
    let lowest = sag.zip(&half, |sag, half| f64::min(0.0, -sag) - half);
    let highest = sag.zip(&half, |sag, half| f64::max(0.0, -sag) + half);
    let explained = lead.zip(&lowest, f64::max).zip(&highest, f64::min);
    lead.zip(&explained, |lead, explained| lead - explained)
}

/// Returns the distance by which half of the play of all joints moves a tip, at the most.
fn half_play_mm(scene: &Scene, pen: &ScenePen, expected: &JointVector) -> f64 {
    let Some(known) = &scene.arm.compensation else {
        return 0.0;
    };
    let plays = known.play_rad.iter().enumerate();
    let by_mm = plays.filter(|(_, play)| **play > 0.0).map(|(joint, play)| {
        let half = expected.map(|of, _| if of == joint { play / 2.0 } else { 0.0 });
        moved_mm(scene, pen, expected, &half)
    });
    by_mm.sum()
}

/// Returns the distance by which turns of the joints move a tip.
fn moved_mm(scene: &Scene, pen: &ScenePen, joints: &JointVector, by: &JointVector) -> f64 {
    let tip = |joints: &JointVector| scene.arm.chain.point(joints, &pen.tip_m);
    let turned = joints.zip(by, |joint, by| joint + by);
    (tip(&turned) - tip(joints)).norm() * 1e3
}
