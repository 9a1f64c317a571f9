//! Calibration status of a drawing: checks that every required calibration exists and is current.

use super::assessment::{basis_of, present_values};
use super::bases_assessment::{bases_basis, has_bases};
use super::calibration_record::{
    CalibrationKind, CalibrationOrigin, CalibrationRecord, CalibrationSession, FileValues,
    OriginMismatch,
};
use arm::ServoFamily;
use scene::{Scene, SharedScene};

/// Returns the stale calibration on which a drawing of this scene would rest, with the command that renews it.
///
/// Only accepted values can be stale, and only while the file still has them: whoever edits the file by
/// hand is responsible for it. A calibration of another arm cannot be stale on this one.
#[must_use]
pub fn stale(
    history: &[CalibrationRecord],
    scene: &Scene,
    arm: &CalibrationOrigin,
) -> Option<String> {
    let may_be_own = |record: &&CalibrationRecord| {
        let mismatch = record.session.origin.mismatch(arm);
        matches!(mismatch, None | Some(OriginMismatch::Unknown))
    };
    let newest = |kind: CalibrationKind, pen: &str| {
        let mut records = history.iter().rev().filter(may_be_own);
        records.find(|CalibrationRecord { session, .. }| {
            session.kind == kind
                && session.scene == scene.name
                && (pen.is_empty() || session.pen == pen)
        })
    };
    let tools = drawing_pens(scene).filter_map(|pen| newest(CalibrationKind::Tool, pen));
    let mut records = tools.chain(newest(CalibrationKind::Sheet, ""));
    let stale =
        records.find(|record| !rests_on_this(&record.session, scene) && is_in_force(record, scene));
    stale.map(|record| stale_text(record, &scene.name))
}

/// Returns why the bases that were measured in a scene are not to be relied on, with the command that renews them. `arm` is one of
/// its arms, where one is attached: bases of simulated arms say nothing of others.
///
/// As [`stale`], values that a person has edited since are that person's.
#[must_use]
pub fn stale_bases(
    history: &[CalibrationRecord],
    shared: &SharedScene,
    arm: Option<&CalibrationOrigin>,
) -> Option<String> {
    let is_of_scene = |record: &&CalibrationRecord| {
        let session = &record.session;
        session.kind == CalibrationKind::Bases && session.scene == shared.name
    };
    let newest = history.iter().rev().find(is_of_scene)?;
    let first = &shared.parts.first()?.scene;
    if newest.session.origin.unmeasured || !has_bases(shared, &newest.new) {
        return None;
    }
    let is_practice = newest.session.origin.simulated == Some(true)
        && arm.is_some_and(|arm| arm.simulated == Some(false));
    let reason = match newest.session.basis == bases_basis(first) {
        false => "a tool or an arm's zeros were calibrated later",
        true if is_practice => "they were measured on simulated arms",
        true => return None,
    };
    Some(format!(
        "the bases of scene {0} are out of date (calibration {1}): {reason}. Next: `steadyhand call align '{{\"scene\": \"{0}\", \"bases\": true}}'` for each of its arms, or `steadyhand calibrate restore {1} --before`",
        shared.name, newest.number
    ))
}

/// Names a stale calibration, the reason, and the command that renews it.
fn stale_text(record: &CalibrationRecord, scene: &str) -> String {
    let (number, pen) = (record.number, &record.session.pen);
    match record.session.kind {
        CalibrationKind::Sheet => format!(
            "the sheet of scene {scene} is out of date (calibration {number}): the tool or the arm's zeros were calibrated later. Next: `steadyhand calibrate touch sheet --scene {scene}`"
        ),
        _ => format!(
            "the tip of {pen} in scene {scene} is out of date (calibration {number}): the arm's zeros were calibrated later. Next: `steadyhand calibrate touch tool --scene {scene} --pen {pen}`"
        ),
    }
}

/// Returns the names of the pens that draw; of all, in a scene whose strokes come with a call.
fn drawing_pens(scene: &Scene) -> impl Iterator<Item = &str> {
    let draws = |index: usize| {
        scene.strokes.is_empty() || scene.strokes.iter().any(|stroke| stroke.pen == index)
    };
    let pens = scene.pens.iter().enumerate();
    pens.filter(move |(index, _)| draws(*index))
        .map(|(_, pen)| pen.name.as_str())
}

/// Returns the calibrations that a drawing of this scene needs and its arm lacks, each with its command,
/// in the order in which to make them. A tool or a sheet calibrated in a different scene counts if this scene has the same values.
#[must_use]
pub fn missing(
    history: &[CalibrationRecord],
    scene: &Scene,
    arm: &CalibrationOrigin,
) -> Vec<String> {
    let (file, name) = (&scene.arm.file, &scene.name);
    let lacks = |kind, pen: &str| lack_reason(history, kind, scene, pen, arm);
    let mut missing = Vec::new();
    if let Some(reason) = lacks(CalibrationKind::Zeros, "") {
        // A controller does not report what its servos count: its zeros are found by touches.
        let command = match file.family {
            ServoFamily::Firmware => format!("touch zeros --scene {name}"),
            _ => format!("joints --arm {}", file.name),
        };
        missing.push(format!(
            "the zeros of arm {}{reason}: `steadyhand calibrate {command}`",
            file.name
        ));
    }
    for pen in drawing_pens(scene) {
        if let Some(reason) = lacks(CalibrationKind::Tool, pen) {
            missing.push(format!(
                "the tip of {pen}{reason}: `steadyhand calibrate touch tool --scene {name} --pen {pen}`"
            ));
        }
    }
    if let Some(reason) = lacks(CalibrationKind::Sheet, "") {
        missing.push(format!(
            "the sheet{reason}: `steadyhand teach sheet --scene {name}`"
        ));
    }
    missing.extend(play_lack(history, scene, arm));
    missing
}

/// Returns the play and sag that the arm's file has from a calibration which does not apply to this arm, with the commands that mend it.
fn play_lack(
    history: &[CalibrationRecord],
    scene: &Scene,
    arm: &CalibrationOrigin,
) -> Option<String> {
    let is_some = |record: &CalibrationRecord| record.new.values().flatten().any(|deg| *deg != 0.0);
    let in_force = || {
        history.iter().rev().filter(|record| {
            let session = &record.session;
            session.kind == CalibrationKind::Play
                && session.arm == scene.arm.file.name
                && is_some(record)
                && is_in_force(record, scene)
        })
    };
    let mismatch = |record: &CalibrationRecord| record.session.origin.mismatch(arm);
    if in_force().any(|record| mismatch(record).is_none()) {
        return None;
    }
    let newest = in_force().next()?;
    let (mismatch, number) = (mismatch(newest)?, newest.number);
    let undo = match mismatch {
        OriginMismatch::Unmeasured => String::new(),
        _ => format!(", or `steadyhand calibrate restore {number} --before`"),
    };
    Some(format!(
        "the play and sag of arm {}{}: `steadyhand calibrate play --scene {}`{undo}",
        scene.arm.file.name,
        mismatch_reason(newest, mismatch, arm),
        scene.name
    ))
}

/// Returns why an object is not calibrated on this arm: the reason why its existing calibration does not count, empty
/// if none exists; `None` if it is calibrated.
fn lack_reason(
    history: &[CalibrationRecord],
    kind: CalibrationKind,
    scene: &Scene,
    pen: &str,
    arm: &CalibrationOrigin,
) -> Option<String> {
    let is_own = |record: &&CalibrationRecord| {
        kind == CalibrationKind::Zeros || record.session.scene == scene.name
    };
    let of_kind = || {
        history.iter().rev().filter(|record| {
            let session = &record.session;
            session.kind == kind
                && session.arm == scene.arm.file.name
                && (pen.is_empty() || session.pen == pen)
        })
    };
    let newest = of_kind().find(is_own).map(|record| record.number);
    // This scene's own newest counts even if it is stale or was edited by hand since, which is checked elsewhere. An older one, and
    // another scene's, counts only while the file has the same values.
    let mut candidates = of_kind().filter(|record| {
        Some(record.number) == newest
            || ((kind == CalibrationKind::Zeros || rests_on_this(&record.session, scene))
                && is_in_force(record, scene))
    });
    let mut reason = String::new();
    let is_calibrated = candidates.any(|record| match record.session.origin.mismatch(arm) {
        None => true,
        Some(mismatch) => {
            if reason.is_empty() {
                reason = mismatch_reason(record, mismatch, arm);
            }
            false
        }
    });
    (!is_calibrated).then_some(reason)
}

fn mismatch_reason(
    record: &CalibrationRecord,
    mismatch: OriginMismatch,
    arm: &CalibrationOrigin,
) -> String {
    let number = record.number;
    let reason = match mismatch {
        OriginMismatch::Unknown => {
            return format!(
                " (calibration {number} does not name its arm. If it belongs to this arm and these servos, record that with `steadyhand calibrate restore {number}` on this node)"
            );
        }
        OriginMismatch::OtherArm => {
            let (other, name) = (&record.session.origin.arm_name, &arm.arm_name);
            return format!(
                " (calibration {number} belongs to arm `{other}`. If that is this arm's earlier name, record that with `steadyhand calibrate restore {number} --arm {name}`)"
            );
        }
        OriginMismatch::Unmeasured => "has values that were not measured on this arm",
        OriginMismatch::Practice => "was made on a simulated arm",
        OriginMismatch::Hardware => "was made on a real arm",
        OriginMismatch::OtherServos => "was made with different servos or settings",
    };
    format!(" (calibration {number} {reason})")
}

/// Returns whether the arm, and for a sheet the tip that touched it, are unchanged. A missing pen is not an objection.
fn rests_on_this(session: &CalibrationSession, scene: &Scene) -> bool {
    basis_of(session.kind, scene, &session.pen).map_or(true, |basis| basis == session.basis)
}

/// Returns whether the file still has the accepted values.
fn is_in_force(record: &CalibrationRecord, scene: &Scene) -> bool {
    let session = &record.session;
    let present = present_values(session.kind, session, scene);
    let is_same = |present: &FileValues, (key, accepted): (&String, &Vec<f64>)| {
        let values = present.get(key).map_or(&[][..], Vec::as_slice);
        let mut pairs = accepted.iter().zip(values);
        accepted.len() == values.len() && pairs.all(|(a, b)| (a - b).abs() < 1e-5)
    };
    present.is_some_and(|present| record.new.iter().all(|new| is_same(&present, new)))
}
