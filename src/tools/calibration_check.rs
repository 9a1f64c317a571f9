//! A drawing relies on calibrations: if one is missing or stale, it is refused with the command that fixes that.
//!
//! A simulated arm is exactly as its file says, and an arm that was calibrated elsewhere is taken at a person's word: both
//! draw, and the result says so.

use super::reply::{Reply, refused};
use super::{AttachedArm, Node};
use calib::{
    self, CalibrationKind, CalibrationOrigin, CalibrationRecord, CalibrationSession,
    CalibrationStore, KnownArm,
};
use call::{Refusal, refusal};
use config::ArmEntry;
use scene::{Scene, SharedScene, SheetDispute};

/// Refuses a drawing whose calibrations are stale or missing.
///
/// # Errors
/// What is stale or missing, and what to do about it.
pub(super) fn check(node: &Node, arm: &AttachedArm, scene: &Scene) -> Result<(), Box<Reply>> {
    let stale_refusal = |reason: String| refused("stale_calibration", reason);
    refuse_other_zeros(arm, scene)?;
    let history = CalibrationStore::of_state(&node.state, &node.scenes).history();
    let history = history.map_err(|error| stale_refusal(error.to_string()))?;
    let origin = origin(node, arm);
    if let Some(reason) = calib::stale(&history, scene, &origin) {
        return Err(stale_refusal(reason));
    }
    check_bases(node, scene, &history, &origin)?;
    let missing = calib::missing(&history, scene, &origin);
    if missing.is_empty() || !entry(node, arm).is_some_and(must_be_calibrated) {
        return Ok(());
    }
    Err(refused("not_calibrated", missing_text(arm, &missing)))
}

/// Refuses a scene that several arms share if its bases were measured and are out of date, or a proposal that is open contradicts
/// them: the gate keeps bodies apart where the scene has them.
fn check_bases(
    node: &Node,
    scene: &Scene,
    history: &[CalibrationRecord],
    origin: &CalibrationOrigin,
) -> Result<(), Box<Reply>> {
    if scene.beside.is_empty() {
        return Ok(());
    }
    let shared = node.scenes.shared(scene.shared_name(), None);
    let shared = shared.map_err(|error| refused("scene", error))?;
    if let Some(reason) = calib::stale_bases(history, &shared, Some(origin)) {
        return Err(refused("stale_calibration", reason));
    }
    if let Some(dispute) = shared.sheet_dispute() {
        return Err(refused(
            "bases_differ",
            dispute_text(&shared, &dispute, history),
        ));
    }
    let open = CalibrationStore::of_state(&node.state, &node.scenes).proposal();
    let open = open.map_err(|error| refused("calibration", error))?;
    let is_of_bases = |session: &CalibrationSession| {
        session.kind == CalibrationKind::Bases && session.scene == shared.name
    };
    // Touches that cannot be assessed say nothing against the scene.
    let contradiction = open
        .filter(is_of_bases)
        .and_then(|session| calib::bases_contradiction(&session, &shared).ok()?);
    match contradiction {
        Some(reason) => Err(refused(
            "bases_differ",
            format!("{reason}. Next: `steadyhand calibrate accept`"),
        )),
        None => Ok(()),
    }
}

/// Names a sheet that two arms have in different places, and the command that measures it with the arm that found it earlier.
fn dispute_text(
    shared: &SharedScene,
    dispute: &SheetDispute,
    history: &[CalibrationRecord],
) -> String {
    let parts = dispute.arms.map(|arm| shared.parts.get(arm));
    let mut names = parts.into_iter().flatten().map(|part| &part.scene.name);
    let found = |name: &&String| {
        history.iter().rposition(|record| {
            record.session.kind == CalibrationKind::Sheet && record.session.scene == **name
        })
    };
    let all: Vec<&String> = names.by_ref().collect();
    let earlier = all.iter().min_by_key(|name| found(name));
    format!(
        "according to {}, one corner of the sheet is at two places, {:.1} mm apart (at most {:.1} mm). The sheet or a base was moved since one of these arms found it. Next: `steadyhand calibrate touch sheet --scene {}`",
        all.iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(" and "),
        dispute.apart_m * 1e3,
        dispute.most_m * 1e3,
        earlier.map_or("", |name| name)
    )
}

fn missing_text(arm: &AttachedArm, missing: &[String]) -> String {
    format!(
        "arm {} is not calibrated. (If all of it was measured elsewhere, write `calibrated = \"elsewhere\"` for the arm in the node file.) Next: an operator calibrates {}",
        arm.name,
        missing.join(", then ")
    )
}

/// Describes what a drawing relies on instead of a calibration of this node.
pub(super) fn uncalibrated_basis(
    node: &Node,
    arm: &AttachedArm,
    scene: &Scene,
) -> Option<&'static str> {
    let history = CalibrationStore::of_state(&node.state, &node.scenes)
        .history()
        .unwrap_or_default();
    let entry = entry(node, arm)?;
    let is_missing = !calib::missing(&history, scene, &origin(node, arm)).is_empty();
    is_missing.then_some(match entry.is_simulated() {
        true => "a simulated arm needs no calibration: it matches its files",
        false => "calibrated elsewhere, according to the node file",
    })
}

fn entry<'a>(node: &'a Node, arm: &AttachedArm) -> Option<&'a ArmEntry> {
    node.file.arms.iter().find(|entry| entry.name == arm.name)
}

fn must_be_calibrated(entry: &ArmEntry) -> bool {
    !entry.is_simulated() && entry.calibrated.is_none()
}

/// Refuses a scene whose arm file has different zeros, limits or geometry than the node attached its arm with: measurements and
/// plans would not match. Every call that moves, records or enables checks this first; a stop does not.
///
/// # Errors
/// The difference, and that the node must be restarted.
pub fn check_same_zeros(arm: &AttachedArm, scene: &Scene) -> Result<(), Refusal> {
    if scene.arm.has_same_mechanics(arm.motion.arm()) {
        return Ok(());
    }
    Err(refusal!(
        "the file of arm {} has changed: its zeros, limits or geometry differ from the running node's. Nothing can be enabled, moved or touched with it. Next: restart the node",
        scene.arm.file.name
    ))
}

/// Refuses to continue a job that has waited, if its arm's file has other zeros, limits or geometry by now.
///
/// # Errors
/// The difference, or why the file cannot be read.
pub fn check_zeros_after_wait(node: &Node, arm: &AttachedArm) -> Result<(), Refusal> {
    let attached = arm.motion.arm();
    let current = node.scenes.arm(&attached.file.name)?;
    if current.has_same_mechanics(attached) {
        return Ok(());
    }
    Err(refusal!(
        "the file of arm {} has changed: its zeros, limits or geometry differ from those in this job's plan. Next: stop the job, then restart the node",
        attached.file.name
    ))
}

/// Refuses like [`check_same_zeros`], as a tool's answer.
pub(super) fn refuse_other_zeros(arm: &AttachedArm, scene: &Scene) -> Result<(), Box<Reply>> {
    check_same_zeros(arm, scene).map_err(|error| refused("stale_calibration", error))
}

/// Returns the identity of the attached arm, as the origin of a new calibration.
pub fn origin(node: &Node, arm: &AttachedArm) -> CalibrationOrigin {
    let identity = &arm.motion.snapshot().identity;
    let attached = arm.motion.arm();
    let fingerprints = identity.iter().map(|identity| {
        let id = attached.id_in_file(identity.servo.id);
        (id.to_string(), identity.fingerprint())
    });
    let model = &attached.file.name;
    let simulated = entry(node, arm).map(ArmEntry::is_simulated);
    CalibrationOrigin {
        simulated,
        servos: calib::servos_of(&fingerprints.collect()),
        unmeasured: false,
        arm_name: arm.name.clone(),
        among_several: calib::names_alike(&known_arms(&node.file.arms), model, simulated).count()
            > 1,
    }
}

/// Returns the arms of a node file, as calibrations tell them apart.
#[must_use]
pub fn known_arms(entries: &[ArmEntry]) -> Vec<KnownArm> {
    let arms = entries.iter().map(|entry| KnownArm {
        name: entry.name.clone(),
        model: entry.model.clone(),
        simulated: entry.is_simulated(),
    });
    arms.collect()
}
