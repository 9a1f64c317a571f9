//! A plan in numbers, and the hash that tells two plans apart.

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
    /// Line drawn.
    pub pen_down_mm: f64,
    /// The tip's way otherwise, the approach not counted.
    pub pen_up_mm: f64,
    /// The time of that way, dips and all.
    pub pen_up_s: f64,
    /// A time that no plan of the same lines in the same order can beat under the same limits.
    pub pen_up_bound_s: f64,
    /// Number of dips.
    pub dips: usize,
    /// From the first sample to the last.
    pub duration_s: f64,
    /// Of it, the approach.
    pub approach_s: f64,
    /// The most that the tool leans while it draws.
    pub tilt_max_deg: f64,
    /// The largest ratio of lengths on the surface and on the page; 1 where nothing is stretched.
    pub stretch_max: f64,
    /// The share of the drawn length at the asked speed (to 5 %), 0 to 1.
    pub at_speed_share: f64,
    /// The joint that comes nearest to its speed or acceleration while drawing.
    pub limiting_joint: String,
    /// Its ratio to the limit: 1 is at the limit.
    pub limiting_ratio: f64,
    /// The smallest distance to a joint's limit, the approach not counted.
    pub margin_least_deg: f64,
    /// The joint with that distance.
    pub margin_least_joint: String,
    /// The largest distance at which the tip is expected from its line, of play that is crossed while it draws; absent where the
    /// arm's play and sag were not calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_deviation_mm: Option<f64>,
    /// In drawing order.
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
            format!("lines are stretched by {percent:.1} % on the surface, at the most")
        }
    }

    /// Returns the number of strokes, in words.
    #[must_use]
    pub fn strokes_text(&self) -> String {
        base::wording::count(self.stroke_count, "stroke")
    }
}

/// A stroke of a plan in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StrokeReport {
    /// Index among the strokes as they were given; of several, the first.
    pub stroke: usize,
    /// All that it was joined from.
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
    /// The most that the tool leans.
    pub tilt_max_deg: f64,
    /// The largest ratio of lengths on the surface and on the page.
    pub stretch_max: f64,
}

/// Speeds down to this share of the asked one count as asked.
const AT_SPEED: f64 = 0.95;

/// The plan of a motion that leaves no ink.
pub(super) fn without_ink(build: TrajectoryBuilder<'_>) -> Result<Plan, PlanError> {
    let scene = build.scene;
    let (trajectory, hover_from) = build.finish()?;
    Ok(plan(scene, trajectory, hover_from, <_>::default(), 0))
}

/// Puts a plan together.
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
    times(&mut report, &trajectory);
    if report.stroke_count > 0 {
        let pen_up = pen_up_time(scene, &trajectory);
        (report.pen_up_s, report.pen_up_bound_s) = (pen_up.spent_s, pen_up.bound_s);
    }
    tips(&mut report, scene, &trajectory);
    joints(&mut report, scene, &trajectory, hover_from);
    let hash = hash(scene, &trajectory, hover_from);
    Plan {
        trajectory,
        strokes: drawn,
        report,
        hash,
    }
}

fn times(report: &mut PlanReport, trajectory: &Trajectory) {
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

/// Lengths of the tip's ways, and the share of drawing at the asked speed.
fn tips(report: &mut PlanReport, scene: &Scene, trajectory: &Trajectory) {
    let (mut drawn_mm, mut at_speed_mm) = (0.0, 0.0);
    for span in &trajectory.spans {
        // Only what stands still is without one: what moves was planned for a pen of the scene.
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
fn joints(report: &mut PlanReport, scene: &Scene, trajectory: &Trajectory, hover_from: usize) {
    let mut least = (f64::INFINITY, 0);
    for q in trajectory.samples.iter().skip(hover_from.saturating_sub(1)) {
        let margin = margin_rad(&scene.arm, q);
        if margin.0 < least.0 {
            least = margin;
        }
    }
    if least.0.is_finite() {
        report.margin_least_deg = least.0.to_degrees();
        report.margin_least_joint = scene.arm.joint_name(least.1);
    }
    let mut most = (0.0, 0);
    for span in &trajectory.spans {
        if span.kind == SpanKind::Draw {
            let threes = trajectory.goals_of(span).windows(3);
            most = threes.fold(most, |most, three| nearest_limit(scene, three, most));
        }
    }
    if most.0 > 0.0 {
        report.limiting_ratio = most.0;
        report.limiting_joint = scene.arm.joint_name(most.1);
    }
}

fn nearest_limit(scene: &Scene, three: &[JointVector], mut most: (f64, usize)) -> (f64, usize) {
    let [a, b, c] = three else {
        return most;
    };
    let limits = &scene.arm.limits;
    let speed = b.zip(c, |b, c| (c - b) / PERIOD_S);
    let before = a.zip(b, |a, b| (b - a) / PERIOD_S);
    let change = before.zip(&speed, |before, now| (now - before) / PERIOD_S);
    let of_speed = speed.zip(&limits.velocity_rad_s, |v, limit| v.abs() / limit);
    let of_change = change.zip(&limits.acceleration_rad_s2, |a, limit| a.abs() / limit);
    let ratios = of_speed.zip(&of_change, f64::max);
    for (joint, ratio) in ratios.iter().enumerate() {
        if *ratio > most.0 {
            most = (*ratio, joint);
        }
    }
    most
}

/// Over the scene's revision and all from the first hover pose on, in hexadecimal.
fn hash(scene: &Scene, trajectory: &Trajectory, hover_from: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(scene.revision.as_bytes());
    // The revision of a canvas does not cover what a caller draws on it.
    if let Some(design) = scene.canvas.as_ref().and_then(|canvas| canvas.design_hash) {
        hasher.update(&design);
    }
    let from = hover_from.saturating_sub(1);
    // The goals follow from these and from what the revision covers, and from the way to the first hover pose.
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

const HASH_DIGITS: usize = 32;
