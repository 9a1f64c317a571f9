//! Poses of sheets and cameras from pictures of the sheet's tags.
//!
//! A camera measures across its line of sight ten times as well as along it, and a sheet stays on its table, so a
//! picture moves a sheet only within its plane. Height and tilt come from touches.

use nalgebra::{Isometry3, Point3, Vector3};

use super::FitFinding;
use super::assessment::{TouchAssessment, frame_values, named, vector};
use super::calibration_record::{
    CalibrationChange, CalibrationKind, CalibrationRecord, FileValues, TagObservation,
};
use scene::pose;

/// Largest residual of the tags' corners that is good.
const RMS_PX_GOOD: f64 = 0.6;

/// Largest standard deviation at which a picture may move a sheet.
const SIGMA_MM_MAX: f64 = 1.0;

/// Smallest number of tags: one alone hardly determines a sheet's orientation.
const TAGS_MIN: usize = 2;

/// Largest apparent offset of a sheet from its plane, and tilt: beyond them it was the camera that moved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OffPlaneLimits {
    /// Of any corner.
    pub(super) mm: f64,
    pub(super) deg: f64,
}

/// A frame in the arm's base frame: a corner and two directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ObservedFrame {
    pub(super) origin_m: Point3<f64>,
    pub(super) x: Vector3<f64>,
    pub(super) y: Vector3<f64>,
}

impl ObservedFrame {
    /// Creates a frame from directions of any length but zero.
    pub(super) fn new(origin_m: Point3<f64>, x: Vector3<f64>, y: Vector3<f64>) -> Self {
        Self {
            origin_m,
            x: x.try_normalize(1e-9).unwrap_or_else(Vector3::x),
            y: y.try_normalize(1e-9).unwrap_or_else(Vector3::y),
        }
    }

    fn from_observation(observation: &TagObservation) -> Self {
        Self::new(
            observation.origin_m.into(),
            observation.x_axis.into(),
            observation.y_axis.into(),
        )
    }

    fn from_values(values: &FileValues) -> Option<Self> {
        let (x, y) = (vector(values, "x_axis")?, vector(values, "y_axis")?);
        // Values that are not a frame were changed by hand.
        let is_frame = x.dot(&y).abs() < 1e-3
            && (x.norm() - 1.0).abs() < 1e-3
            && (y.norm() - 1.0).abs() < 1e-3;
        let origin_m = vector(values, "origin_m").filter(|_| is_frame)?;
        Some(Self::new(origin_m.into(), x, y))
    }

    pub(super) fn values(&self) -> FileValues {
        frame_values(&self.origin_m, &self.x, &self.y)
    }

    /// Returns the longest way from a corner of this sheet to the same of another, in mm, and the angle between them.
    fn way_to(&self, other: &Self, [width_mm, height_mm]: [f64; 2]) -> (f64, f64) {
        let corner = |of: &Self, [right, up]: [f64; 2]| {
            of.origin_m + of.x.scale(right * width_mm / 1e3) + of.y.scale(up * height_mm / 1e3)
        };
        let corners = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];
        let ways_m = corners.map(|at| (corner(other, at) - corner(self, at)).norm());
        let turn = self
            .isometry()
            .rotation
            .angle_to(&other.isometry().rotation);
        (
            ways_m.into_iter().fold(0.0, f64::max) * 1e3,
            turn.to_degrees(),
        )
    }

    fn isometry(&self) -> Isometry3<f64> {
        pose(&self.origin_m, &self.x, &self.x.cross(&self.y).normalize())
    }
}

/// The sheet where it is observed, in the plane in which it was taught. What is then left of its offset must be within what the
/// scene allows a sheet to have moved: a drawing is refused by the same.
pub(super) fn sheet(
    old: &ObservedFrame,
    observation: &TagObservation,
    [width_mm, height_mm]: [f64; 2],
    allowed: OffPlaneLimits,
) -> (ObservedFrame, FitFinding, Vec<(String, f64)>) {
    let observed = ObservedFrame::from_observation(observation);
    let normal = old.x.cross(&old.y).normalize();
    let centre = |frame: &ObservedFrame| {
        frame.origin_m + frame.x.scale(width_mm / 2e3) + frame.y.scale(height_mm / 2e3)
    };
    let off_m = (centre(&observed) - centre(old)).dot(&normal);
    let in_plane = |v: Vector3<f64>| v - normal.scale(v.dot(&normal));
    let x = in_plane(observed.x).try_normalize(1e-9).unwrap_or(old.x);
    let y = normal.cross(&x);
    let centre_m = centre(&observed) - normal.scale(off_m);
    let new = ObservedFrame {
        origin_m: centre_m - x.scale(width_mm / 2e3) - y.scale(height_mm / 2e3),
        x,
        y,
    };
    let lean_deg = observed.x.cross(&observed.y).angle(&normal).to_degrees();
    let (left_mm, left_deg) = new.way_to(&observed, [width_mm, height_mm]);
    let mut finding = judge(observation);
    finding.limit(left_mm <= allowed.mm && left_deg <= allowed.deg, || {
        format!(
            "the sheet seems {:+.1} mm off its plane and tilted by {lean_deg:.1}°, with its corners up to {left_mm:.1} mm off (at most {} mm and {}°). Next: `steadyhand calibrate camera` if the camera moved, otherwise `steadyhand calibrate touch sheet`",
            off_m * 1e3,
            allowed.mm,
            allowed.deg
        )
    });
    let mut figures = figures(observation);
    figures.extend(named([
        ("off_plane_mm", off_m * 1e3),
        ("lean_deg", lean_deg),
    ]));
    (new, finding, figures)
}

/// Assesses the pose of a camera. `last` is its previous calibration.
pub(super) fn camera(
    observation: &TagObservation,
    last: Option<&CalibrationRecord>,
) -> TouchAssessment {
    let new = ObservedFrame::from_observation(observation);
    let before = last.and_then(|record| ObservedFrame::from_values(&record.new));
    let change = before.map(|before| {
        let old_rotation = before.isometry().rotation;
        CalibrationChange {
            mm: (new.origin_m - before.origin_m).norm() * 1e3,
            deg: old_rotation.angle_to(&new.isometry().rotation).to_degrees(),
        }
    });
    TouchAssessment {
        finding: judge(observation),
        old: before.map_or_else(FileValues::new, |before| before.values()),
        new: new.values(),
        change: change.unwrap_or_default(),
        figures: figures(observation),
        points: Vec::new(),
    }
}

fn judge(observation: &TagObservation) -> FitFinding {
    let mut finding = FitFinding::good();
    let TagObservation {
        tags,
        rms_px,
        sigma_mm,
        ..
    } = *observation;
    finding.limit(tags >= TAGS_MIN, || {
        format!("only {tags} tag was seen (at least {TAGS_MIN}): uncover the others")
    });
    finding.limit(sigma_mm <= SIGMA_MM_MAX, || {
        format!(
            "the sheet's corners are uncertain by {sigma_mm:.2} mm (at most {SIGMA_MM_MAX} mm): uncover tags, bring the camera nearer, or print larger tags further apart"
        )
    });
    if rms_px > RMS_PX_GOOD {
        finding.usable(format!(
            "the tags' corners are {rms_px:.2} px off (at most {RMS_PX_GOOD} px): check `focal_px`, `distortion` and the tags' places"
        ));
    }
    finding
}

fn figures(observation: &TagObservation) -> Vec<(String, f64)> {
    named([
        ("tags", observation.tags as f64),
        ("rms_px", observation.rms_px),
        ("sigma_mm", observation.sigma_mm),
    ])
}

/// Returns the accepted pose of a camera in the arm's base frame.
#[must_use]
pub fn camera_pose(record: &CalibrationRecord) -> Option<Isometry3<f64>> {
    Some(ObservedFrame::from_values(&record.new)?.isometry())
}

/// Returns why a camera's pose is out of date: the sheet from which it was derived has been touched
/// since. A sheet that was moved by a camera itself does not count.
#[must_use]
pub fn is_out_of_date(history: &[CalibrationRecord], camera: &CalibrationRecord) -> Option<String> {
    let scene = &camera.session.scene;
    let newer = history.iter().find(|record| {
        let session = &record.session;
        record.number > camera.number
            && session.kind == CalibrationKind::Sheet
            && session.scene == *scene
            && session.seen.is_none()
    })?;
    Some(format!(
        "camera {} is out of date: calibration {} has moved the sheet of scene {scene} since. Next: `steadyhand calibrate camera --scene {scene}`",
        camera.session.name, newer.number
    ))
}

#[cfg(test)]
mod tests {
    use nalgebra::UnitQuaternion;

    use super::*;
    use crate::FitVerdict;

    fn observation(origin_m: [f64; 3], turn_deg: f64, lean_deg: f64) -> TagObservation {
        let rotation = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), turn_deg.to_radians());
        let lean = UnitQuaternion::from_axis_angle(&Vector3::x_axis(), lean_deg.to_radians());
        let axis = |v: Vector3<f64>| (rotation * lean * v).into();
        TagObservation {
            camera: "top".to_owned(),
            at_ms: 0,
            tags: 4,
            rms_px: 0.2,
            sigma_mm: 0.1,
            origin_m,
            x_axis: axis(Vector3::x()),
            y_axis: axis(Vector3::y()),
        }
    }

    /// As the shipped scenes allow it.
    const ALLOWED: OffPlaneLimits = OffPlaneLimits { mm: 2.0, deg: 1.0 };

    fn taught_sheet() -> ObservedFrame {
        ObservedFrame::new(Point3::new(0.1, 0.2, 0.005), Vector3::x(), Vector3::y())
    }

    #[test]
    fn a_picture_moves_a_sheet_only_within_its_plane() {
        let (new, finding, _) = sheet(
            &taught_sheet(),
            &observation([0.104, 0.197, 0.006], 3.0, 0.4),
            [100.0; 2],
            ALLOWED,
        );
        assert_eq!(finding.verdict, FitVerdict::Good, "{finding:?}");
        assert!((new.origin_m.z - 0.005).abs() < 1e-12, "{new:?}");
        assert!(new.x.z.abs() < 1e-12 && new.y.z.abs() < 1e-12);
        assert!(
            (new.x.y.atan2(new.x.x).to_degrees() - 3.0).abs() < 0.01,
            "{new:?}"
        );
        assert!(
            (new.origin_m.x - 0.104).hypot(new.origin_m.y - 0.197) < 1e-4,
            "{new:?}"
        );
    }

    #[test]
    fn what_left_its_plane_or_is_known_badly_is_not_believed() {
        let verdict = |observation: &TagObservation| {
            sheet(&taught_sheet(), observation, [100.0; 2], ALLOWED)
                .1
                .verdict
        };
        let still = observation([0.1, 0.2, 0.005], 0.0, 0.0);
        assert_eq!(verdict(&still), FitVerdict::Good);
        // A drawing would be refused for what is left.
        assert_eq!(
            verdict(&observation([0.1, 0.2, 0.0023], 0.0, 0.0)),
            FitVerdict::Redo
        );
        assert_eq!(
            verdict(&observation([0.1, 0.2, 0.005], 0.0, 1.5)),
            FitVerdict::Redo
        );
        assert_eq!(
            verdict(&observation([0.1, 0.2, 0.03], 0.0, 0.0)),
            FitVerdict::Redo
        );
        assert_eq!(
            verdict(&observation([0.1, 0.2, 0.005], 0.0, 5.0)),
            FitVerdict::Redo
        );
        let one_tag = TagObservation {
            tags: 1,
            ..still.clone()
        };
        assert_eq!(verdict(&one_tag), FitVerdict::Redo);
        let uncertain = TagObservation {
            sigma_mm: 1.5,
            ..still.clone()
        };
        assert_eq!(verdict(&uncertain), FitVerdict::Redo);
        let rough = TagObservation {
            rms_px: 0.9,
            ..still
        };
        assert_eq!(verdict(&rough), FitVerdict::Usable);
    }
}
