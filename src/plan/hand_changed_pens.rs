//! A drawing whose pens a person changes: pen by pen, each part beginning and ending where the pen is changed.

use super::draw::{PartialPlan, attempt_mounted};
use super::plan_report::{self, StrokeReport};
use super::trajectory::{Trajectory, TrajectorySpan};
use super::{PERIOD, Plan, PlanError, PlanObserver};
use base::units::JointVector;
use scene::{Order, Scene, SheetStroke};

/// The strokes of one pen, in the order in which they are given.
#[derive(Clone, Debug, PartialEq)]
pub struct PenPart {
    /// Index of the pen.
    pub pen: usize,
    /// Its strokes.
    pub strokes: Vec<SheetStroke>,
}

/// Returns the strokes of each pen, in the order of the pens.
#[must_use]
pub fn pen_parts(strokes: &[SheetStroke]) -> Vec<PenPart> {
    let mut pens: Vec<usize> = strokes.iter().map(|stroke| stroke.pen).collect();
    pens.sort_unstable();
    pens.dedup();
    let part = |pen: usize| {
        let of_pen = strokes.iter().filter(|stroke| stroke.pen == pen);
        PenPart {
            pen,
            strokes: of_pen.cloned().collect(),
        }
    };
    pens.into_iter().map(part).collect()
}

/// Returns the trajectory of each part of a plan whose pens a person changes, with its pen and the place of its first
/// stroke among the plan's.
#[must_use]
pub fn part_trajectories(plan: &Plan) -> Vec<(usize, Trajectory, usize)> {
    let (spans, samples) = (&plan.trajectory.spans, &plan.trajectory.samples);
    let of_pen = spans.chunk_by(|one, next| one.pen == next.pen);
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
            period: plan.trajectory.period,
            samples: samples.get(first.first..last.end)?.to_vec(),
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
    (start, change_rad): (&JointVector, &JointVector),
    strokes: &[SheetStroke],
    how: Order,
    watch: &dyn PlanObserver,
) -> Result<PartialPlan, PlanError> {
    let mut joined = JoinedParts::default();
    for part in pen_parts(strokes) {
        let given: Vec<usize> = (0..strokes.len())
            .filter(|index| strokes.get(*index).is_some_and(|one| one.pen == part.pen))
            .collect();
        let progress = PartProgress {
            watch,
            before: joined.given,
            of: strokes.len(),
        };
        let from = if joined.given == 0 { start } else { change_rad };
        let ends = (from, Some(change_rad));
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
    spans: Vec<TrajectorySpan>,
    hover_from: Option<usize>,
    reports: Vec<StrokeReport>,
    drawn: Vec<SheetStroke>,
    dips: usize,
    refusals: Vec<super::PlanRefusal>,
    refused: Vec<SheetStroke>,
}

impl JoinedParts {
    /// Adds a part; `given` are the places of its strokes among all.
    fn add(&mut self, (part, hover_from): (PartialPlan, usize), given: &[usize]) {
        let PartialPlan {
            plan,
            refusals,
            refused,
        } = part;
        let (samples, items) = (self.samples.len(), self.drawn.len());
        let all = |of: usize| given.get(of).copied().unwrap_or(of);
        let placed = |span: TrajectorySpan| TrajectorySpan {
            item: span.item.map(|item| item + items),
            first: span.first + samples,
            end: span.end + samples,
            ..span
        };
        self.hover_from.get_or_insert(hover_from);
        self.spans
            .extend(plan.trajectory.spans.into_iter().map(placed));
        self.samples.extend(plan.trajectory.samples);
        self.reports
            .extend(plan.report.strokes.into_iter().map(|report| StrokeReport {
                stroke: all(report.stroke),
                parts: report.parts.iter().map(|part| all(*part)).collect(),
                begins_s: 0.0,
                duration_s: 0.0,
                ..report
            }));
        self.drawn.extend(plan.strokes);
        self.dips += plan.report.dips;
        self.refusals
            .extend(refusals.into_iter().map(|refusal| super::PlanRefusal {
                stroke: refusal.stroke.map(all),
                ..refusal
            }));
        self.refused.extend(refused);
        self.given += given.len();
    }

    fn plan(self, scene: &Scene) -> PartialPlan {
        let trajectory = Trajectory {
            period: PERIOD,
            samples: self.samples,
            spans: self.spans,
        };
        let hover_from = self.hover_from.unwrap_or(trajectory.samples.len());
        let drawn = (self.reports, self.drawn);
        let plan: Plan = plan_report::plan(scene, trajectory, hover_from, drawn, self.dips);
        PartialPlan {
            plan,
            refusals: self.refusals,
            refused: self.refused,
        }
    }
}
