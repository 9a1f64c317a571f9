//! The scene of an earlier job, built again from what it was made from, with the drawing that the job kept.

use std::path::Path;
use std::sync::Arc;

use super::Node;
use call::{Refusal, refusal};
use job::{AcceptedJob, DrawingOrigin, JournalDrawing, PastJob};
use scene::{DesignReplacement, Scene, SceneLibrary};

/// Returns the scene of an earlier job.
///
/// # Errors
/// Why it cannot be built, or that something it depends on was changed: file, overlay, design, arm or calibration.
pub fn of_job(library: &SceneLibrary, state: &Path, past: &PastJob) -> Result<Arc<Scene>, Refusal> {
    let overlay = Some(past.overlay.as_str()).filter(|overlay| !overlay.is_empty());
    let scene = if past.drawing.is_empty() {
        library.scene(&past.scene, overlay)
    } else {
        let design = kept_design(state, past)?;
        let library = match past.is_drawing_of_caller {
            true => library.with_design_of_caller(design),
            false => library.with_drawing(design),
        };
        library.scene(&past.scene, overlay)
    };
    let scene = scene?;
    if scene.revision.hex() == past.revision {
        return Ok(scene);
    }
    let before: String = past.revision.chars().take(12).collect();
    Err(refusal!(
        "scene `{}` was revision {before} then and is {} now: its file, design, overlay, arm or calibration was changed",
        scene.title(),
        scene.revision
    ))
}

fn kept_design(state: &Path, past: &PastJob) -> Result<DesignReplacement, Refusal> {
    let text = job::kept_design(state, &past.id);
    let text =
        text.map_err(|error| refusal!("its drawing {} was not kept: {error}", past.drawing))?;
    let drawing = JournalDrawing {
        label: past.drawing.clone(),
        design: text,
        words: None,
        origin: origin(past),
    };
    // The revision of a canvas does not cover it.
    if drawing.hash_hex() != past.design_hash {
        return Err(refusal!(
            "its drawing {} is not what was kept",
            past.drawing
        ));
    }
    DesignReplacement::from_toml(&format!("design of {}", past.id), &drawing.design)
        .map_err(|error| refusal!("its drawing {} cannot be read: {error}", past.drawing))
}

/// Returns the drawing of an earlier job, for the journal of one that goes on with it.
pub(super) fn kept_drawing(node: &Node, past: &PastJob) -> Option<JournalDrawing> {
    let design = job::kept_design(&node.state, &past.id).ok()?;
    let label = past.drawing.clone();
    let origin = origin(past);
    (!label.is_empty()).then_some(JournalDrawing {
        label,
        design,
        words: None,
        origin,
    })
}

/// Returns the drawing in whose scene the arm moved last, if a job begins in that same scene, as `reset` and parking do: without
/// it the scene could not be built again from the job.
pub(super) fn drawing_of_last_job(node: &Node, accepted: &AcceptedJob) -> Option<JournalDrawing> {
    let past = node.book.last_moved(&accepted.arm)?;
    // The revision of such a scene covers the drawing; that of a canvas does not, and needs none.
    let is_same = past.scene == accepted.scene
        && past.overlay == accepted.overlay
        && past.revision == accepted.revision;
    (is_same && !past.is_drawing_of_caller)
        .then(|| kept_drawing(node, &past))
        .flatten()
}

const fn origin(past: &PastJob) -> DrawingOrigin {
    match past.is_drawing_of_caller {
        true => DrawingOrigin::Caller,
        false => DrawingOrigin::Operator,
    }
}
