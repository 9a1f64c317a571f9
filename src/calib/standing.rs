//! Whether a drawing may rest on what was calibrated: all of it there, and none of it stale.

use super::assess::{basis_of, said_now};
use super::record::{Kind, Record, Session, Values};
use crate::arm::Family;
use crate::scene::Scene;

/// The calibration that a drawing of this scene must not rest on, with the command that mends it.
///
/// Only what was calibrated can be stale, and only while the file still says what was accepted:
/// who edits the file by hand answers for it.
#[must_use]
pub fn stale(history: &[Record], scene: &Scene) -> Option<String> {
    let of = |kind: Kind| {
        let newest = history.iter().rev();
        newest
            .filter(move |r| r.session.kind == kind && r.session.scene == scene.name)
            .find(|r| kind != Kind::Tool || scene.pens.iter().any(|pen| pen.name == r.session.pen))
    };
    [of(Kind::Tool), of(Kind::Sheet)].into_iter().flatten().find_map(|record| {
        let session = &record.session;
        if rests_on_this(session, scene) || !is_in_force(record, scene) {
            return None;
        }
        let (what, why) = match session.kind {
            Kind::Sheet => ("sheet", "the tool or the arm's zeros were calibrated since"),
            _ => ("tool", "the arm's zeros were calibrated since"),
        };
        Some(format!(
            "the {what} of scene {} is stale (calibration {}): {why}; touch it again: `steadyhand calibrate touch {what} --scene {}`",
            scene.name, record.number, scene.name
        ))
    })
}

/// What a drawing of this scene rests on and nobody calibrated, each with the command that mends it, in the order in which they
/// are done. A tool or a sheet that was calibrated in another scene counts where this one says the same of it.
#[must_use]
pub fn missing(history: &[Record], scene: &Scene) -> Vec<String> {
    let (arm, name) = (&scene.arm.file, &scene.name);
    let mut missing = Vec::new();
    let is_of_arm = |record: &&Record| record.session.arm == arm.name;
    let mut own = history.iter().filter(is_of_arm);
    if !own.any(|record| record.session.kind == Kind::Zeros) {
        // A controller of its own does not say what its servos count: its zeros are found by touches.
        let command = match arm.family {
            Family::Firmware => format!("touch zeros --scene {name}"),
            _ => format!("joints --arm {}", arm.name),
        };
        missing.push(format!(
            "the zeros of arm {}: `steadyhand calibrate {command}`",
            arm.name
        ));
    }
    for (index, pen) in scene.pens.iter().enumerate() {
        let draws = scene.strokes.iter().any(|stroke| stroke.pen == index);
        if draws && !is_calibrated(history, Kind::Tool, scene, &pen.name) {
            missing.push(format!(
                "the tip of {0}: `steadyhand calibrate touch tool --scene {name} --pen {0}`",
                pen.name
            ));
        }
    }
    if !is_calibrated(history, Kind::Sheet, scene, "") {
        missing.push(format!(
            "the sheet: `steadyhand teach sheet --scene {name}`"
        ));
    }
    missing
}

fn is_calibrated(history: &[Record], kind: Kind, scene: &Scene, pen: &str) -> bool {
    let of_kind = history.iter().filter(|record| {
        let session = &record.session;
        session.kind == kind
            && session.arm == scene.arm.file.name
            && (pen.is_empty() || session.pen == pen)
    });
    let mut of_kind = of_kind.filter(|record| {
        // Whether this scene's own is stale is another question.
        record.session.scene == scene.name
            || (rests_on_this(&record.session, scene) && is_in_force(record, scene))
    });
    of_kind.next().is_some()
}

/// Whether the arm, and of a sheet the tip that touched it, are what they were. Nothing is said against a pen that is gone.
fn rests_on_this(session: &Session, scene: &Scene) -> bool {
    basis_of(session.kind, scene, &session.pen).map_or(true, |basis| basis == session.basis)
}

/// Whether the file still says what was accepted.
fn is_in_force(record: &Record, scene: &Scene) -> bool {
    let session = &record.session;
    let now = said_now(session.kind, session, scene);
    let near = |now: &Values, (key, said): (&String, &Vec<f64>)| {
        let there = now.get(key).map_or(&[][..], Vec::as_slice);
        said.len() == there.len() && said.iter().zip(there).all(|(a, b)| (a - b).abs() < 1e-5)
    };
    now.is_some_and(|now| record.new.iter().all(|said| near(&now, said)))
}
