//! A drawing for which a person is needed, to change pens or to end a pause: part by part, with the arm between two of them
//! where a hand can reach.

use std::sync::Arc;

use super::Plan;
use super::draw::{PartialPlan, attempt_mounted};
use super::plan_report::{self, StrokeReport};
use super::trajectory::{Trajectory, TrajectorySpan};
use super::{PERIOD, PlanError, PlanObserver, PlanRefusal};
use base::units::JointVector;
use scene::{DrawingPause, Order, PenHolder, Scene, SheetStroke};

/// Strokes that are drawn without a person between them, in the order in which they are given.
#[derive(Clone, Debug, PartialEq)]
pub struct AttendedPart {
    /// Index of the pen of its first stroke; where a person changes the pens, of all.
    pub pen: usize,
    /// The pause after which it is drawn.
    pub pause: Option<Arc<DrawingPause>>,
    /// True for the first part after its pause.
    pub follows_pause: bool,
    /// Its strokes.
    pub strokes: Vec<SheetStroke>,
}

impl AttendedPart {
    /// Returns the pause that a person ends right before it.
    #[must_use]
    pub fn pause_before(&self) -> Option<&DrawingPause> {
        self.pause.as_deref().filter(|_| self.follows_pause)
    }

    /// Returns its strokes as they are drawn once its pause is over.
    #[must_use]
    pub fn strokes_after_pause(&self) -> Vec<SheetStroke> {
        let strokes = self.strokes.iter().map(|stroke| SheetStroke {
            pause: None,
            ..stroke.clone()
        });
        strokes.collect()
    }
}

/// Returns the parts of a drawing between which the arm waits for a person: from pause to pause, and between two of them
/// pen by pen where a person changes the pens.
#[must_use]
pub fn attended_parts(holder: &PenHolder, strokes: &[SheetStroke]) -> Vec<AttendedPart> {
    let key = |stroke: &SheetStroke| part_key(holder, stroke);
    let mut keys: Vec<_> = strokes.iter().map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    let part = |wanted: &(usize, usize)| {
        let of_part = strokes.iter().filter(|stroke| key(stroke) == *wanted);
        let first = of_part.clone().next()?;
        let begins = keys.iter().find(|key| key.0 == wanted.0) == Some(wanted);
        Some(AttendedPart {
            pen: first.pen,
            pause: first.pause.clone(),
            follows_pause: begins && first.pause.is_some(),
            strokes: of_part.cloned().collect(),
        })
    };
    keys.iter().filter_map(part).collect()
}

/// Returns the turn of a stroke's pause, 0 for none, and its pen where a person changes the pens.
fn part_key(holder: &PenHolder, stroke: &SheetStroke) -> (usize, usize) {
    let turn = stroke.pause.as_ref().map_or(0, |pause| pause.turn);
    (turn, if holder.is_by_hand() { stroke.pen } else { 0 })
}

/// Returns the trajectory of each part of a plan whose pens a person changes, with its pen and the place of its first
/// stroke among the plan's.
#[must_use]
pub fn part_trajectories(plan: &Plan) -> Vec<(usize, Trajectory, usize)> {
    let whole = &plan.trajectory;
    let of_pen = whole.spans.chunk_by(|one, next| one.pen == next.pen);
    let part = |spans: &[TrajectorySpan]| {
        let (first, last) = (spans.first()?, spans.last()?);
        let item = spans.iter().find_map(|span| span.item).unwrap_or(0);
        let placed = spans.iter().map(|span| TrajectorySpan {
            item: span.item.map(|of| of - item),
            first: span.first - first.first,
            end: span.end - first.first,
            ..span.clone()
        });
        let trajectory = Trajectory {
            period: whole.period,
            samples: whole.samples.get(first.first..last.end)?.to_vec(),
            reached: match whole.reached.is_empty() {
                true => Vec::new(),
                false => whole.reached.get(first.first..last.end)?.to_vec(),
            },
            spans: placed.collect(),
        };
        Some((first.pen, trajectory, item))
    };
    of_pen.filter_map(part).collect()
}

/// Plans every part with its pen in the holder, and joins them to one plan, in which no pen is changed: for previews, and
/// for a hash that covers all of the drawing.
pub(super) fn attempt(
    scene: &Scene,
    start: &JointVector,
    strokes: &[SheetStroke],
    how: Order,
    watch: &dyn PlanObserver,
) -> Result<PartialPlan, PlanError> {
    let attended_rad = scene.attended_pose_rad();
    let parts = attended_parts(&scene.holder, strokes);
    let mut joined = JoinedParts::default();
    for (turn, part) in parts.iter().enumerate() {
        let key = part.strokes.first().map(|one| part_key(&scene.holder, one));
        let is_of_part = |one: &SheetStroke| Some(part_key(&scene.holder, one)) == key;
        let given: Vec<usize> = (0..strokes.len())
            .filter(|index| strokes.get(*index).is_some_and(is_of_part))
            .collect();
        let progress = PartProgress {
            watch,
            before: joined.given,
            of: strokes.len(),
        };
        let from = if turn == 0 { start } else { attended_rad };
        let is_left = scene.holder.is_by_hand() || turn + 1 < parts.len();
        let ends = (from, is_left.then_some(attended_rad));
        let mounted = scene.holding(part.pen);
        let planned = attempt_mounted(&mounted, ends, &part.strokes, how, &progress)?;
        joined.add(planned, &given);
    }
    Ok(joined.plan(scene))
}

/// Planning of one part, as progress of the whole.
struct PartProgress<'a> {
    watch: &'a dyn PlanObserver,
    before: usize,
    of: usize,
}

impl PlanObserver for PartProgress<'_> {
    fn progress(&self, done: usize, _of: usize) {
        self.watch
            .progress((self.before + done).min(self.of), self.of);
    }

    fn cancelled(&self) -> bool {
        self.watch.cancelled()
    }
}

/// Parts that are planned, one behind the other.
#[derive(Default)]
struct JoinedParts {
    given: usize,
    samples: Vec<JointVector>,
    reached: Vec<JointVector>,
    spans: Vec<TrajectorySpan>,
    hover_from: Option<usize>,
    reports: Vec<StrokeReport>,
    drawn: Vec<SheetStroke>,
    dips: usize,
    refusals: Vec<PlanRefusal>,
    refused: Vec<SheetStroke>,
}

impl JoinedParts {
    /// Adds a part; `given` are the places of its strokes among all.
    #[expect(clippy::expect_used, reason = "another stroke would be named for it")]
    fn add(&mut self, (part, hover_from): (PartialPlan, usize), given: &[usize]) {
        let plan = part.plan;
        let (samples, items) = (self.samples.len(), self.drawn.len());
        let all = |of: usize| *given.get(of).expect("a stroke of the part");
        let placed = |span: TrajectorySpan| TrajectorySpan {
            item: span.item.map(|item| item + items),
            first: span.first + samples,
            end: span.end + samples,
            ..span
        };
        self.hover_from.get_or_insert(hover_from);
        let spans = plan.trajectory.spans.into_iter();
        self.spans.extend(spans.map(placed));
        self.samples.extend(plan.trajectory.samples);
        self.reached.extend(plan.trajectory.reached);
        let reports = plan.report.strokes.into_iter();
        self.reports.extend(reports.map(|report| StrokeReport {
            stroke: all(report.stroke),
            parts: report.parts.iter().map(|part| all(*part)).collect(),
            begins_s: 0.0,
            duration_s: 0.0,
            ..report
        }));
        self.drawn.extend(plan.strokes);
        self.dips += plan.report.dips;
        let refusals = part.refusals.into_iter();
        self.refusals.extend(refusals.map(|refusal| PlanRefusal {
            stroke: refusal.stroke.map(all),
            ..refusal
        }));
        self.refused.extend(part.refused);
        self.given += given.len();
    }

    fn plan(self, scene: &Scene) -> PartialPlan {
        let trajectory = Trajectory {
            period: PERIOD,
            samples: self.samples,
            reached: self.reached,
            spans: self.spans,
        };
        let hover_from = self.hover_from.unwrap_or(trajectory.samples.len());
        let drawn = (self.reports, self.drawn);
        PartialPlan {
            plan: plan_report::plan(scene, trajectory, hover_from, drawn, self.dips),
            refusals: self.refusals,
            refused: self.refused,
        }
    }
}
