//! A plan in numbers, and the hash that distinguishes plans.

use serde::Serialize;

use super::error::PlanError;
use super::pen_up::pen_up_time;
use super::tool_ik::{margin_rad, tip_of};
use super::trajectory::{SpanKind, Trajectory};
use super::trajectory_builder::TrajectoryBuilder;
use super::{PERIOD_S, Plan, compensation};
use base::units::JointVector;
use scene::{Scene, SheetStroke};

/// A plan in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanReport {
    /// Number of strokes drawn.
    pub stroke_count: usize,
    /// Length of line drawn.
    pub pen_down_mm: f64,
    /// Distance that the tip travels otherwise, without the approach.
    pub pen_up_mm: f64,
    /// Time of that travel, with dips.
    pub pen_up_s: f64,
    /// A time that no plan of the same lines in the same order can beat under the same limits.
    pub pen_up_bound_s: f64,
    /// Number of dips.
    pub dips: usize,
    /// From the first sample to the last.
    pub duration_s: f64,
    /// Duration of the approach.
    pub approach_s: f64,
    /// Largest lean of the tool while it draws.
    pub tilt_max_deg: f64,
    /// The largest ratio of lengths on the surface and on the page; 1 where nothing is stretched.
    pub stretch_max: f64,
    /// Fraction of the drawn length at the requested speed (within 5 %), 0 to 1.
    pub at_speed_share: f64,
    /// The joint that comes nearest to its speed or acceleration while drawing.
    pub limiting_joint: String,
    /// Its ratio to the speed or acceleration that motions are planned with: 1 is all of it.
    pub limiting_ratio: f64,
    /// The smallest distance to a joint's limit, without the approach and poses such as that for a pen's change.
    pub margin_least_deg: f64,
    /// The joint with that distance.
    pub margin_least_joint: String,
    /// Largest expected distance of the tip from its line, from play that is crossed while it
    /// draws; absent if the arm's play and sag were not calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_deviation_mm: Option<f64>,
    /// The strokes in drawing order.
    pub strokes: Vec<StrokeReport>,
}

impl PlanReport {
    /// Returns the effect of the surface on the design, in words.
    #[must_use]
    pub fn stretch_text(&self) -> String {
        let percent = (self.stretch_max - 1.0) * 1e2;
        if percent < 0.05 {
            "nothing is stretched on the surface".to_owned()
        } else {
            format!("lines are stretched by at most {percent:.1} % on the surface")
        }
    }

    /// Names the joint that comes to the end of its range, where the tip slows down, and what helps;
    /// `None` if none does.
    #[must_use]
    pub fn limit_note(&self) -> Option<String> {
        let joint = Some(&self.margin_least_joint).filter(|joint| !joint.is_empty())?;
        (self.margin_least_deg < AT_LIMIT_DEG).then(|| {
            format!(
                "{joint} reaches its speed limit, so the tip slows down: move or turn the sheet, or tilt the pen differently in its holder"
            )
        })
    }

    /// Returns what takes the most time; `None` for a plan without lines.
    #[must_use]
    pub fn slowest_part(&self) -> Option<SlowestPart> {
        if self.stroke_count == 0 {
            return None;
        }
        Some(if 2.0 * self.pen_up_s > self.duration_s - self.approach_s {
            SlowestPart::PenUp
        } else if self.at_speed_share >= MOSTLY_AT_SPEED {
            SlowestPart::DrawingSpeed
        } else if self.limiting_ratio >= AT_FULL_RATIO {
            SlowestPart::Joint(self.limiting_joint.clone())
        } else {
            SlowestPart::Corners
        })
    }

    /// Returns the number of strokes, in words.
    #[must_use]
    pub fn strokes_text(&self) -> String {
        base::wording::count(self.stroke_count, "stroke")
    }
}

/// The part of a plan that takes the most time. Its words say what would make the plan faster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlowestPart {
    /// The way with the pen up.
    #[error(
        "the pen is up most of the time: fewer, longer strokes are faster (`join_mm` or --merge)"
    )]
    PenUp,
    /// The speed that the scene asks for.
    #[error(
        "most of the line is drawn at the requested speed: a higher `draw_mm_s`, in `[limits]` or for the pen, is faster"
    )]
    DrawingSpeed,
    /// The named joint, which does all that it can.
    #[error(
        "{0} is at its limit while it draws: a different place of the sheet may be faster (`steadyhand scene reach`)"
    )]
    Joint(String),
    /// The acceleration in corners and short lines.
    #[error("corners and short lines slow the pen: a higher `draw_mm_s2` in `[limits]` is faster")]
    Corners,
}

/// A stroke of a plan in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StrokeReport {
    /// Index among the given strokes; the first of them if several were joined.
    pub stroke: usize,
    /// Indices of all strokes that it was joined from.
    pub parts: Vec<usize>,
    /// Place in the author's file.
    pub source: String,
    /// Index of the pen.
    pub pen: usize,
    /// `true` if it is drawn from its end.
    pub reversed: bool,
    /// Its length.
    pub length_mm: f64,
    /// Start of its line, from the trajectory's first sample.
    pub begins_s: f64,
    /// Duration of its line.
    pub duration_s: f64,
    /// Largest lean of the tool.
    pub tilt_max_deg: f64,
    /// The largest ratio of lengths on the surface and on the page.
    pub stretch_max: f64,
}

/// Speeds down to this fraction of the requested one count as the requested speed.
const AT_SPEED: f64 = 0.95;

/// From this share of the line on, a higher speed saves more time than a higher acceleration.
const MOSTLY_AT_SPEED: f64 = 0.5;

/// A joint with this much of its speed or acceleration has no more.
const AT_FULL_RATIO: f64 = 0.98;

/// A joint this near to the end of its range is at it.
const AT_LIMIT_DEG: f64 = 0.01;

/// Finishes the plan of a motion that leaves no ink.
pub(super) fn without_ink(builder: TrajectoryBuilder<'_>) -> Result<Plan, PlanError> {
    let scene = builder.scene;
    let (trajectory, hover_from) = builder.finish()?;
    Ok(plan(scene, trajectory, hover_from, <_>::default(), 0))
}

/// Assembles a plan with its report and hash.
pub(super) fn plan(
    scene: &Scene,
    trajectory: Trajectory,
    hover_from: usize,
    (strokes, drawn): (Vec<StrokeReport>, Vec<SheetStroke>),
    dips: usize,
) -> Plan {
    let tilts_deg = strokes.iter().map(|stroke| stroke.tilt_max_deg);
    let stretches = strokes.iter().map(|stroke| stroke.stretch_max);
    let mut report = PlanReport {
        stroke_count: strokes.len(),
        // A sum of nothing is -0.
        pen_down_mm: strokes.iter().map(|stroke| stroke.length_mm).sum::<f64>() + 0.0,
        dips,
        duration_s: trajectory.duration().as_secs_f64(),
        tilt_max_deg: tilts_deg.fold(0.0, f64::max),
        stretch_max: stretches.fold(1.0, f64::max),
        strokes,
        expected_deviation_mm: compensation::expected_deviation_mm(scene, &trajectory),
        ..PlanReport::default()
    };
    add_times(&mut report, &trajectory);
    if report.stroke_count > 0 {
        let pen_up = pen_up_time(scene, &trajectory);
        (report.pen_up_s, report.pen_up_bound_s) = (pen_up.spent_s, pen_up.bound_s);
    }
    add_tip_lengths(&mut report, scene, &trajectory);
    add_joint_margins(&mut report, scene, &trajectory, hover_from);
    let hash = hash(scene, &trajectory, hover_from);
    Plan {
        trajectory,
        strokes: drawn,
        report,
        hash,
    }
}

fn add_times(report: &mut PlanReport, trajectory: &Trajectory) {
    for span in &trajectory.spans {
        let samples = (span.end - span.first) as f64;
        match (span.kind, span.item) {
            (SpanKind::Approach, _) => report.approach_s += samples * PERIOD_S,
            (SpanKind::Draw, Some(item)) => {
                if let Some(stroke) = report.strokes.get_mut(item) {
                    stroke.begins_s = span.first as f64 * PERIOD_S;
                    stroke.duration_s += samples * PERIOD_S;
                }
            }
            _ => {}
        }
    }
}

/// Adds the lengths that the tip travels, and the fraction drawn at the requested speed.
fn add_tip_lengths(report: &mut PlanReport, scene: &Scene, trajectory: &Trajectory) {
    let (mut drawn_mm, mut at_speed_mm) = (0.0, 0.0);
    for span in &trajectory.spans {
        // Only a plan that stands still lacks a pen: every motion was planned for a pen of the
        // scene.
        let Some(pen) = scene.pens.get(span.pen) else {
            continue;
        };
        let (chain, tip) = (&scene.arm.chain, tip_of(pen));
        let samples = trajectory.between(span.first.saturating_sub(1), span.end);
        let points: Vec<_> = samples.iter().map(|q| chain.tip(q, &tip).0).collect();
        for (from, to) in points.iter().zip(points.iter().skip(1)) {
            let step_mm = (to - from).norm() * 1e3;
            match span.kind {
                SpanKind::Draw => {
                    drawn_mm += step_mm;
                    if step_mm >= AT_SPEED * scene.draw_mm_s(pen) * PERIOD_S {
                        at_speed_mm += step_mm;
                    }
                }
                SpanKind::Approach => {}
                _ => report.pen_up_mm += step_mm,
            }
        }
    }
    if drawn_mm > 0.0 {
        report.at_speed_share = at_speed_mm / drawn_mm;
    }
}

/// Reports which joint limits the drawing, and how near the joints come to the ends of their ranges.
fn add_joint_margins(
    report: &mut PlanReport,
    scene: &Scene,
    trajectory: &Trajectory,
    hover_from: usize,
) {
    let mut smallest = (f64::INFINITY, 0);
    let near_sheet =
        |span: &&super::TrajectorySpan| span.kind != SpanKind::Pose && span.end >= hover_from;
    for span in trajectory.spans.iter().filter(near_sheet) {
        let first = span.first.max(hover_from.saturating_sub(1));
        let samples = trajectory.samples.get(first..span.end);
        for q in samples.unwrap_or_default() {
            let margin = margin_rad(&scene.arm, q);
            if margin.0 < smallest.0 {
                smallest = margin;
            }
        }
    }
    if smallest.0.is_finite() {
        report.margin_least_deg = smallest.0.to_degrees();
        report.margin_least_joint = scene.arm.joint_name(smallest.1);
    }
    let mut largest = (0.0, 0);
    for span in &trajectory.spans {
        if span.kind == SpanKind::Draw {
            let windows = trajectory.goals_of(span).windows(3);
            largest = windows.fold(largest, |largest, window| {
                nearest_limit(scene, window, largest)
            });
        }
    }
    if largest.0 > 0.0 {
        report.limiting_ratio = largest.0;
        report.limiting_joint = scene.arm.joint_name(largest.1);
    }
}

fn nearest_limit(scene: &Scene, window: &[JointVector], mut largest: (f64, usize)) -> (f64, usize) {
    let [a, b, c] = window else {
        return largest;
    };
    let limits = &scene.arm.limits;
    let speed = b.zip(c, |b, c| (c - b) / PERIOD_S);
    let before = a.zip(b, |a, b| (b - a) / PERIOD_S);
    let change = before.zip(&speed, |before, now| (now - before) / PERIOD_S);
    let speed_ratios = speed.zip(&limits.cruise_rad_s(), |v, limit| v.abs() / limit);
    let acceleration_ratios = change.zip(&limits.acceleration_rad_s2, |a, limit| a.abs() / limit);
    let ratios = speed_ratios.zip(&acceleration_ratios, f64::max);
    for (joint, ratio) in ratios.iter().enumerate() {
        if *ratio > largest.0 {
            largest = (*ratio, joint);
        }
    }
    largest
}

/// Hashes the scene's revision and everything from the first hover pose on, in hexadecimal.
fn hash(scene: &Scene, trajectory: &Trajectory, hover_from: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(scene.revision.as_bytes());
    // The revision of a canvas does not cover what a caller draws on it.
    if let Some(design) = scene.canvas.as_ref().and_then(|canvas| canvas.design_hash) {
        hasher.update(&design);
    }
    let from = hover_from.saturating_sub(1);
    // The goals follow from these, from what the revision covers, and from the approach.
    let reached = trajectory.reached().iter();
    for value in reached.skip(from).flat_map(|q| q.iter()) {
        hasher.update(&value.to_le_bytes());
    }
    for span in trajectory.spans.iter().filter(|span| span.end > hover_from) {
        let relative = |index: usize| index.saturating_sub(from).to_le_bytes();
        hasher.update(format!("{:?} {:?} {}", span.kind, span.item, span.pen).as_bytes());
        hasher.update(&relative(span.first));
        hasher.update(&relative(span.end));
    }
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(HASH_DIGITS);
    hex
}

pub(super) const HASH_DIGITS: usize = 32;
