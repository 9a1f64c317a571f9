//! Measured joints and camera poses that calibrations ask a running node for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::operator_verb::VerbReply;
use base::wording::{count, with_next};
use calib::{CalibrationOrigin, CalibrationStore, KnownArm, TagObservation};
use gate::READING_AGE_MAX;
use motion::Snapshot;
use tools::{AttachedArm, Node};

/// Data of a node for calibrations.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NodeMeasurements {
    pub state: PathBuf,
    pub scenes: Option<PathBuf>,
    /// The arms that have been read.
    pub arms: Vec<MeasuredArm>,
    /// Every arm of the node file.
    #[serde(default)]
    pub known: Vec<KnownArm>,
}

/// The pose of a camera, and the arm whose sheet it sees.
#[derive(Debug, Serialize, Deserialize)]
pub struct MeasuredCamera {
    #[serde(flatten)]
    pub observation: TagObservation,
    pub origin: CalibrationOrigin,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct MeasuredArm {
    /// Its name on the node.
    #[serde(default)]
    pub name: String,
    pub model: String,
    pub joints_rad: Vec<f64>,
    /// Reason why the last reading does not say where the arm is now.
    #[serde(default)]
    pub unread: Option<String>,
    /// The fault, until it is reset.
    #[serde(default)]
    pub fault: Option<String>,
    /// Moving or stopping, so that its present position is not a touch.
    pub is_moving: bool,
    pub homing: Vec<(u8, i32)>,
    /// Positions of the servos, in counts.
    #[serde(default)]
    pub ticks: calib::ServoTicks,
    /// Identities of the servos.
    #[serde(default)]
    pub identity: BTreeMap<u8, String>,
    #[serde(default)]
    pub energised: bool,
    /// The zeros that it is measured with.
    #[serde(default)]
    pub zeros: String,
    #[serde(default)]
    pub origin: CalibrationOrigin,
}

/// Number of calibrations in a list; the newest are shown.
const LISTED_MAX: usize = 40;

/// Returns the accepted calibrations, the newest first, with the residual of each touch.
pub(super) fn calibrations_reply(node: &Node) -> VerbReply {
    let history = match CalibrationStore::of_state(&node.state, &node.scenes).history() {
        Ok(history) => history,
        Err(error) => return VerbReply::failed(error.to_string()),
    };
    let newest = history.iter().rev().take(LISTED_MAX);
    let listed = newest.map(|record| {
        json!({
            "number": record.number,
            "words": record.line().trim(),
            "reasons": record.reasons,
            "residuals_mm": record.residuals_mm,
        })
    });
    let listed: Vec<serde_json::Value> = listed.collect();
    let text = match listed.len() {
        0 => "nothing has been calibrated yet".to_owned(),
        listed => count(listed, "calibration"),
    };
    VerbReply::with_data(text, &listed)
}

/// Returns the positions of a node's arms, and its folders.
pub fn measurements_reply(node: &Node) -> VerbReply {
    let arms = node.arms.iter().filter_map(|seat| {
        let snapshot = seat.motion.snapshot();
        let identities = || snapshot.identity.iter();
        let measured = snapshot.measured.as_ref()?;
        let servos = measured.servos.iter();
        let arm = &seat.motion.arm();
        let is_named = |id: u8| {
            let mut held = arm.file.held.iter();
            arm.servos().any(|(_, servo)| servo.id == id) || held.any(|held| held.id == id)
        };
        Some(MeasuredArm {
            ticks: servos
                .filter_map(|servo| Some((arm.id_in_file(servo.id), servo.position_ticks?)))
                .collect(),
            identity: identities()
                .filter(|servo| is_named(servo.servo.id))
                .map(|servo| (arm.id_in_file(servo.servo.id), servo.fingerprint()))
                .collect(),
            energised: snapshot.energised,
            zeros: calib::zeros_of(&arm.file_as_written()),
            origin: tools::origin(node, seat),
            name: seat.name.clone(),
            model: arm.file.name.clone(),
            joints_rad: measured.position_rad.to_vec(),
            unread: unread_reason(seat, &snapshot),
            fault: snapshot.fault.clone(),
            is_moving: snapshot.state.is_under_way(),
            homing: identities()
                .map(|servo| (arm.id_in_file(servo.servo.id), servo.homing_offset_ticks))
                .collect(),
        })
    });
    let measured = NodeMeasurements {
        state: node.state.clone(),
        scenes: node.scenes.folder().map(Path::to_path_buf),
        arms: arms.collect(),
        known: tools::known_arms(&node.file.arms),
    };
    VerbReply::done(serde_json::to_string(&measured).unwrap_or_default())
}

/// Returns why an arm's last reading does not say where the arm is now, if it does not: it is too old.
pub(super) fn unread_reason(seat: &AttachedArm, snapshot: &Snapshot) -> Option<String> {
    let Some(measured) = &snapshot.measured else {
        return Some(format!("arm {} has not been read yet", seat.name));
    };
    let age = seat.motion.clock().now().since(measured.at);
    if age <= READING_AGE_MAX {
        return None;
    }
    let cause = snapshot.fault.as_deref();
    Some(format!(
        "arm {} was last read {} ago, so its present position is unknown: {}",
        seat.name,
        base::wording::seconds(age.as_secs_f64()),
        cause.unwrap_or("check its cable and supply")
    ))
}

/// Returns the pose of a camera of the node, from a picture taken now.
pub async fn camera_pose_reply(node: &Node, scene: &str, camera: Option<&str>) -> VerbReply {
    let seen = node.camera_pose(scene, camera).await;
    let seen = seen.map(|(observation, origin)| MeasuredCamera {
        observation,
        origin,
    });
    match seen.map(|seen| serde_json::to_string(&seen)) {
        Ok(Ok(text)) => VerbReply::done(text),
        Ok(Err(error)) => VerbReply::failed(error.to_string()),
        Err(error) => VerbReply::failed(error),
    }
}

/// Says why an arm with a fault gives no touches.
#[must_use]
pub fn unmended_fault(arm: &str, fault: &str) -> String {
    with_next(
        format!("arm {arm} has a fault: {fault}"),
        "remove the cause, then `steadyhand reset`",
    )
}
