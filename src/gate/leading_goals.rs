//! Goals that lead: how far they may be from where the arm is expected, and that it is expected where such goals bring it.

use super::GateRule;
use super::check::{TrajectoryJudge, exceeds};
use super::joint_rates::excess;
use super::stop_proof::touches;
use arm::JointCompensation;
use base::units::{JointVector, apart};
use plan::TrajectorySpan;
use scene::{Scene, ScenePen, SheetCorrection};

/// Largest distance of a tip at the sheet from where goals bring it by what is known of the arm, beside half of its joints' play,
/// which may not be made good.
const EXPECTED_MM: f64 = 1.0;

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
                let led = expected.zip(&beyond, |expected, by| expected + by);
                let by_mm = (tip(&led) - tip(expected)).norm() * 1e3;
                self.check_lead(sample, by_mm, explained_mm);
                let Some(gears) = &mut gears else {
                    continue;
                };
                let followed = gears.follow(&scene.arm.chain, goal);
                if touches(span.kind) {
                    let place = tip(expected);
                    let by_mm = correction
                        .map(|correction| correction.at(scene.surface.project(&place).at_mm));
                    let [dx, dy] = by_mm.unwrap_or_default();
                    let apart_mm = (tip(&followed) - place).norm() * 1e3 - dx.hypot(dy);
                    let limit_mm = EXPECTED_MM + half_play_mm(scene, pen, expected);
                    self.check_expected(sample, apart_mm, limit_mm);
                }
            }
        }
    }

    fn check_lead(&mut self, sample: usize, by_mm: f64, explained_mm: f64) {
        if exceeds(by_mm, explained_mm) {
            let excess = excess(by_mm, explained_mm, "mm");
            self.refuse(GateRule::Lead, sample, excess, || {
                let (by, limit) = apart(by_mm, explained_mm);
                format!("the goal would lead the tip by {by} mm; play, sag and the sheet's correction explain {limit} mm: calibrate again")
            });
        }
    }

    fn check_expected(&mut self, sample: usize, apart_mm: f64, limit_mm: f64) {
        if exceeds(apart_mm, limit_mm) {
            let excess = excess(apart_mm, limit_mm, "mm");
            self.refuse(GateRule::Lead, sample, excess, || {
                let (apart, limit) = apart(apart_mm, limit_mm);
                format!("the goals would bring the tip {apart} mm from where it is expected; {limit} mm is the limit: draw slower, or calibrate again")
            });
        }
    }
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
    let tip = |joints: &JointVector| scene.arm.chain.point(joints, &pen.tip_m);
    let place = tip(expected);
    let plays = known.play_rad.iter().enumerate();
    let by_m = plays.filter(|(_, play)| **play > 0.0).map(|(joint, play)| {
        let turned = expected.map(|of, q| if of == joint { q + play / 2.0 } else { q });
        (tip(&turned) - place).norm()
    });
    by_m.sum::<f64>() * 1e3
}
