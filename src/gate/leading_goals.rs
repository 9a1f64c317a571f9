//! Goals that lead: how far they may be from where the arm is expected, and that it is expected where such goals bring it.

use nalgebra::Point3;

use super::GateRule;
use super::check::{SLACK, TrajectoryJudge, exceeds};
use super::joint_rates::excess;
use super::stop_proof::touches;
use base::units::{JointVector, apart};
use plan::TrajectorySpan;
use scene::{CORRECTION_MM_MAX, ScenePen};

/// Largest distance of a tip that draws from where goals bring it by what is known of the arm.
const EXPECTED_MM: f64 = 2.0;

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
        let mut gears = scene.arm.compensation.as_ref().map(|known| known.gears());
        for (span, pen) in spans {
            let samples = trajectory.samples.iter().zip(&trajectory.reached);
            let samples = samples.enumerate().take(span.end).skip(span.first);
            for (sample, (goal, expected)) in samples {
                let tip = |joints: &JointVector| scene.arm.chain.point(joints, &pen.tip_m);
                let lead = goal.zip(expected, |goal, expected| goal - expected);
                let beyond = match &scene.arm.compensation {
                    Some(known) => lead
                        .zip(&known.sag_rad(&scene.arm.chain, expected), |lead, sag| {
                            lead + sag
                        })
                        .zip(&known.play_rad, beyond_play),
                    None => lead,
                };
                let led = expected.zip(&beyond, |expected, by| expected + by);
                self.check_lead(sample, &tip(expected), &tip(&led));
                let Some(gears) = &mut gears else {
                    continue;
                };
                let followed = gears.follow(&scene.arm.chain, goal);
                if touches(span.kind) {
                    let by_mm = scene.correction.as_ref().map(|correction| {
                        correction.at(scene.surface.project(&tip(expected)).at_mm)
                    });
                    let [dx, dy] = by_mm.unwrap_or_default();
                    let apart_mm = (tip(&followed) - tip(expected)).norm() * 1e3 - dx.hypot(dy);
                    self.check_expected(sample, apart_mm);
                }
            }
        }
    }

    fn check_lead(&mut self, sample: usize, expected: &Point3<f64>, led: &Point3<f64>) {
        let by_mm = (led - expected).norm() * 1e3;
        if exceeds(by_mm, CORRECTION_MM_MAX * SLACK) {
            let excess = excess(by_mm, CORRECTION_MM_MAX, "mm");
            self.refuse(GateRule::Lead, sample, excess, || {
                let (by, limit) = apart(by_mm, CORRECTION_MM_MAX);
                format!("the goal would lead the tip by {by} mm; {limit} mm is the limit beside the joints' play: calibrate again")
            });
        }
    }

    fn check_expected(&mut self, sample: usize, apart_mm: f64) {
        if exceeds(apart_mm, EXPECTED_MM) {
            let excess = excess(apart_mm, EXPECTED_MM, "mm");
            self.refuse(GateRule::Lead, sample, excess, || {
                let (apart, limit) = apart(apart_mm, EXPECTED_MM);
                format!("the goals would bring the tip {apart} mm from where it is expected; {limit} mm is the limit: draw slower, or calibrate again")
            });
        }
    }
}

/// Returns what of a lead half of a joint's play does not explain.
fn beyond_play(lead: f64, play: f64) -> f64 {
    lead - lead.clamp(-play / 2.0, play / 2.0)
}
