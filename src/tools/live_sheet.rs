//! The sheet before an arm: its design, the planned strokes and how much of them is drawn. It is sent when it changes, not with
//! every reading.

use std::sync::Arc;

use job::PastJob;
use nalgebra::Point3;
use plan::{PERIOD, SpanKind};
use scene::{Scene, SheetStroke};
use serde::Serialize;

use super::{AttachedArm, LiveJob, Node};
use base::lock::MutexExt;
use base::units::JointVector;

/// Largest number of points of a design that are sent; of a larger design, every n-th point is.
const POINTS_MAX: usize = 20_000;

/// Distance along a stroke, ahead of the last position, within which the tip is searched.
const AHEAD_MM: f64 = 25.0;

/// Identifies a sheet, to tell whether it was sent already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SheetKey {
    revision: String,
    job: String,
    phase: SheetPhase,
    /// Number of the first job on the sheet.
    from: u64,
}

/// Knowledge of a job's strokes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SheetPhase {
    #[default]
    NoJob,
    Unplanned,
    /// Its plan waits for a person.
    Waiting,
    Planned,
    Over,
}

impl SheetKey {
    /// Returns the key of what lies before an arm, with the strokes of a job.
    #[must_use]
    pub fn of(seat: &AttachedArm, job: Option<&LiveJob>) -> Self {
        let scene = seat.last_scene();
        let phase = match job {
            None => SheetPhase::NoJob,
            Some(job) if job.is_over => SheetPhase::Over,
            Some(job) if job.awaits_approval => SheetPhase::Waiting,
            Some(job) if matches!(job.state, "moving" | "held") => SheetPhase::Planned,
            Some(_) => SheetPhase::Unplanned,
        };
        Self {
            revision: scene.map(|scene| scene.revision.hex()).unwrap_or_default(),
            job: job.map(|job| job.id.clone()).unwrap_or_default(),
            phase,
            from: *seat.sheet_from.locked(),
        }
    }

    /// Returns whether a job's ink is on the sheet: it drew since a new one was laid.
    fn is_on_sheet(&self, past: &PastJob) -> bool {
        job::job_number(&past.id).is_some_and(|number| number >= self.from)
    }

    /// Returns it as a text that a reader of the sheet can send back.
    #[must_use]
    pub(super) fn text(&self) -> String {
        format!(
            "{} {} {:?} {}",
            self.revision, self.job, self.phase, self.from
        )
    }
}

/// Place of the pen's tip.
#[derive(Debug, Serialize)]
pub struct LiveTip {
    sheet_mm: [f64; 2],
    pub(super) height_mm: f64,
}

impl LiveTip {
    /// Returns where the first pen's tip is over a scene's sheet.
    #[must_use]
    pub fn of(scene: &Scene, q_rad: &JointVector) -> Option<Self> {
        let (at_mm, height_mm) = tip_on_sheet(scene, q_rad)?;
        Some(Self {
            sheet_mm: at_mm.map(to_hundredths),
            height_mm: to_hundredths(height_mm),
        })
    }
}

/// A sheet as it is sent to pages and views.
#[derive(Debug, Serialize)]
pub struct SheetMessage {
    arm: String,
    scene: String,
    job: String,
    size_mm: [f64; 2],
    is_flat: bool,
    /// The sheet's corners in the base's frame.
    corners_mm: [[f64; 3]; 4],
    pens: Vec<SheetPen>,
    design: Vec<SheetLine>,
    /// Planned lines in drawing order; empty before there is a plan.
    plan: Vec<SheetLine>,
    /// Lines on this sheet that the jobs have drawn with which this one goes on.
    earlier: Vec<SheetLine>,
    /// Footprints of the boxes that must stay empty, where the sheet is flat.
    keep_outs: Vec<SheetKeepOut>,
}

#[derive(Debug, Serialize)]
struct SheetKeepOut {
    name: String,
    /// Corners in turn, in the order x, y, x, y.
    xy_mm: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct SheetPen {
    name: String,
    colour: String,
    width_mm: f64,
}

#[derive(Debug, Serialize)]
struct SheetLine {
    pen: usize,
    /// Coordinates in the order x, y, x, y.
    xy_mm: Vec<f64>,
}

/// A sheet, with the data to tell how much of it is drawn.
#[derive(Debug, Default)]
pub struct LiveSheet {
    /// What it is.
    pub key: SheetKey,
    /// What is sent of it; `None` if no scene is for the arm.
    pub message: Option<SheetMessage>,
    plan: Vec<LiveStroke>,
    ink: InkFollower,
    /// Sample of the motion at which the tip was looked at last.
    sample: usize,
}

/// A planned stroke, and the length of all strokes before it.
#[derive(Debug)]
struct LiveStroke {
    stroke: SheetStroke,
    before_mm: f64,
}

/// Follows the tip along the planned strokes by its measured positions.
#[derive(Clone, Copy, Debug, Default)]
struct InkFollower {
    /// Stroke that is being drawn, and the distance along it.
    stroke: usize,
    along_mm: f64,
    /// Total length drawn so far; it never decreases.
    mm: f64,
}

impl LiveSheet {
    /// Reads a sheet. Reads a journal and, if the arm has not moved yet, a scene, so call it on a blocking thread.
    #[must_use]
    pub fn read(node: &Node, seat: &AttachedArm, key: SheetKey) -> Self {
        let pending = node.pending().into_iter();
        let pending = pending.filter(|_| key.phase == SheetPhase::Waiting);
        let pending = pending.into_iter().find(|pending| pending.job == key.job);
        let scene = pending.as_ref().map(|pending| Arc::clone(&pending.scene));
        let scene = scene.or_else(|| seat.last_scene());
        let scene = scene.or_else(|| first_scene(node, seat));
        let past = match key.phase {
            SheetPhase::NoJob | SheetPhase::Unplanned | SheetPhase::Waiting => None,
            SheetPhase::Planned | SheetPhase::Over => job::past(&node.state, &key.job).ok(),
        };
        let past = past.filter(|past| past.tool == "stroke" && key.is_on_sheet(past));
        let canvas = scene.as_ref().filter(|scene| scene.canvas.is_some());
        let earlier = match (canvas, &past) {
            (Some(scene), _) => ink_on_canvas(node, seat, (scene, &key.job)),
            (None, Some(past)) => earlier_ink(node, past),
            (None, None) => ink_on_sheet(node, seat, &key),
        };
        let past = past.unwrap_or_default();
        let planned = pending.as_ref().map(|pending| &*pending.strokes);
        let planned = planned.unwrap_or(&past.strokes);
        let pen = |pen: &scene::ScenePen| SheetPen {
            name: pen.name.clone(),
            colour: pen.colour_text(),
            width_mm: pen.width_mm,
        };
        let message = scene.map(|scene| SheetMessage {
            arm: seat.name.clone(),
            scene: scene.title(),
            job: key.job.clone(),
            size_mm: scene.surface.size_mm(),
            is_flat: scene.surface.is_flat(),
            corners_mm: corners_mm(&scene),
            pens: scene.pens.iter().map(pen).collect(),
            // A canvas has none of its own.
            design: match scene.canvas {
                Some(_) => Vec::new(),
                None => lines(&scene.strokes),
            },
            plan: lines(planned),
            earlier: lines(&earlier),
            keep_outs: keep_outs(&scene),
        });
        let ink = InkFollower {
            mm: past.drawn.mm,
            ..InkFollower::default()
        };
        Self {
            key,
            message,
            plan: with_length_before(past.strokes),
            ink,
            sample: 0,
        }
    }

    /// Returns the length drawn so far, in millimetres of the planned strokes.
    pub fn ink_mm(&mut self, seat: &AttachedArm) -> f64 {
        let snapshot = seat.motion.snapshot();
        let seen = snapshot.measured.zip(seat.last_scene());
        if let Some(progress) = snapshot.progress
            && let Some(item) = progress.item
            && let Some((measured, scene)) = seen
            && let Some((tip_mm, _)) = tip_on_sheet(&scene, &measured.position_rad)
        {
            let samples = progress.sample.saturating_sub(self.sample);
            self.sample = progress.sample;
            let fastest_mm_s = scene.pens.iter().map(|pen| scene.draw_mm_s(pen));
            let drawn_mm = fastest_mm_s.fold(0.0, f64::max) * samples as f64 * PERIOD.as_secs_f64();
            let ahead_mm = AHEAD_MM.max(drawn_mm);
            let at = (item, progress.doing, tip_mm);
            self.ink.advance(&self.plan, at, ahead_mm);
        }
        to_hundredths(self.ink.mm)
    }
}

impl InkFollower {
    /// Follows the tip to where it is: the stroke, what it does, and its place.
    fn advance(
        &mut self,
        plan: &[LiveStroke],
        (item, doing, tip_mm): (usize, SpanKind, [f64; 2]),
        ahead_mm: f64,
    ) {
        let Some(LiveStroke { stroke, before_mm }) = plan.get(item) else {
            return;
        };
        if item != self.stroke {
            (self.stroke, self.along_mm) = (item, 0.0);
        }
        match doing {
            SpanKind::Draw => {
                let range_mm = [self.along_mm, self.along_mm + ahead_mm];
                self.along_mm = nearest_within_mm(stroke, range_mm, tip_mm);
            }
            SpanKind::Lift => self.along_mm = stroke.length_mm(),
            _ => {}
        }
        self.mm = self.mm.max(before_mm + self.along_mm);
    }
}

/// Largest number of jobs that one drawing took.
const JOBS_MAX: usize = 50;

/// Returns what the last drawing has left on the sheet that lies before an arm.
fn ink_on_sheet(node: &Node, seat: &AttachedArm, key: &SheetKey) -> Vec<SheetStroke> {
    let last = node.job_store.last_drawn(seat.key());
    let sheet = seat.sheet_scene();
    let is_on_it = |past: &PastJob| {
        let sheet = sheet.as_ref();
        sheet.is_some_and(|scene| scene.revision.hex() == past.revision) && key.is_on_sheet(past)
    };
    let Some(last) = last.filter(is_on_it) else {
        return Vec::new();
    };
    let mut strokes = first_part(&last.strokes, last.drawn.mm);
    strokes.extend(earlier_ink(node, &last));
    strokes
}

/// Returns what all drawings have left on a canvas, without that of a job that is shown with its plan.
fn ink_on_canvas(
    node: &Node,
    seat: &AttachedArm,
    (scene, shown): (&Scene, &str),
) -> Vec<SheetStroke> {
    let drawings = node.drawings_on_sheet(seat, scene);
    let others = drawings.iter().filter(|past| past.id != shown);
    let drawn = others.filter_map(|past| node.drawn_strokes(past));
    drawn.flatten().collect()
}

/// Returns what the jobs have drawn that a job goes on with, the newest first.
fn earlier_ink(node: &Node, past: &PastJob) -> Vec<SheetStroke> {
    let mut strokes = Vec::new();
    let mut id = past.resumes.clone();
    for _ in 0..JOBS_MAX {
        if id.is_empty() {
            break;
        }
        let Ok(before) = job::past(&node.state, &id) else {
            break;
        };
        strokes.extend(first_part(&before.strokes, before.drawn.mm));
        id = before.resumes;
    }
    strokes
}

/// Returns the first `mm` of strokes.
pub fn first_part(strokes: &[SheetStroke], mut mm: f64) -> Vec<SheetStroke> {
    let mut drawn = Vec::new();
    for stroke in strokes {
        let length_mm = stroke.length_mm();
        if mm <= 0.0 {
            break;
        }
        drawn.push(match mm >= length_mm {
            true => stroke.clone(),
            false => beginning(stroke, mm),
        });
        mm -= length_mm;
    }
    drawn
}

/// Returns the first `mm` of a stroke.
fn beginning(stroke: &SheetStroke, mut mm: f64) -> SheetStroke {
    let mut points_mm: Vec<[f64; 2]> = stroke.points_mm.first().copied().into_iter().collect();
    for (a, b) in stroke.points_mm.iter().zip(stroke.points_mm.iter().skip(1)) {
        let [dx, dy] = [b[0] - a[0], b[1] - a[1]];
        let length_mm = dx.hypot(dy);
        if length_mm >= mm {
            let t = mm / length_mm.max(f64::MIN_POSITIVE);
            points_mm.push([a[0] + t * dx, a[1] + t * dy]);
            break;
        }
        points_mm.push(*b);
        mm -= length_mm;
    }
    SheetStroke {
        points_mm,
        ..stroke.clone()
    }
}

/// Returns the footprints on a flat sheet of the boxes that must stay empty.
fn keep_outs(scene: &Scene) -> Vec<SheetKeepOut> {
    let boxes = scene.keep_outs.iter().filter(|_| scene.surface.is_flat());
    let footprints = boxes.map(|keep_out| {
        let (min, max) = (keep_out.corners.min_m, keep_out.corners.max_m);
        let corners = [
            [min.x, min.y],
            [max.x, min.y],
            [max.x, max.y],
            [min.x, max.y],
        ];
        let on_sheet = |[x, y]: [f64; 2]| {
            let projected = scene.surface.project(&Point3::new(x, y, min.z));
            projected.at_mm.map(to_hundredths)
        };
        SheetKeepOut {
            name: keep_out.name.clone(),
            xy_mm: corners.into_iter().flat_map(on_sheet).collect(),
        }
    });
    footprints.collect()
}

fn with_length_before(strokes: Vec<SheetStroke>) -> Vec<LiveStroke> {
    let mut before_mm = 0.0;
    let planned = strokes.into_iter().map(|stroke| {
        let length_mm = stroke.length_mm();
        let planned = LiveStroke { stroke, before_mm };
        before_mm += length_mm;
        planned
    });
    planned.collect()
}

/// Returns the distance along a stroke of its point nearest to `tip_mm`, not before the range and not far beyond.
fn nearest_within_mm(stroke: &SheetStroke, [from_mm, to_mm]: [f64; 2], tip_mm: [f64; 2]) -> f64 {
    let (mut start_mm, mut best_mm, mut least_mm) = (0.0, from_mm, f64::INFINITY);
    for (a, b) in stroke.points_mm.iter().zip(stroke.points_mm.iter().skip(1)) {
        let [dx, dy] = [b[0] - a[0], b[1] - a[1]];
        let length_mm = dx.hypot(dy);
        let end_mm = start_mm + length_mm;
        if end_mm >= from_mm && start_mm <= to_mm && length_mm > 0.0 {
            let along_mm = ((tip_mm[0] - a[0]) * dx + (tip_mm[1] - a[1]) * dy) / length_mm;
            let along_mm = along_mm.clamp((from_mm - start_mm).clamp(0.0, length_mm), length_mm);
            let t = along_mm / length_mm;
            let offset = [a[0] + t * dx - tip_mm[0], a[1] + t * dy - tip_mm[1]];
            let offset_mm = offset[0].hypot(offset[1]);
            if offset_mm < least_mm {
                (least_mm, best_mm) = (offset_mm, start_mm + along_mm);
            }
        }
        start_mm = end_mm;
    }
    best_mm
}

/// Returns the scene that is shown before an arm has moved in one.
fn first_scene(node: &Node, seat: &AttachedArm) -> Option<Arc<Scene>> {
    let default = node.scenes.default_scene(&[&seat.motion.arm().file.name]);
    let names = default.into_iter().chain(node.scenes.scenes());
    let mut scenes = names.filter_map(|name| node.scene(seat, &name, None).ok());
    scenes.next()
}

/// Returns the place of the first pen's tip over a scene's sheet.
fn tip_on_sheet(scene: &Scene, q_rad: &JointVector) -> Option<([f64; 2], f64)> {
    let tip = scene.arm.chain.forward(q_rad) * scene.pens.first()?.tip_m;
    let projected = scene.surface.project(&tip);
    Some((projected.at_mm, projected.height_mm))
}

/// Returns a point of the base's frame in millimetres.
#[must_use]
pub fn point_mm(point: &Point3<f64>) -> [f64; 3] {
    [point.x, point.y, point.z].map(|metres| to_hundredths(metres * 1e3))
}

/// Rounds a value to the two decimals that are shown.
#[must_use]
pub fn to_hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn corners_mm(scene: &Scene) -> [[f64; 3]; 4] {
    let [width, height] = scene.surface.size_mm();
    let corners = [[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]];
    corners.map(|corner| point_mm(&scene.surface.at(corner).point_m))
}

fn lines(strokes: &[SheetStroke]) -> Vec<SheetLine> {
    let points: usize = strokes.iter().map(|stroke| stroke.points_mm.len()).sum();
    let every = points.div_ceil(POINTS_MAX).max(1);
    strokes
        .iter()
        .map(|stroke| sheet_line(stroke, every))
        .collect()
}

fn sheet_line(stroke: &SheetStroke, every: usize) -> SheetLine {
    let last = stroke.points_mm.len().saturating_sub(1);
    let is_kept = |at: usize| at.is_multiple_of(every) || at == last;
    let points = stroke.points_mm.iter().enumerate();
    let kept = points.filter(|(at, _)| is_kept(*at));
    SheetLine {
        pen: stroke.pen,
        xy_mm: kept
            .flat_map(|(_, point)| point.map(to_hundredths))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stroke(points_mm: &[[f64; 2]]) -> SheetStroke {
        SheetStroke {
            points_mm: points_mm.to_vec(),
            ..SheetStroke::default()
        }
    }

    #[test]
    fn ink_follows_the_tip_and_never_goes_back() {
        let plan = with_length_before(vec![
            stroke(&[[0.0, 0.0], [40.0, 0.0]]),
            stroke(&[[0.0, 10.0], [20.0, 10.0], [20.0, 30.0]]),
        ]);
        let mut ink = InkFollower::default();
        for (item, doing, tip_mm, expected_mm) in [
            (0, SpanKind::Lower, [0.0, 0.0], 0.0),
            (0, SpanKind::Draw, [10.0, 0.2], 10.0),
            (0, SpanKind::Draw, [8.0, 0.0], 10.0),
            (0, SpanKind::Draw, [30.0, -0.2], 30.0),
            (0, SpanKind::Lift, [40.0, 0.0], 40.0),
            (1, SpanKind::Travel, [20.0, 5.0], 40.0),
            (1, SpanKind::Draw, [15.0, 10.0], 55.0),
            (1, SpanKind::Draw, [20.0, 22.0], 72.0),
            (9, SpanKind::Draw, [0.0, 0.0], 72.0),
        ] {
            ink.advance(&plan, (item, doing, tip_mm), AHEAD_MM);
            assert!(
                (ink.mm - expected_mm).abs() < 1e-9,
                "{doing:?} {tip_mm:?}: {ink:?}"
            );
        }
    }

    #[test]
    fn the_first_part_of_strokes_ends_where_the_ink_did() {
        let strokes = [
            stroke(&[[0.0, 0.0], [10.0, 0.0]]),
            stroke(&[[0.0, 5.0], [4.0, 5.0], [20.0, 5.0]]),
        ];
        for (mm, expected) in [
            (0.0, 0.0),
            (7.0, 7.0),
            (10.0, 10.0),
            (16.0, 16.0),
            (99.0, 30.0),
        ] {
            let drawn = first_part(&strokes, mm);
            let sum: f64 = drawn.iter().map(SheetStroke::length_mm).sum();
            assert!((sum - expected).abs() < 1e-9, "{mm}: {sum}");
        }
    }

    #[test]
    fn a_closed_stroke_begins_at_its_beginning() {
        let square = stroke(&[
            [0.0, 0.0],
            [20.0, 0.0],
            [20.0, 20.0],
            [0.0, 20.0],
            [0.0, 0.0],
        ]);
        assert!(nearest_within_mm(&square, [0.0, AHEAD_MM], [0.1, 0.0]) < 1.0);
        assert!(nearest_within_mm(&square, [60.0, 85.0], [0.0, 1.0]) > 78.0);
    }

    #[test]
    fn a_large_design_is_thinned_and_keeps_its_ends() {
        let points: Vec<[f64; 2]> = (0..90_001).map(|at| [f64::from(at), 0.0]).collect();
        let sent = lines(&[stroke(&points)]);
        let xy = sent
            .first()
            .map(|line| line.xy_mm.clone())
            .unwrap_or_default();
        assert!(xy.len() <= 2 * POINTS_MAX + 2, "{}", xy.len());
        assert_eq!(
            xy.first().copied().zip(xy.get(xy.len() - 2).copied()),
            Some((0.0, 90_000.0))
        );
    }
}
