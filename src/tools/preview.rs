//! Previews a drawing, whether it is permitted or not: the plan, and every rule that refuses it.

use std::sync::Arc;

use serde::Serialize;

use super::preview_text::tenth;
use super::stroke::rounded;
use super::team::StandingArms;
use base::units::JointVector;
use base::wording::{count, millimetres, seconds};
use gate::RefusedTrajectory;
use plan::{self, PartialPlan, Plan, PlanError, PlanObserver, PlanReport, Trajectory};
use scene::{CanvasBoundError, Scene, SheetStroke};

/// Preview of a drawing.
#[derive(Clone, Debug)]
pub struct DrawingPreview {
    /// The scene that is drawn.
    pub(super) scene: Arc<Scene>,
    /// As much as can be planned; `None` if nothing can.
    pub plan: Option<Plan>,
    /// Every violated rule.
    pub refusals: Vec<RuleViolation>,
    /// Strokes left out of the plan because of the refusals.
    pub(super) refused: Vec<SheetStroke>,
}

/// A violated rule, of the planner, the gate or the canvas.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RuleViolation {
    /// The rule that refuses.
    pub rule: String,
    /// Number of the stroke in the design, counted from 1 as its author drew them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stroke: Option<usize>,
    /// Position of the stroke in its author's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Place on the sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_mm: Option<[f64; 2]>,
    /// Value that is too large or too small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Limit of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Unit of the value and the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// The whole violation as a sentence.
    pub why: String,
    /// Index of the stroke in the plan, if it is part of it.
    #[serde(skip)]
    pub(super) item: Option<usize>,
}

/// What the gate says of a motion.
type Judge<'a> = &'a dyn Fn(&Arc<Scene>, &Trajectory) -> Result<(), RefusedTrajectory>;

impl DrawingPreview {
    /// Plans what can be planned, and lets the gate check it.
    ///
    /// # Errors
    /// Planning was cancelled, or there is nothing to draw.
    pub fn new(
        scene: &Arc<Scene>,
        start: &JointVector,
        watch: &dyn PlanObserver,
    ) -> Result<Self, PlanError> {
        Self::judged_by(&gate::preview, scene, start, watch)
    }

    /// Plans what can be planned, and lets the gate check it beside arms that stand.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(super) fn beside(
        standing: &StandingArms,
        scene: &Arc<Scene>,
        start: &JointVector,
        watch: &dyn PlanObserver,
    ) -> Result<Self, PlanError> {
        let judge = |scene: &Arc<Scene>, trajectory: &Trajectory| standing.judge(scene, trajectory);
        Self::judged_by(&judge, scene, start, watch)
    }

    fn judged_by(
        judge: Judge<'_>,
        scene: &Arc<Scene>,
        start: &JointVector,
        watch: &dyn PlanObserver,
    ) -> Result<Self, PlanError> {
        match plan::attempt(scene, start, watch) {
            Ok(attempt) => Ok(Self::from_attempt(judge, scene, attempt)),
            Err(PlanError::Refused(refusals)) => Ok(Self {
                scene: Arc::clone(scene),
                plan: None,
                refusals: refusals.iter().map(RuleViolation::of_planner).collect(),
                refused: scene.strokes.clone(),
            }),
            Err(error) => Err(error),
        }
    }

    fn from_attempt(judge: Judge<'_>, scene: &Arc<Scene>, attempt: PartialPlan) -> Self {
        let planned = attempt.refusals.iter().map(RuleViolation::of_planner);
        let mut refusals: Vec<RuleViolation> = planned.collect();
        let plan = (attempt.plan.report.stroke_count > 0).then_some(attempt.plan);
        if let Some(plan) = &plan {
            let refused = refused_by_gate(judge, scene, plan);
            let of_gate = |refusal| RuleViolation::of_gate(refusal, &plan.report);
            refusals.extend(refused.iter().map(of_gate));
            let canvas = scene.canvas.as_ref();
            let bound = canvas.and_then(|canvas| canvas.check_time(plan.report.duration_s).err());
            refusals.extend(bound.map(|bound| RuleViolation::of_canvas(&bound)));
        }
        Self {
            scene: Arc::clone(scene),
            plan,
            refusals,
            refused: attempt.refused,
        }
    }
}

/// Returns what the gate refuses of a plan. If a person changes the pens, each part is checked with its pen.
fn refused_by_gate(judge: Judge<'_>, scene: &Arc<Scene>, plan: &Plan) -> Vec<gate::GateRefusal> {
    let refusals = |scene: &Arc<Scene>, trajectory: &Trajectory| {
        let judged = judge(scene, trajectory);
        judged.err().map(|refused| refused.0).unwrap_or_default()
    };
    if !scene.holder.is_by_hand() {
        return refusals(scene, &plan.trajectory);
    }
    let parts = plan::part_trajectories(plan).into_iter();
    let of_part = parts.map(|(pen, trajectory, first)| {
        let refused = refusals(&scene.with_mounted(pen), &trajectory);
        refused.into_iter().map(move |refusal| gate::GateRefusal {
            item: refusal.item.map(|item| item + first),
            ..refusal
        })
    });
    of_part.flatten().collect()
}

/// Summarises the length, time and dips of a plan.
pub(super) fn sum_up(report: &PlanReport) -> String {
    let dips = match report.dips {
        0 => String::new(),
        dips => format!(", {}", count(dips, "dip")),
    };
    let expected = report.expected_deviation_mm.map(|mm| {
        let within = millimetres(mm, 2);
        format!("; with the calibrated play, the tip should stay within {within} of the lines")
    });
    format!(
        "{}, {} of line, {} of arm time{dips}{}",
        report.strokes_text(),
        millimetres(report.pen_down_mm, 0),
        seconds(report.duration_s),
        expected.unwrap_or_default()
    )
}

impl RuleViolation {
    pub(super) fn of_planner(refusal: &plan::PlanRefusal) -> Self {
        let excess = refusal.cause.excess();
        Self {
            rule: refusal.cause.rule().to_owned(),
            stroke: refusal.stroke.map(|stroke| stroke + 1),
            source: Some(refusal.source.clone()),
            at_mm: refusal.at_mm.map(|at_mm| at_mm.map(rounded)),
            value: excess.map(|(value, ..)| rounded(value)),
            limit: excess.map(|(_, limit, _)| rounded(limit)),
            unit: excess.map(|(.., unit)| unit),
            why: refusal.to_string(),
            item: None,
        }
    }

    fn of_canvas(bound: &CanvasBoundError) -> Self {
        Self {
            rule: "canvas".to_owned(),
            why: bound.to_string(),
            ..Self::default()
        }
    }

    pub(super) fn of_gate(refusal: &gate::GateRefusal, report: &PlanReport) -> Self {
        let stroke = refusal.item.and_then(|item| report.strokes.get(item));
        let rule = serde_json::to_value(refusal.rule).unwrap_or_default();
        let place = refusal.at_mm.map(|at_mm| at_mm.map(rounded));
        let at = place.map(|at| {
            let [x, y] = at.map(tenth);
            format!(" at ({x}, {y}) mm")
        });
        let reason = match stroke {
            Some(stroke) => format!(
                "{} (stroke {}){}: {}",
                stroke.source,
                stroke.stroke + 1,
                at.unwrap_or_default(),
                refusal.why
            ),
            None => refusal.why.clone(),
        };
        Self {
            rule: rule.as_str().unwrap_or("refused").to_owned(),
            stroke: stroke.map(|stroke| stroke.stroke + 1),
            source: stroke.map(|stroke| stroke.source.clone()),
            at_mm: place,
            value: refusal.excess.map(|excess| rounded(excess.value)),
            limit: refusal.excess.map(|excess| rounded(excess.limit)),
            unit: refusal.excess.map(|excess| excess.unit),
            why: reason,
            item: refusal.item,
        }
    }
}
