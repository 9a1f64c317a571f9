//! Stored form of touches, proposals and accepted calibrations: TOML that a person can read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{FitFinding, FitVerdict, InkObservation};
use arm::{ArmFile, BaseFrame};
use base::wording::count;

/// Object of a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalibrationKind {
    /// A pen's tip in its mount.
    Tool,
    /// Place of a scene's sheet.
    Sheet,
    /// The zeros of an arm's joints.
    Zeros,
    /// One of a scene's poses.
    Pose,
    /// The rim of an ink cap.
    Cap,
    /// A scene's calibrator.
    Calibrator,
    /// Pose of a camera.
    Camera,
    /// Play and sag of an arm's joints.
    Play,
    /// Where the bases of arms that share a scene stand to each other.
    Bases,
}

impl CalibrationKind {
    /// Returns its name in commands.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Sheet => "sheet",
            Self::Zeros => "zeros",
            Self::Pose => "pose",
            Self::Cap => "cap",
            Self::Calibrator => "calibrator",
            Self::Camera => "camera",
            Self::Play => "play",
            Self::Bases => "bases",
        }
    }
}

/// Role of a touched point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TouchRole {
    /// The one fixed point of a tool.
    Point,
    /// The sheet's lower left corner.
    Origin,
    /// A point to the right of it, along the lower edge.
    X,
    /// A point above it, along the left edge.
    Y,
    /// The sheet, anywhere.
    Sheet,
    /// The scene's calibrator, a point of known position.
    Calibrator,
    /// Not used by the fit, but compared with its prediction.
    Verify,
}

/// Joints at the moment of a touch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TouchContact {
    /// Role of the touched point.
    pub role: TouchRole,
    /// Name in its scene of the arm that touched, where several share the scene; otherwise empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arm: String,
    /// As measured, not as commanded.
    pub joints_rad: Vec<f64>,
    /// Distance of the point from the origin, by ruler; for `x` and `y` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_mm: Option<f64>,
    /// Number of the point among several unknown ones; 0 if there is one.
    #[serde(default)]
    pub number: usize,
    /// Number of the place in a guided round, from 1; 0 for a single touch.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub place: usize,
    /// Time in milliseconds since 1970.
    pub at_ms: u64,
    /// The zeros with which the joints were measured: see [`zeros_of`]. Empty in older files.
    #[serde(default)]
    pub zeros: String,
}

fn is_zero(place: &usize) -> bool {
    *place == 0
}

/// The arm on which a calibration was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationOrigin {
    /// True if it was simulated; `None` in older files, which do not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<bool>,
    /// Hash of its servos' identities: see [`servos_of`]. Empty if they are not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub servos: String,
    /// True if the values were not measured together on an arm: those that a file had before, or an import that lacks joints.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmeasured: bool,
    /// Name of the arm in the node file; empty without one, and in older files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arm_name: String,
    /// True if the node had several arms of its model that were simulated, or not, as it was: see [`names_alike`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub among_several: bool,
}

impl CalibrationOrigin {
    /// Returns why a calibration on this arm does not apply to another, if it does not.
    #[must_use]
    pub fn mismatch(&self, arm: &Self) -> Option<OriginMismatch> {
        match (self.simulated, arm.simulated) {
            _ if self.unmeasured => Some(OriginMismatch::Unmeasured),
            (None, _) | (_, None) => Some(OriginMismatch::Unknown),
            (Some(true), Some(false)) => Some(OriginMismatch::Practice),
            (Some(false), Some(true)) => Some(OriginMismatch::Hardware),
            (Some(true), Some(true)) => None,
            (Some(false), Some(false)) if self.servos.is_empty() || arm.servos.is_empty() => {
                Some(OriginMismatch::Unknown)
            }
            (Some(false), Some(false)) if self.servos != arm.servos => {
                Some(OriginMismatch::OtherServos)
            }
            (Some(false), Some(false)) => self.name_mismatch(arm),
        }
    }

    /// Compares names where the node has several arms of the model: factory-new servos of two kits are alike.
    fn name_mismatch(&self, arm: &Self) -> Option<OriginMismatch> {
        let among_several = self.among_several || arm.among_several;
        match among_several && self.arm_name != arm.arm_name {
            false => None,
            true if self.arm_name.is_empty() => Some(OriginMismatch::Unknown),
            true => Some(OriginMismatch::OtherArm),
        }
    }

    /// Returns whether touches on both are touches on one arm.
    pub(super) fn is_same_arm(&self, other: &Self) -> bool {
        let known = |origin: &Self| (origin.simulated, origin.servos.clone(), origin.unmeasured);
        known(self) == known(other) && self.name_mismatch(other).is_none()
    }

    /// Returns the arm's name where the node had several of its model, which the name alone tells apart.
    #[must_use]
    pub fn name_among_several(&self) -> Option<&str> {
        self.among_several.then_some(&*self.arm_name)
    }

    /// Describes the arm.
    #[must_use]
    pub fn describe(&self) -> String {
        let arm = match self.simulated {
            Some(true) => "a simulated arm",
            Some(false) => "an arm with different servos",
            None => "an arm that is in no node file",
        };
        match self.name_among_several() {
            Some(name) => format!("arm `{name}`, {arm}"),
            None => arm.to_owned(),
        }
    }
}

/// An arm of a node file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownArm {
    pub name: String,
    pub model: String,
    pub simulated: bool,
}

/// Returns the names of the arms of a model that are simulated, or not, as a calibration's arm was. The name alone tells these apart.
pub fn names_alike<'a>(
    arms: &'a [KnownArm],
    model: &'a str,
    simulated: Option<bool>,
) -> impl Iterator<Item = &'a str> {
    let alike = arms
        .iter()
        .filter(move |arm| arm.model == model && Some(arm.simulated) == simulated);
    alike.map(|arm| arm.name.as_str())
}

/// Reason that a calibration does not apply to an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginMismatch {
    /// The arm on which it was made was not recorded.
    Unknown,
    /// Not all of it was measured.
    Unmeasured,
    /// It was made on a simulated arm, and this one is not.
    Practice,
    /// It was made on an arm at a port, and this one is simulated.
    Hardware,
    /// It was made on an arm with other servos, or with other settings of its servos.
    OtherServos,
    /// It was made on another arm of the same model.
    OtherArm,
}

/// Touches that are being collected, and their purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationSession {
    /// The calibrated object.
    pub kind: CalibrationKind,
    /// The scene.
    pub scene: String,
    /// The pen.
    pub pen: String,
    /// The arm.
    pub arm: String,
    /// Frame of its places and joints; absent in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<BaseFrame>,
    /// Name of the pose, ink cap or camera.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Basis of the touches at the first of them: see [`basis`].
    pub basis: String,
    /// The sheet, play and sag with which it began: see [`drawn_on`](super::assessment::drawn_on). Empty in older files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub drawn_on: String,
    /// True if the arm probed for the sheet at its assumed place: such touches give its height and
    /// tilt, but not its origin.
    #[serde(default)]
    pub probed: bool,
    /// Offset of a drawn cross from its nominal place along the sheet's x and y, as read by a person. Replaces
    /// touches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_mm: Option<[f64; 2]>,
    /// Observation by a camera. Replaces touches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<TagObservation>,
    /// The drawn pattern and its readings. Replaces touches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ink: Option<InkObservation>,
    /// Arm on which the touches were measured.
    #[serde(default)]
    pub origin: CalibrationOrigin,
    /// Touches in the order in which they were made.
    #[serde(default)]
    pub touches: Vec<TouchContact>,
}

/// A sheet in a camera's picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagObservation {
    /// The camera.
    pub camera: String,
    /// Time of the picture, in milliseconds since 1970.
    pub at_ms: u64,
    /// Number of tags on which it rests.
    pub tags: usize,
    /// Root mean square distance of the tags' corners from the fit.
    pub rms_px: f64,
    /// Uncertainty of the sheet's worst corner.
    pub sigma_mm: f64,
    /// A sheet's lower left corner, or a camera's place, in the arm's base frame.
    pub origin_m: [f64; 3],
    /// Direction of x: of a camera, to the right in its picture.
    pub x_axis: [f64; 3],
    /// Direction of y: of a camera, down in its picture.
    pub y_axis: [f64; 3],
}

impl CalibrationSession {
    /// Returns whether two sessions are of the same object: the same arm's zeros, pen's tip, or sheet.
    #[must_use]
    pub fn is_of_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            // Bases are of all arms of their scene, whichever touches first.
            && (self.arm == other.arm || self.kind == CalibrationKind::Bases)
            && match self.kind {
                CalibrationKind::Zeros | CalibrationKind::Play => true,
                CalibrationKind::Tool => self.scene == other.scene && self.pen == other.pen,
                CalibrationKind::Sheet | CalibrationKind::Calibrator | CalibrationKind::Bases => {
                    self.scene == other.scene
                }
                CalibrationKind::Pose | CalibrationKind::Cap => {
                    self.scene == other.scene && self.name == other.name
                }
                CalibrationKind::Camera => self.name == other.name,
            }
    }

    /// Returns whether it was made without a person's touches: by probes of the arm, a camera, or a reading of a cross or of ink.
    #[must_use]
    pub const fn is_by_itself(&self) -> bool {
        self.probed || self.read_mm.is_some() || self.seen.is_some() || self.ink.is_some()
    }

    /// Returns whether touches on an arm go on with these. Several arms touch to find where their bases stand, all simulated or none.
    #[must_use]
    pub fn may_go_on_with(&self, arm: &CalibrationOrigin) -> bool {
        match self.kind {
            CalibrationKind::Bases => self.origin.simulated == arm.simulated,
            _ => self.origin.is_same_arm(arm),
        }
    }

    /// Describes the session as an open proposal: of what it is, and how that came about.
    #[must_use]
    pub fn open_text(&self) -> String {
        let of = match self.kind {
            CalibrationKind::Zeros | CalibrationKind::Play => format!("arm {}", self.arm),
            _ => format!("scene {}", self.scene),
        };
        let name = self.origin.name_among_several();
        let by = name.map_or_else(String::new, |name| format!(" by arm {name}"));
        let method = self.method();
        format!("{} of {of} ({method}{by})", self.kind.word())
    }

    /// Returns the method of its calibration, in words.
    #[must_use]
    pub fn method(&self) -> &'static str {
        if let Some(ink) = &self.ink {
            return match ink.camera {
                _ if ink.is_at_rest() => "reading the joints at rest",
                Some(_) => "ink, read by a camera",
                None => "ink, read by a person",
            };
        }
        match (&self.seen, self.read_mm, self.probed) {
            (Some(_), _, _) => "a camera's picture",
            (None, Some(_), _) => "a reading of the cross",
            (None, None, true) => "probes",
            (None, None, false) => "touches",
        }
    }
}

/// Values of a file by their keys.
pub type FileValues = BTreeMap<String, Vec<f64>>;

/// A calibration that was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationRecord {
    /// From 1, in the order in which they were accepted.
    pub number: u64,
    /// Time in milliseconds since 1970.
    pub at_ms: u64,
    /// Method of the calibration.
    pub method: String,
    /// Hash of the arm's servos' identities; empty if its file does not have them.
    pub servos: String,
    /// Verdict on the fit.
    pub verdict: FitVerdict,
    /// Reasons for the verdict.
    pub reasons: Vec<String>,
    /// Distance of each touch from the fit, in mm.
    pub residuals_mm: Vec<f64>,
    /// Values in the file before.
    pub old: FileValues,
    /// Values in the file since.
    pub new: FileValues,
    /// The raw touches.
    pub session: CalibrationSession,
}

impl CalibrationRecord {
    /// Returns one line for a list.
    #[must_use]
    pub fn line(&self) -> String {
        let session = &self.session;
        format!(
            "{:>4}  {} UTC  {:<6} {}  {}, {}, {}",
            self.number,
            base::calendar::minute(self.at_ms),
            session.kind.word(),
            match session.kind {
                CalibrationKind::Zeros | CalibrationKind::Play => format!("arm {}", session.arm),
                CalibrationKind::Tool => format!("scene {}, pen {}", session.scene, session.pen),
                CalibrationKind::Sheet | CalibrationKind::Calibrator | CalibrationKind::Bases =>
                    format!("scene {}", session.scene),
                CalibrationKind::Pose | CalibrationKind::Cap | CalibrationKind::Camera => {
                    format!("scene {}, {}", session.scene, session.name)
                }
            },
            self.method,
            count(session.touches.len(), "touch"),
            match self.verdict {
                FitVerdict::Redo => "overridden",
                verdict => verdict.word(),
            }
        ) + match session.origin.simulated {
            Some(true) => ", on a simulated arm",
            Some(false) => "",
            None => ", arm not recorded",
        }
    }
}

/// Returns a hash of what a calibration rests on, of eight hexadecimal digits: the arm's zeros and, for a sheet,
/// the tip that touched it. Another basis makes the calibration stale.
#[must_use]
pub(super) fn basis(arm: &ArmFile, tip_m: Option<[f64; 3]>) -> String {
    let servos = arm.servos_before();
    short_hash(&format!("1 {servos:?} {tip_m:?}"))
}

/// Returns a hash of an arm's zeros, of eight hexadecimal digits: joints that were measured with other
/// zeros are not comparable.
#[must_use]
pub fn zeros_of(arm: &ArmFile) -> String {
    basis(arm, None)
}

/// Returns a hash of the identities of an arm's servos, of eight hexadecimal digits; empty if its file does not have them.
#[must_use]
pub fn servos(arm: &ArmFile) -> String {
    servos_of(&arm.identity)
}

/// Returns a hash of servos' identities by their ids, of eight hexadecimal digits; empty if there
/// are none.
#[must_use]
pub fn servos_of(fingerprints: &BTreeMap<String, String>) -> String {
    if fingerprints.is_empty() {
        return String::new();
    }
    short_hash(&format!("{fingerprints:?}"))
}

/// Returns a hash of a text, of eight hexadecimal digits.
pub(super) fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes())
        .to_hex()
        .chars()
        .take(8)
        .collect()
}

/// Size of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CalibrationChange {
    /// The longest distance that anything moved.
    pub mm: f64,
    /// The largest angle by which anything turned.
    pub deg: f64,
}

/// Larger changes are accepted only with an override.
const CHANGE_MAX: CalibrationChange = CalibrationChange {
    mm: 20.0,
    deg: 10.0,
};

impl CalibrationChange {
    /// Describes the size of the change, if it is so large that it needs an override.
    #[must_use]
    pub fn large(&self) -> Option<String> {
        let CalibrationChange { mm, deg } = *self;
        (mm > CHANGE_MAX.mm || deg > CHANGE_MAX.deg).then(|| {
            format!(
                "it changes the calibration by {mm:.1} mm and {deg:.1}° (at most {} mm and {}°)",
                CHANGE_MAX.mm, CHANGE_MAX.deg
            )
        })
    }

    /// Returns the reason why the change needs an override, if it does.
    #[must_use]
    pub fn override_reason(&self) -> Option<String> {
        let large = self.large()?;
        Some(format!(
            "{large}. Next: find the cause first, then accept the proposal with --override"
        ))
    }
}

/// Checks that an assessment may be accepted.
///
/// # Errors
/// Every reason against it.
pub fn check(
    finding: &FitFinding,
    change: &CalibrationChange,
    overridden: bool,
) -> Result<(), String> {
    if finding.verdict == FitVerdict::Redo {
        return Err(finding.reasons.join("; "));
    }
    match change.override_reason().filter(|_| !overridden) {
        Some(reason) => Err(reason),
        None => Ok(()),
    }
}
