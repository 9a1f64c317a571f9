//! Result of an alignment, in three parts: the measurements, their verdict, the next step.

use std::fmt::Write as _;

use nalgebra::Vector3;
use scene::Scene;
use serde::Serialize;

use super::report::{self, ResidualArrow};
use super::{AcceptanceLimits, FitFinding, judge_tracking};

/// One point that was visited or touched; places in the arm's base frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AlignedPoint {
    /// Name of the point.
    pub name: String,
    /// Commanded place of the tip.
    pub target_mm: [f64; 3],
    /// Measured place of the tip.
    pub measured_mm: [f64; 3],
    /// From the one to the other; of a touch, in the plane of the sheet alone.
    pub tracking_error_mm: f64,
    /// Height over the believed sheet at which the tip touched; `None` without contact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_height_mm: Option<f64>,
    /// Spread of this point's touches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_mm: Option<f64>,
    /// From what all points together say to this one.
    pub residual_mm: [f64; 3],
}

impl AlignedPoint {
    /// Returns the point's distance from the fit of all points.
    #[must_use]
    pub fn off_mm(&self) -> f64 {
        let [x, y, z] = self.residual_mm;
        x.hypot(y).hypot(z)
    }
}

/// An alignment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AlignmentResult {
    /// The scene's title.
    pub scene: String,
    /// Its revision.
    pub revision: String,
    /// Measured points.
    pub points: Vec<AlignedPoint>,
    /// Verdict on the measurements.
    #[serde(flatten)]
    pub finding: FitFinding,
    /// Next step for a person.
    pub next: String,
}

impl AlignmentResult {
    /// Returns what was found without points of its own.
    #[must_use]
    pub fn without_points(scene: &Scene, finding: FitFinding, next: String) -> Self {
        Self {
            scene: scene.title(),
            revision: scene.revision.to_string(),
            points: Vec::new(),
            finding,
            next,
        }
    }

    /// Points that were visited and not touched. All of them being off by the same is one cause:
    /// each one's residual is what is left of its error without their mean.
    #[must_use]
    pub fn visited(scene: &Scene, points: Vec<AlignedPoint>, accept: &AcceptanceLimits) -> Self {
        let tracked = points
            .iter()
            .map(|p| (p.name.as_str(), p.tracking_error_mm));
        let finding = judge_tracking(tracked, accept);
        let next = match finding.reasons.first() {
            None => "stroke draws the design",
            Some(_) if finding.verdict < super::FitVerdict::Redo => {
                "stroke draws the design, no better than this; `steadyhand doctor` looks at the servos"
            }
            Some(_) => {
                "ask the operator: `steadyhand doctor` looks at the servos, then align again"
            }
        };
        Self {
            points: without_mean(points),
            ..Self::without_points(scene, finding, next.to_owned())
        }
    }

    /// For a terminal, and for a model: the three parts, one after the other.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!(
            "measured: scene {} (revision {}), tip places in the arm's base frame, mm\n{:<13}{:>25}{:>25}{:>8}{:>9}{:>8}{:>10}\n",
            self.scene,
            self.revision,
            "point",
            "target x y z",
            "measured x y z",
            "error",
            "contact",
            "spread",
            "residual"
        );
        for point in &self.points {
            let place = |[x, y, z]: [f64; 3]| format!("{x:8.2} {y:8.2} {z:7.2}");
            let some = |value: Option<f64>| value.map_or("-".to_owned(), |mm| format!("{mm:.2}"));
            let _ = writeln!(
                text,
                "{:<13}{:>25}{:>25}{:>8.2}{:>9}{:>8}{:>10.2}",
                point.name,
                place(point.target_mm),
                place(point.measured_mm),
                point.tracking_error_mm,
                some(point.contact_height_mm),
                some(point.spread_mm),
                point.off_mm()
            );
        }
        let _ = write!(text, "{}next: {}", self.finding.lines(), self.next);
        text
    }

    /// One file, without anything from elsewhere.
    #[must_use]
    pub fn html(&self) -> String {
        let arrows: Vec<ResidualArrow> = self
            .points
            .iter()
            .map(|point| (point.measured_mm, point.residual_mm))
            .collect();
        let title = format!("align {}", self.scene);
        let (verdict, style) = (self.finding.verdict, "pre{overflow:auto}");
        report::page(&title, verdict, style, &arrows, "", &self.describe())
    }
}

fn without_mean(mut points: Vec<AlignedPoint>) -> Vec<AlignedPoint> {
    let count = points.len().max(1) as f64;
    let error =
        |point: &AlignedPoint| Vector3::from(point.measured_mm) - Vector3::from(point.target_mm);
    let mean = points.iter().map(error).sum::<Vector3<f64>>() / count;
    for point in &mut points {
        let left = error(point) - mean;
        point.residual_mm = left.map(|mm| (mm * 1e3).round() / 1e3).into();
    }
    points
}
