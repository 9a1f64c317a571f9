//! Result of an alignment, in three parts: the measurements, their verdict, the next step.

use std::fmt::Write as _;

use nalgebra::Vector3;
use scene::Scene;
use serde::Serialize;

use super::report::{self, ResidualArrow};
use super::{AcceptanceLimits, FitFinding, judge_tracking};

/// A point that was visited or touched; places are in the arm's base frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AlignedPoint {
    /// Name of the point.
    pub name: String,
    /// Commanded place of the tip.
    pub target_mm: [f64; 3],
    /// Measured place of the tip.
    pub measured_mm: [f64; 3],
    /// Distance between the two; for a touch, only within the plane of the sheet.
    pub tracking_error_mm: f64,
    /// Height over the sheet's assumed place at which the tip touched; `None` without contact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_height_mm: Option<f64>,
    /// Spread of this point's touches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_mm: Option<f64>,
    /// Vector from the fit of all points to this one.
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
    /// Creates a result without points.
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

    /// Creates the result of points that were visited but not touched. An error that they all share has one cause, so
    /// each residual is the point's error without the mean.
    #[must_use]
    pub fn visited(scene: &Scene, points: Vec<AlignedPoint>, limits: &AcceptanceLimits) -> Self {
        let errors = points
            .iter()
            .map(|p| (p.name.as_str(), p.tracking_error_mm));
        let finding = judge_tracking(errors, limits);
        let next = match finding.reasons.first() {
            None => "`stroke` draws the design",
            Some(_) if finding.verdict < super::FitVerdict::Redo => {
                "`stroke` draws the design with this accuracy; `steadyhand doctor` checks the servos"
            }
            Some(_) => "ask the operator to run `steadyhand doctor`, then call `align` again",
        };
        Self {
            points: without_mean(points),
            ..Self::without_points(scene, finding, next.to_owned())
        }
    }

    /// Describes the three parts, for a terminal and for a model.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!(
            "measured: scene {} (revision {}), tip positions in the arm's base frame, mm\n{:<13}{:>25}{:>25}{:>8}{:>9}{:>8}{:>10}\n",
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
            let or_dash =
                |value: Option<f64>| value.map_or("-".to_owned(), |mm| format!("{mm:.2}"));
            let _ = writeln!(
                text,
                "{:<13}{:>25}{:>25}{:>8.2}{:>9}{:>8}{:>10.2}",
                point.name,
                place(point.target_mm),
                place(point.measured_mm),
                point.tracking_error_mm,
                or_dash(point.contact_height_mm),
                or_dash(point.spread_mm),
                point.off_mm()
            );
        }
        let _ = write!(text, "{}next: {}", self.finding.lines(), self.next);
        text
    }

    /// Returns a self-contained HTML page.
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
        let residual = error(point) - mean;
        point.residual_mm = residual.map(|mm| (mm * 1e3).round() / 1e3).into();
    }
    points
}
