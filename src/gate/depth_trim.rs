//! Trims the depth of a pen while it draws, as far as its scene allows.
//!
//! Every sample of a drawing is judged three times before it moves: as planned, and with the tip as far higher and as far deeper
//! as `heights.depth_trim_mm` allows. Each stop is proven from all three places. A trim is a place between them, and it moves
//! slowly from one to the next.

use nalgebra::Point3;

use super::check::TrajectoryJudge;
use super::collision_world::CollisionWorld;
use super::execute::{Execution, smooth_step};
use super::stop_proof::{FixedJoints, tip_step};
use super::{GateRefusal, GateRule};
use base::units::JointVector;
use plan::{SpanKind, Trajectory};
use scene::{Scene, ScenePen};

/// Fastest change of a trim, and its acceleration.
const TRIM_MM_S: f64 = 1.0;
const TRIM_MM_S2: f64 = 5.0;

/// Distance from its target at which a trim is there.
const THERE_MM: f64 = 1e-4;

/// Factor by which a trimmed copy may exceed the rates of its plan: it is the same path a little higher or deeper, so on a round
/// surface it is a little longer.
const TRIMMED_SLACK: f64 = 1.05;

/// Newton steps to a trimmed place. Their number is fixed, so that neighbouring samples are trimmed alike.
const NEWTON_STEPS: usize = 3;

/// The trim of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct DepthTrim {
    /// How much deeper than planned the pen shall be; higher if below 0.
    pub target_mm: f64,
    /// How much deeper its goals are now.
    pub now_mm: f64,
    /// The most that the scene allows, either way.
    pub most_mm: f64,
}

/// A change of a trim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DepthTrimChange {
    /// By so much deeper, or higher if below 0.
    By(f64),
    /// To so much deeper than planned.
    To(f64),
}

/// The reason why a trim is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DepthTrimError {
    /// The scene sets no bound.
    #[error(
        "scene `{0}` does not allow a trim of the depth. Next: set `heights.depth_trim_mm` in its file, enable the scene and draw again"
    )]
    NotAllowed(String),
    /// The motion under way does not draw, or is ending.
    #[error("nothing is being drawn, so there is no depth to trim")]
    NotDrawing,
    /// Beyond the bound.
    #[error(
        "the pen would be {mm:+.2} mm from its planned depth; ±{most_mm} mm is the limit (`heights.depth_trim_mm`). Nothing changed"
    )]
    Beyond {
        /// The trim that was asked for.
        mm: f64,
        /// The bound.
        most_mm: f64,
    },
}

/// The copies of a drawing with the pen as high and as deep as a trim may bring it.
pub(super) struct TrimmedCopies {
    pub(super) higher: Trajectory,
    pub(super) deeper: Trajectory,
}

impl TrimmedCopies {
    /// Makes the copies; `None` where the scene allows no trim or the motion draws nothing.
    pub(super) fn of(scene: &Scene, trajectory: &Trajectory) -> Option<Self> {
        let most_mm = scene.heights.depth_trim_mm;
        let draws = |kind: SpanKind| kind == SpanKind::Draw;
        if most_mm <= 0.0 || !trajectory.spans.iter().any(|span| draws(span.kind)) {
            return None;
        }
        let weights = weights(trajectory, most_mm);
        Some(Self {
            higher: moved(scene, trajectory, &weights, most_mm),
            deeper: moved(scene, trajectory, &weights, -most_mm),
        })
    }

    /// Returns the scene by which the deeper copy is judged: each pen may be deeper by the trim.
    fn deeper_scene(scene: &Scene) -> Scene {
        let most_mm = scene.heights.depth_trim_mm;
        let mut deeper = scene.clone();
        deeper.heights.press_mm += most_mm;
        for (pen, planned) in deeper.pens.iter_mut().zip(&scene.pens) {
            pen.press_mm = Some(scene.press_mm(planned) + most_mm);
        }
        deeper
    }

    /// Returns all joint angles of both copies, sent and expected.
    pub(super) fn all(&self) -> impl Iterator<Item = &[JointVector]> {
        [&self.higher, &self.deeper]
            .into_iter()
            .flat_map(|copy| [&copy.samples[..], &copy.reached[..]])
            .filter(|joints| !joints.is_empty())
    }
}

impl TrajectoryJudge<'_> {
    /// Judges what a trim may do.
    pub(super) fn check_copies(&mut self, copies: &TrimmedCopies) {
        let deeper = TrimmedCopies::deeper_scene(self.scene);
        self.check_trimmed(self.scene, &copies.higher, "higher");
        self.check_trimmed(&deeper, &copies.deeper, "deeper");
    }

    /// Returns the factor by which a rate may exceed its limit, besides rounding.
    pub(super) fn slack_of(&self, rule: GateRule) -> f64 {
        match rule {
            GateRule::JointSpeed
            | GateRule::JointAcceleration
            | GateRule::JointJerk
            | GateRule::TipSpeed => self.rate_slack,
            _ => 1.0,
        }
    }

    /// Judges a copy with the pen as far away from its planned depth as a trim may bring it.
    fn check_trimmed(&mut self, scene: &Scene, copy: &Trajectory, direction: &str) {
        let mut judge = TrajectoryJudge::new(scene, copy);
        judge.rate_slack = TRIMMED_SLACK;
        let spans = judge.check_form();
        judge.check_samples(&spans, CollisionWorld::new(scene));
        let most_mm = self.scene.heights.depth_trim_mm;
        let refusals = judge.refusals.into_iter().map(|refusal| GateRefusal {
            why: format!(
                "with the pen trimmed {most_mm} mm {direction} (`heights.depth_trim_mm`): {}",
                refusal.why
            ),
            ..refusal
        });
        self.refusals.extend(refusals);
    }
}

/// The judged range of a drawing's trim.
#[derive(Debug)]
pub(super) struct TrimProof {
    most_mm: f64,
    higher_rad: Vec<JointVector>,
    deeper_rad: Vec<JointVector>,
}

impl TrimProof {
    /// Takes over the goals of copies that were judged.
    pub(super) fn new(scene: &Scene, copies: TrimmedCopies) -> Self {
        Self {
            most_mm: scene.heights.depth_trim_mm,
            higher_rad: copies.higher.samples,
            deeper_rad: copies.deeper.samples,
        }
    }

    /// Returns the goal of a sample with the pen so much deeper than planned: between the plan and a judged copy.
    fn goal_rad(&self, sample: usize, planned_rad: &JointVector, deeper_mm: f64) -> JointVector {
        let copy = match deeper_mm > 0.0 {
            true => &self.deeper_rad,
            false => &self.higher_rad,
        };
        let fraction = (deeper_mm.abs() / self.most_mm).min(1.0);
        let copied = copy.get(sample);
        copied.map_or(*planned_rad, |copied| {
            planned_rad.zip(copied, |planned, copied| {
                planned + (copied - planned) * fraction
            })
        })
    }
}

/// The trim of a motion under way.
#[derive(Debug)]
pub(super) struct TrimRamp {
    proof: Option<TrimProof>,
    target_mm: f64,
    now_mm: f64,
    speed_mm_s: f64,
}

impl TrimRamp {
    pub(super) fn new(proof: Option<TrimProof>) -> Self {
        Self {
            proof,
            target_mm: 0.0,
            now_mm: 0.0,
            speed_mm_s: 0.0,
        }
    }

    /// Returns the trim; `None` where none is possible.
    pub(super) fn state(&self) -> Option<DepthTrim> {
        let proof = self.proof.as_ref()?;
        Some(DepthTrim {
            target_mm: self.target_mm,
            now_mm: self.now_mm,
            most_mm: proof.most_mm,
        })
    }

    /// Sets the target. A trim beyond the bound changes nothing.
    pub(super) fn change(&mut self, change: DepthTrimChange) -> Result<DepthTrim, DepthTrimError> {
        let state = self.state().ok_or(DepthTrimError::NotDrawing)?;
        let mm = match change {
            DepthTrimChange::By(mm) => state.target_mm + mm,
            DepthTrimChange::To(mm) => mm,
        };
        // Sums of tenths are not exact.
        let rounded_mm = (mm * 1e3).round() / 1e3;
        let is_within = rounded_mm.abs() <= state.most_mm;
        if !is_within {
            let most_mm = state.most_mm;
            return Err(DepthTrimError::Beyond { mm, most_mm });
        }
        self.target_mm = rounded_mm;
        Ok(DepthTrim {
            target_mm: rounded_mm,
            ..state
        })
    }

    /// Goes on for a tick towards the target.
    pub(super) fn advance(&mut self, period_s: f64) {
        let left_mm = self.target_mm - self.now_mm;
        if left_mm.abs() < THERE_MM && self.speed_mm_s.abs() <= TRIM_MM_S2 * period_s {
            (self.now_mm, self.speed_mm_s) = (self.target_mm, 0.0);
            return;
        }
        // The speed from which it still comes to rest at the target, one step after the other.
        let change_mm_s = TRIM_MM_S2 * period_s;
        let half = change_mm_s / 2.0;
        let braking_mm_s = half.hypot((2.0 * TRIM_MM_S2 * left_mm.abs()).sqrt()) - half;
        let fastest_mm_s = braking_mm_s.min(TRIM_MM_S);
        let wanted_mm_s = (left_mm / period_s).clamp(-fastest_mm_s, fastest_mm_s);
        self.speed_mm_s += (wanted_mm_s - self.speed_mm_s).clamp(-change_mm_s, change_mm_s);
        self.now_mm += self.speed_mm_s * period_s;
        if let Some(proof) = &self.proof {
            self.now_mm = self.now_mm.clamp(-proof.most_mm, proof.most_mm);
        }
    }

    /// Ends the trim at the end of its motion; returns whether it still has to come back.
    pub(super) fn comes_back(&mut self, period_s: f64) -> bool {
        self.target_mm = 0.0;
        let is_away = self.now_mm.abs() > 0.0;
        self.advance(period_s);
        is_away
    }

    /// Returns a sample's goal as trimmed now.
    pub(super) fn goal_rad(&self, sample: usize, planned_rad: &JointVector) -> JointVector {
        match &self.proof {
            Some(proof) if self.now_mm.abs() > 0.0 => {
                proof.goal_rad(sample, planned_rad, self.now_mm)
            }
            _ => *planned_rad,
        }
    }
}

impl Execution {
    /// Changes how much deeper than planned the pen draws. The goals follow slowly, from the next tick on; they stay between
    /// what was judged.
    ///
    /// # Errors
    /// When the scene allows none or not as much, or the motion does not draw or is ending. Then nothing changes.
    pub fn change_depth_trim(
        &mut self,
        change: DepthTrimChange,
    ) -> Result<DepthTrim, DepthTrimError> {
        if self.scene().heights.depth_trim_mm <= 0.0 {
            return Err(DepthTrimError::NotAllowed(self.scene().name.clone()));
        }
        match self.goes_on() {
            true => self.trim.change(change),
            false => Err(DepthTrimError::NotDrawing),
        }
    }

    /// Returns how much deeper than planned the pen draws; `None` where the scene allows no trim or nothing is drawn.
    #[must_use]
    pub fn depth_trim(&self) -> Option<DepthTrim> {
        self.trim.state()
    }

    /// Returns how far the trim moves each joint from the sample that was sent last.
    #[must_use]
    pub fn trimmed_by_rad(&self) -> JointVector {
        let sample = self.sample();
        let planned = self.checked.trajectory.samples.get(sample);
        let planned = planned.unwrap_or(self.goal_rad());
        self.trim
            .goal_rad(sample, planned)
            .zip(planned, |trimmed, planned| trimmed - planned)
    }
}

/// Returns the part of a trim at every sample: all of it while the pen is at the sheet, and none away from it, so that poses are
/// as planned. It changes no faster than a trim does.
fn weights(trajectory: &Trajectory, most_mm: f64) -> Vec<f64> {
    let ramp_s = super::stop_proof::SMOOTH_PEAK * most_mm / TRIM_MM_S;
    let step = trajectory.period.as_secs_f64() / ramp_s;
    let mut nearness = vec![0.0_f64; trajectory.samples.len()];
    let is_at_sheet =
        |kind: SpanKind| matches!(kind, SpanKind::Draw | SpanKind::Lower | SpanKind::Lift);
    for span in trajectory
        .spans
        .iter()
        .filter(|span| is_at_sheet(span.kind))
    {
        let at_sheet = nearness.get_mut(span.first..span.end);
        at_sheet.into_iter().for_each(|samples| samples.fill(1.0));
    }
    let mut before = 0.0_f64;
    for nearness in &mut nearness {
        *nearness = nearness.max(before - step);
        before = *nearness;
    }
    let mut after = 0.0_f64;
    for nearness in nearness.iter_mut().rev() {
        *nearness = nearness.max(after - step);
        after = *nearness;
    }
    nearness.into_iter().map(smooth_step).collect()
}

/// Returns a copy whose tip is higher along the surface's normal by part of a distance.
fn moved(scene: &Scene, trajectory: &Trajectory, weights: &[f64], by_mm: f64) -> Trajectory {
    let mut copy = trajectory.clone();
    for span in &trajectory.spans {
        let Some(pen) = scene.pen(span.pen) else {
            continue;
        };
        let expected = trajectory.reached().iter().zip(weights).enumerate();
        for (sample, (joints_rad, weight)) in expected.take(span.end).skip(span.first) {
            if *weight <= 0.0 {
                continue;
            }
            let by_rad = movement(scene, pen, joints_rad, by_mm * weight);
            for joints in [&mut copy.samples, &mut copy.reached] {
                if let Some(joints) = joints.get_mut(sample) {
                    *joints = joints.zip(&by_rad, |joint, by| joint + by);
                }
            }
        }
    }
    copy
}

/// Returns the movement of the joints that raises a tip along the direction in which its pen is held.
fn movement(scene: &Scene, pen: &ScenePen, from_rad: &JointVector, by_mm: f64) -> JointVector {
    let chain = &scene.arm.chain;
    let tip: Point3<f64> = chain.point(from_rad, &pen.tip_m);
    let hold = scene.surface.at(scene.surface.project(&tip).at_mm).hold;
    let target = tip + hold.scale(by_mm / 1e3);
    let mut joints_rad = *from_rad;
    for _ in 0..NEWTON_STEPS {
        let frames = chain.frames(&joints_rad);
        let error = target - frames.tool * pen.tip_m;
        let step = tip_step(scene, pen, &joints_rad, &frames, &error, FixedJoints::NONE);
        joints_rad = joints_rad.zip(&step, |joint, step| joint + step);
    }
    joints_rad.zip(from_rad, |to, from| to - from)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn ramp(most_mm: f64) -> TrimRamp {
        TrimRamp::new(Some(TrimProof {
            most_mm,
            higher_rad: Vec::new(),
            deeper_rad: Vec::new(),
        }))
    }

    #[test]
    fn a_trim_goes_to_its_target_slowly_and_stays() {
        let mut ramp = ramp(0.5);
        ramp.change(DepthTrimChange::By(0.3)).unwrap();
        let (mut before_mm, mut speed_mm_s) = (0.0, 0.0_f64);
        for tick in 0..200 {
            if tick == 60 {
                ramp.change(DepthTrimChange::To(-0.5)).unwrap();
            }
            ramp.advance(0.01);
            let now_mm_s: f64 = (ramp.now_mm - before_mm) / 0.01;
            assert!(now_mm_s.abs() < TRIM_MM_S * 1.001, "{now_mm_s}");
            assert!(
                (now_mm_s - speed_mm_s).abs() < 0.07,
                "{tick}: {now_mm_s} {speed_mm_s}"
            );
            (before_mm, speed_mm_s) = (ramp.now_mm, now_mm_s);
        }
        assert!((ramp.now_mm + 0.5).abs() < 1e-9, "{}", ramp.now_mm);
    }

    #[test]
    fn ten_steps_of_a_tenth_reach_the_bound_and_no_more() {
        let mut ramp = ramp(1.0);
        for _ in 0..10 {
            ramp.change(DepthTrimChange::By(0.1)).unwrap();
        }
        let beyond = ramp.change(DepthTrimChange::By(0.1));
        assert!(matches!(beyond, Err(DepthTrimError::Beyond { .. })));
        assert!(ramp.change(DepthTrimChange::To(f64::NAN)).is_err());
        assert!((ramp.state().unwrap().target_mm - 1.0).abs() < 1e-12);
        assert!(
            TrimRamp::new(None)
                .change(DepthTrimChange::By(0.0))
                .is_err()
        );
    }
}
