//! Measured joints and camera poses that calibrations ask a running node for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::operator_verb::VerbReply;
use base::wording::count;
use calib::{CalibrationOrigin, CalibrationStore};
use tools::Node;

/// Data of a node for calibrations.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NodeMeasurements {
    pub state: PathBuf,
    pub scenes: Option<PathBuf>,
    pub arms: Vec<MeasuredArm>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct MeasuredArm {
    pub model: String,
    pub joints_rad: Vec<f64>,
    /// Moving, or about to stand: what it reads now is no touch.
    pub is_moving: bool,
    pub homing: Vec<(u8, i32)>,
    /// Counts of the servos.
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

/// Calibrations that are listed, the newest.
const LISTED_MAX: usize = 40;

/// Returns the calibrations that were accepted, the newest first, with the residual of each touch.
pub(super) fn calibrations_reply(node: &Node) -> VerbReply {
    let history = match CalibrationStore::of_state(&node.state).history() {
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
    let words = match listed.len() {
        0 => "nothing was calibrated yet".to_owned(),
        listed => count(listed, "calibration"),
    };
    VerbReply::with_data(words, &listed)
}

/// Returns the positions of a node's arms, and its folders.
pub fn measurements_reply(node: &Node) -> VerbReply {
    let arms = node.arms.iter().filter_map(|seat| {
        let seen = seat.motion.snapshot();
        let identity = || seen.identity.iter();
        let measured = seen.measured.as_ref()?;
        let counts = measured.servos.iter();
        let arm = &seat.motion.arm();
        let is_named = |id: u8| {
            let mut held = arm.file.held.iter();
            arm.servos().any(|(_, servo)| servo.id == id) || held.any(|held| held.id == id)
        };
        Some(MeasuredArm {
            ticks: counts
                .filter_map(|servo| Some((servo.id, servo.position_ticks?)))
                .collect(),
            identity: identity()
                .filter(|one| is_named(one.servo.id))
                .map(|one| (one.servo.id, one.fingerprint()))
                .collect(),
            energised: seen.energised,
            zeros: calib::zeros_of(&arm.file),
            origin: tools::origin(node, seat),
            model: arm.file.name.clone(),
            joints_rad: measured.position_rad.to_vec(),
            is_moving: seen.state.is_under_way(),
            homing: identity()
                .map(|one| (one.servo.id, one.homing_offset_ticks))
                .collect(),
        })
    });
    let measured = NodeMeasurements {
        state: node.state.clone(),
        scenes: node.scenes.folder().map(Path::to_path_buf),
        arms: arms.collect(),
    };
    VerbReply::done(serde_json::to_string(&measured).unwrap_or_default())
}

/// Returns the pose of a camera of the node, from a picture taken now.
pub async fn camera_pose_reply(node: &Node, scene: &str, camera: Option<&str>) -> VerbReply {
    let seen = node.camera_pose(scene, camera).await;
    match seen.map(|glimpse| serde_json::to_string(&glimpse)) {
        Ok(Ok(text)) => VerbReply::done(text),
        Ok(Err(error)) => VerbReply::failed(error.to_string()),
        Err(why) => VerbReply::failed(why),
    }
}
