//! Places that an arm is to touch: those whose probes are refused are left out before it moves, as far as that can be known then.

use std::sync::Arc;

use super::super::motion_job::{JobContext, JobError};
use super::super::team::StandingArms;
use super::touch;
use base::units::JointVector;
use base::wording::count;
use call::{Refusal, refusal};
use gate::{GateRule, RefusedTrajectory};
use plan::{Plan, PlanError, PlanObserver, PlanRefusal, SpanKind};
use scene::Scene;

/// A place that is to be touched.
pub(super) struct ProbeTarget {
    /// Its number in the record of touches.
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) at_mm: [f64; 2],
}

/// A place that was not touched, and why.
pub(super) struct MissedTouch {
    pub(super) code: &'static str,
    pub(super) why: String,
    /// True if another arm stands in the way.
    is_beside_arm: bool,
}

/// Code of a probe that ended where the scene has the sheet, and felt nothing.
pub(super) const NO_CONTACT: &str = "no_contact";

/// Codes of what does not tell of a place that the sheet is elsewhere, or that something else was felt.
const LEFT_OUT: [&str; 3] = [NO_CONTACT, "plan_refused", "gate_refused"];

impl MissedTouch {
    pub(super) fn new(code: &'static str, why: String) -> Self {
        Self {
            code,
            why,
            is_beside_arm: false,
        }
    }

    /// Takes the refusal of a motion to a place; another error is returned.
    pub(super) fn of_error(place: &ProbeTarget, error: JobError) -> Result<Self, JobError> {
        match error {
            JobError::Plan(PlanError::Refused(refusals)) => Ok(Self::of_planner(place, &refusals)),
            JobError::Gate(refused) if is_of_motion(&refused) => Ok(Self::of_gate(place, &refused)),
            error => Err(error),
        }
    }

    fn of_planner(place: &ProbeTarget, refusals: &[PlanRefusal]) -> Self {
        let why = refusals.first().map(ToString::to_string);
        Self::new("plan_refused", refused_text(place, why))
    }

    fn of_gate(place: &ProbeTarget, refused: &RefusedTrajectory) -> Self {
        let RefusedTrajectory(refusals) = refused;
        let why = refusals.first().map(|refusal| refusal.why.clone());
        Self {
            is_beside_arm: refusals.iter().any(|one| one.rule == GateRule::Apart),
            ..Self::new("gate_refused", refused_text(place, why))
        }
    }
}

fn refused_text(place: &ProbeTarget, why: Option<String>) -> String {
    let why = why.unwrap_or_default();
    format!("at `{}` the probe is refused: {why}", place.name)
}

/// Returns whether a refusal is about the motion, and not about the permission or the arm's state.
fn is_of_motion(refused: &RefusedTrajectory) -> bool {
    let mut rules = refused.0.iter().map(|refusal| refusal.rule);
    !rules.any(|rule| matches!(rule, GateRule::Form | GateRule::Enabled | GateRule::Start))
}

/// Places that an arm touches, and those that it leaves out.
pub(super) struct ProbePlaces {
    pub(super) kept: Vec<ProbeTarget>,
    pub(super) left_out: Vec<MissedTouch>,
    /// The fewest that must be touched.
    least: usize,
}

impl ProbePlaces {
    /// Leaves out the places whose probes the planner or the gate refuses. Each probe is planned from the one before and judged beside
    /// the arms that stand. Where the sheet lies is not known yet: the heights are those of a sheet in its place.
    ///
    /// # Errors
    /// Too few places are left.
    pub(super) async fn possible(
        ctx: &JobContext,
        scene: &Arc<Scene>,
        places: Vec<ProbeTarget>,
        least: usize,
    ) -> Result<Self, JobError> {
        let standing = StandingArms::beside(&ctx.node, &ctx.arm, scene).await?;
        let all = places.len();
        let judged = ctx.arm.with_confirmed_pen(scene);
        let planning = move |_: &Scene, start: &JointVector, watch: &dyn PlanObserver| {
            let mut path = ProbePath {
                scene: &judged,
                standing: &standing,
                from: *start,
            };
            let (mut kept, mut left_out) = (Vec::new(), Vec::new());
            for place in places {
                match path.go_on(&place, watch)? {
                    None => kept.push(place),
                    Some(missed) => left_out.push(missed),
                }
            }
            Ok(Self {
                kept,
                left_out,
                least,
            })
        };
        let possible: Self = ctx.plan(scene, planning).await?;
        match possible.kept.len() < least {
            true => Err(possible.too_few(scene, all).into()),
            false => Ok(possible),
        }
    }

    /// Leaves out a place that was missed. Returns why the other places are not worth touching, if too few are touched and to come, or
    /// if what was felt is not the sheet.
    pub(super) fn leave_out(
        &mut self,
        missed: MissedTouch,
        (touched, to_come): (usize, usize),
    ) -> Option<MissedTouch> {
        if !LEFT_OUT.contains(&missed.code) {
            return Some(missed);
        }
        self.left_out.push(missed);
        match touched + to_come < self.least {
            // The first is nearer to the cause.
            true => Some(self.left_out.remove(0)),
            false => None,
        }
    }

    /// Says which places were left out; empty if there are none.
    pub(super) fn left_out_text(&self) -> String {
        let why = self.left_out.iter().map(|missed| missed.why.as_str());
        match self.left_out.len() {
            0 => String::new(),
            places => format!(
                ". {} left out: {}",
                count(places, "place"),
                why.collect::<Vec<_>>().join("; ")
            ),
        }
    }

    fn too_few(&self, scene: &Scene, all: usize) -> Refusal {
        let (kept, least) = (self.kept.len(), self.least);
        let why = self.left_out.first().map_or("", |missed| &missed.why);
        let in_the_way = self.left_out.iter().any(|missed| missed.is_beside_arm);
        let beside = scene.beside.first().filter(|_| in_the_way);
        let next = beside.map_or_else(
            || format!(
                "move the sheet nearer, or touch it by hand: `steadyhand calibrate touch sheet --scene {} --of origin`",
                scene.name
            ),
            |beside| format!("bring the other arm to rest: `reset` with {{\"arm\": \"{}\"}}", beside.name),
        );
        refusal!(
            "the arm can touch {kept} of {all} places of the sheet (at least {least}): {why}. Next: {next}"
        )
    }
}

/// The way of an arm from probe to probe, before it goes there.
struct ProbePath<'a> {
    scene: &'a Arc<Scene>,
    standing: &'a StandingArms,
    from: JointVector,
}

impl ProbePath<'_> {
    /// Goes on to a place and touches it as often as a touch does. Returns what refuses that: then the arm stays where it was.
    fn go_on(
        &mut self,
        place: &ProbeTarget,
        watch: &dyn PlanObserver,
    ) -> Result<Option<MissedTouch>, PlanError> {
        let before = self.from;
        for touch in 0..touch::TOUCHES {
            let first_mm = (touch > 0).then_some(0.0);
            let at = touch::probe_at(self.scene, place, touch, first_mm);
            let missed = match plan::probe_from(self.scene, &self.from, at, 0, watch) {
                Err(PlanError::Refused(refusals)) => MissedTouch::of_planner(place, &refusals),
                Err(error) => return Err(error),
                Ok(plan) => match self.standing.judge(self.scene, &plan.trajectory) {
                    Err(refused) => MissedTouch::of_gate(place, &refused),
                    Ok(()) => {
                        self.from = above(&plan).unwrap_or(self.from);
                        continue;
                    }
                },
            };
            self.from = before;
            return Ok(Some(missed));
        }
        Ok(None)
    }
}

/// Returns where a probe begins, to which its arm goes back.
fn above(plan: &Plan) -> Option<JointVector> {
    let mut spans = plan.trajectory.spans.iter();
    let probe = spans.find(|span| span.kind == SpanKind::Probe)?;
    plan.trajectory.reached().get(probe.first).copied()
}
