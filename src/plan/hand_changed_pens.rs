//! Plans drawings that need a person, to change pens or to end a pause: part by part. Between two
//! parts the arm goes where a person can reach it.

use std::sync::Arc;

use super::Plan;
use super::draw::{PartialPlan, attempt_mounted};
use super::plan_report::{self, StrokeReport};
use super::trajectory::{Trajectory, TrajectorySpan};
use super::{PERIOD, PlanError, PlanObserver, PlanRefusal};
use base::units::JointVector;
use scene::{DrawingPause, Order, PenHolder, Scene, SheetStroke};

/// Strokes that are drawn without a person in between, in the given order.
#[derive(Clone, Debug, PartialEq)]
pub struct AttendedPart {
    /// Index of the pen of its first stroke; of all its strokes where a person changes the pens.
    pub pen: usize,
    /// The pause after which it is drawn.
    pub pause: Option<Arc<DrawingPause>>,
    /// True for the first part after its pause.
    pub follows_pause: bool,
    /// Its strokes.
    pub strokes: Vec<SheetStroke>,
}

impl AttendedPart {
    /// Returns the pause that a person ends right before this part.
    #[must_use]
    pub fn pause_before(&self) -> Option<&DrawingPause> {
        self.pause.as_deref().filter(|_| self.follows_pause)
    }

    /// Returns the strokes without their pause, to be drawn once it is over.
    #[must_use]
    pub fn strokes_after_pause(&self) -> Vec<SheetStroke> {
        (self.strokes.iter().cloned())
            .map(|stroke| SheetStroke {
                pause: None,
                ..stroke
            })
            .collect()
    }
}

/// Returns the parts of a drawing between which the arm waits for a person: one for each stretch
/// between pauses, and one for each pen within it where a person changes the pens.
#[must_use]
pub fn attended_parts(holder: &PenHolder, strokes: &[SheetStroke]) -> Vec<AttendedPart> {
    let key = |stroke: &SheetStroke| part_key(holder, stroke);
    let mut keys: Vec<_> = strokes.iter().map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    let attended_part = |part: &(usize, usize)| {
        let part_strokes = strokes.iter().filter(|stroke| key(stroke) == *part);
        let first = part_strokes.clone().next()?;
        let is_first = keys.iter().find(|key| key.0 == part.0) == Some(part);
        Some(AttendedPart {
            pen: first.pen,
            pause: first.pause.clone(),
            follows_pause: is_first && first.pause.is_some(),
            strokes: part_strokes.cloned().collect(),
        })
    };
    keys.iter().filter_map(attended_part).collect()
}

/// Returns the number of a stroke's pause, 0 for none, and its pen where a person changes the pens.
fn part_key(holder: &PenHolder, stroke: &SheetStroke) -> (usize, usize) {
    let turn = stroke.pause.as_ref().map_or(0, |pause| pause.turn);
    (turn, if holder.is_by_hand() { stroke.pen } else { 0 })
}

/// Splits a plan whose pens a person changes into one trajectory for each part, each with its pen
/// and the index of its first stroke among the plan's.
#[must_use]
pub fn part_trajectories(plan: &Plan) -> Vec<(usize, Trajectory, usize)> {
    let full = &plan.trajectory;
    let spans_by_pen = full.spans.chunk_by(|one, next| one.pen == next.pen);
    let part = |spans: &[TrajectorySpan]| {
        let (first, last) = (spans.first()?, spans.last()?);
        let first_item = spans.iter().find_map(|span| span.item).unwrap_or(0);
        let shifted = spans.iter().map(|span| TrajectorySpan {
            item: span.item.map(|item| item - first_item),
            first: span.first - first.first,
            end: span.end - first.first,
            ..span.clone()
        });
        let trajectory = Trajectory {
            period: full.period,
            samples: full.samples.get(first.first..last.end)?.to_vec(),
            reached: match full.reached.is_empty() {
                true => Vec::new(),
                false => full.reached.get(first.first..last.end)?.to_vec(),
            },
            spans: shifted.collect(),
        };
        Some((first.pen, trajectory, first_item))
    };
    spans_by_pen.filter_map(part).collect()
}

/// Plans every part with its pen in the holder, and joins the parts into one plan without pen
/// changes: for previews, and for a hash that covers the whole drawing.
pub(super) fn attempt(
    scene: &Scene,
    start: &JointVector,
    strokes: &[SheetStroke],
    stroke_order: Order,
    observer: &dyn PlanObserver,
) -> Result<PartialPlan, PlanError> {
    let attended_rad = scene.attended_pose_rad();
    let parts = attended_parts(&scene.holder, strokes);
    let mut joined = JoinedParts::default();
    for (index, part) in parts.iter().enumerate() {
        let key = part.strokes.first().map(|one| part_key(&scene.holder, one));
        let is_of_part = |one: &SheetStroke| Some(part_key(&scene.holder, one)) == key;
        let given: Vec<usize> = (0..strokes.len())
            .filter(|stroke| strokes.get(*stroke).is_some_and(is_of_part))
            .collect();
        let progress = PartProgress {
            observer,
            done_before: joined.given_strokes,
            total: strokes.len(),
        };
        let from = if index == 0 { start } else { attended_rad };
        let moves_away = scene.holder.is_by_hand() || index + 1 < parts.len();
        let start_end_rad = (from, moves_away.then_some(attended_rad));
        let mounted = scene.holding(part.pen);
        let planned = attempt_mounted(
            &mounted,
            start_end_rad,
            &part.strokes,
            stroke_order,
            &progress,
        )?;
        joined.add(planned, &given);
    }
    Ok(joined.plan(scene))
}

/// Reports progress of one part as progress of the whole drawing.
struct PartProgress<'a> {
    observer: &'a dyn PlanObserver,
    done_before: usize,
    total: usize,
}

impl PlanObserver for PartProgress<'_> {
    fn progress(&self, done: usize, _of: usize) {
        self.observer
            .progress((self.done_before + done).min(self.total), self.total);
    }

    fn cancelled(&self) -> bool {
        self.observer.cancelled()
    }
}

/// Planned parts, one after the other.
#[derive(Default)]
struct JoinedParts {
    given_strokes: usize,
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
    /// Appends a part. `given` maps its strokes to indices among all strokes.
    #[expect(clippy::expect_used, reason = "a plan names only strokes of its part")]
    fn add(&mut self, (part, hover_from): (PartialPlan, usize), given: &[usize]) {
        let plan = part.plan;
        let (first_sample, first_item) = (self.samples.len(), self.drawn.len());
        let to_given = |stroke: usize| *given.get(stroke).expect("every part has a stroke");
        let shifted = |span: TrajectorySpan| TrajectorySpan {
            item: span.item.map(|item| item + first_item),
            first: span.first + first_sample,
            end: span.end + first_sample,
            ..span
        };
        self.hover_from.get_or_insert(hover_from);
        let spans = plan.trajectory.spans.into_iter();
        self.spans.extend(spans.map(shifted));
        self.samples.extend(plan.trajectory.samples);
        self.reached.extend(plan.trajectory.reached);
        let reports = plan.report.strokes.into_iter();
        self.reports.extend(reports.map(|report| StrokeReport {
            stroke: to_given(report.stroke),
            parts: report.parts.iter().map(|part| to_given(*part)).collect(),
            begins_s: 0.0,
            duration_s: 0.0,
            ..report
        }));
        self.drawn.extend(plan.strokes);
        self.dips += plan.report.dips;
        let refusals = part.refusals.into_iter();
        self.refusals.extend(refusals.map(|refusal| PlanRefusal {
            stroke: refusal.stroke.map(to_given),
            ..refusal
        }));
        self.refused.extend(part.refused);
        self.given_strokes += given.len();
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
