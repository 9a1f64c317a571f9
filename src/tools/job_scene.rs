//! Rebuilds the scene of an earlier job from its files, with the drawing that the job kept.

use std::path::Path;
use std::sync::Arc;

use super::Node;
use call::{Refusal, refusal};
use job::{AcceptedJob, ArmKey, DrawingOrigin, JournalDrawing, PastJob};
use scene::{DesignReplacement, Scene, SceneLibrary};

/// Returns the scene of an earlier job.
///
/// # Errors
/// The reason why it cannot be built, or that something it depends on was changed: file, overlay, design, arm or calibration.
pub fn of_job(library: &SceneLibrary, state: &Path, past: &PastJob) -> Result<Arc<Scene>, Refusal> {
    let with_drawing = match (past.drawing.as_str(), past.is_drawing_of_caller) {
        ("", _) => None,
        (_, true) => Some(library.with_design_of_caller(kept_design(state, past)?)),
        (_, false) => Some(library.with_drawing(kept_design(state, past)?)),
    };
    let library = with_drawing.as_ref().unwrap_or(library);
    let scene = library.scene(&past.scene, past.overlay())?;
    if scene.revision.hex() == past.revision {
        return Ok(scene);
    }
    let old_revision: String = past.revision.chars().take(12).collect();
    Err(refusal!(
        "scene `{}` has changed from revision {old_revision} to {}: its file, design, overlay, arm or calibration",
        scene.title(),
        scene.revision
    ))
}

fn kept_design(state: &Path, past: &PastJob) -> Result<DesignReplacement, Refusal> {
    let name = &past.drawing;
    let drawing = journal_drawing(state, past);
    let drawing = drawing.map_err(|error| refusal!("its drawing {name} was not saved: {error}"))?;
    // The revision of a canvas does not cover the design.
    if drawing.hash_hex() != past.design_hash {
        return Err(refusal!("its drawing {name} is not the saved one"));
    }
    DesignReplacement::from_toml(&format!("design of {}", past.id), &drawing.design)
        .map_err(|error| refusal!("its drawing {name} cannot be read: {error}"))
}

fn journal_drawing(state: &Path, past: &PastJob) -> std::io::Result<JournalDrawing> {
    Ok(JournalDrawing {
        label: past.drawing.clone(),
        design: job::kept_design(state, &past.id)?,
        words: None,
        origin: match past.is_drawing_of_caller {
            true => DrawingOrigin::Caller,
            false => DrawingOrigin::Operator,
        },
    })
}

/// Returns the drawing of an earlier job, for the journal of the job that resumes it.
pub(super) fn kept_drawing(node: &Node, past: &PastJob) -> Option<JournalDrawing> {
    let drawing = journal_drawing(&node.state, past).ok()?;
    (!drawing.label.is_empty()).then_some(drawing)
}

/// Returns the drawing in whose scene the arm moved last, if a job begins in that same scene, as `reset` and parking do: the
/// scene could not be rebuilt from the job without it.
pub(super) fn drawing_of_last_job(node: &Node, accepted: &AcceptedJob) -> Option<JournalDrawing> {
    let past = node.job_store.last_moved(ArmKey {
        name: &accepted.arm,
        is_on_port: accepted.is_on_port,
    })?;
    // The revision of such a scene covers the drawing; that of a canvas does not, and needs none.
    let is_same = past.scene == accepted.scene
        && past.overlay == accepted.overlay
        && past.revision == accepted.revision;
    (is_same && !past.is_drawing_of_caller)
        .then(|| kept_drawing(node, &past))
        .flatten()
}
