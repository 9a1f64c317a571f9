//! What a calibration of one arm of several may change: its own numbers, and nothing that another arm goes by.

use super::AssessError;
use super::calibration_record::CalibrationKind;
use scene::{ArmBeside, Scene};

/// Refuses to calibrate what another arm of the same scene goes by as well: a pen or cap that both have, the one calibrator, or the
/// zeros and play of a file that describes both arms. `name` is that of a cap.
///
/// # Errors
/// What both have, and how to part it.
pub fn check_own(
    kind: CalibrationKind,
    scene: &Scene,
    pen: &str,
    name: &str,
) -> Result<(), AssessError> {
    let model = &scene.arm.file.name;
    let is_this_cap = |ink: usize| scene.inks.get(ink).is_some_and(|ink| ink.name == name);
    let has_too = |other: &&ArmBeside| match kind {
        CalibrationKind::Tool => other.pens.iter().any(|own| own.name == pen),
        CalibrationKind::Cap => other.pens.iter().filter_map(|own| own.ink).any(is_this_cap),
        CalibrationKind::Calibrator => true,
        CalibrationKind::Zeros | CalibrationKind::Play => other.arm.file.name == *model,
        // Each arm has its own numbers of the sheet and its own poses; bases are of all of them.
        CalibrationKind::Sheet
        | CalibrationKind::Pose
        | CalibrationKind::Camera
        | CalibrationKind::Bases => false,
    };
    let Some(other) = scene.beside.iter().find(has_too) else {
        return Ok(());
    };
    let (what, next) = match kind {
        CalibrationKind::Tool => (
            format!("pen `{pen}`"),
            "write a pen of its own for each arm into the scene's `[[pens]]`".to_owned(),
        ),
        CalibrationKind::Cap => (
            format!("ink cap `{name}`"),
            "write a cap of its own for each arm into the scene's `[[inks]]`".to_owned(),
        ),
        CalibrationKind::Calibrator => (
            "the calibrator".to_owned(),
            "write `calibrator_m` into the scene's file, in the frame that all arms have in common"
                .to_owned(),
        ),
        _ => (
            format!("the file of arm {model}"),
            format!(
                "copy arms/{model}.toml under a different name for each arm, and write that name as `model` into the node file and the scene"
            ),
        ),
    };
    let other = other.name.clone();
    Err(AssessError::OfOtherArm { what, other, next })
}
