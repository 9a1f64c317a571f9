//! Refuses motion over a sheet that a camera sees elsewhere than it was taught, and, if the scene
//! requires a camera, over a sheet that no camera sees.

use std::sync::Arc;

use super::cameras::{CameraCapture, NO_CAMERA, SheetEvidence};
use super::reply::{Reply, refused};
use super::stroke::rounded;
use super::{AttachedArm, Node};
use base::wording::{joined, millimetres};
use scene::{Scene, SheetFiducials};
use vision::SheetOffset;

/// Takes a picture and checks the sheet's place. The picture counts for this check only.
///
/// # Errors
/// The sheet has moved, or the scene requires a camera and none sees the sheet.
pub(super) async fn check(
    node: &Node,
    arm: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
) -> Result<(), Box<Reply>> {
    let Some(fiducials) = &scene.fiducials else {
        return Ok(());
    };
    let captures = node.capture(arm, Some(scene)).await;
    let (mut reasons, mut is_in_place) = (Vec::new(), false);
    for (_, capture) in &captures {
        let evidence = capture.as_ref().map(|one| (one, one.evidence(fiducials)));
        match evidence {
            Err(error) => reasons.push(error.to_string()),
            Ok((_, SheetEvidence::Nothing(reason))) => reasons.push(reason),
            Ok((_, SheetEvidence::InPlace)) => is_in_place = true,
            Ok((capture, SheetEvidence::Moved(offset))) => {
                return Err(has_moved(scene, fiducials, capture, &offset));
            }
        }
    }
    if is_in_place {
        return Ok(());
    }
    if !fiducials.required {
        reasons.iter().for_each(|reason| tracing::info!("{reason}"));
        return Ok(());
    }
    if captures.is_empty() {
        reasons.push(NO_CAMERA.to_owned());
    }
    Err(refused(
        "sheet_unseen",
        format!(
            "scene {} needs a camera that sees its sheet, but none does: {}",
            scene.title(),
            joined(&reasons)
        ),
    )
    .hint("`sense` shows what the cameras see")
    .boxed())
}

/// Returns the first picture that proves that the sheet has moved, and its offset.
pub(super) async fn find_moved_sheet(
    node: &Node,
    arm: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
) -> Option<(CameraCapture, SheetOffset)> {
    let fiducials = scene.fiducials.as_ref()?;
    let captures = node.capture(arm, Some(scene)).await;
    captures.into_iter().find_map(|(_, capture)| {
        let capture = capture.ok()?;
        match capture.evidence(fiducials) {
            SheetEvidence::Moved(offset) => Some((capture, offset)),
            SheetEvidence::InPlace | SheetEvidence::Nothing(_) => None,
        }
    })
}

/// Describes an offset of the sheet.
pub(super) fn offset_text(offset: &SheetOffset) -> String {
    format!("{} and {:.2}°", millimetres(offset.mm, 2), offset.deg)
}

/// Returns whether a sheet seems to have left its plane: it was the camera that moved, and `align` proposes nothing that helps.
pub(super) fn has_left_plane(fiducials: &SheetFiducials, offset: &SheetOffset) -> bool {
    offset.height_mm.abs() > fiducials.moved_mm_max || offset.tilt_deg > fiducials.moved_deg_max
}

fn has_moved(
    scene: &Scene,
    fiducials: &SheetFiducials,
    capture: &CameraCapture,
    offset: &SheetOffset,
) -> Box<Reply> {
    let has_left_plane = has_left_plane(fiducials, offset);
    let advice = match has_left_plane {
        true => format!(
            "The sheet seems {:+.1} mm off its plane and tilted by {:.1} degrees, so the camera was probably moved. Next: put the camera back; or put the sheet in its taught place, then `steadyhand calibrate camera --scene {}`",
            offset.height_mm, offset.tilt_deg, scene.name
        ),
        false => {
            "Next: put the sheet back, or call `align` and let an operator accept its proposal"
                .to_owned()
        }
    };
    let reply = refused("sheet_moved", format!(
        "the sheet of scene {} lies {} from its taught place, as camera {} sees it (at most {} mm and {} degrees). {advice}",
        scene.title(),
        offset_text(offset),
        capture.camera,
        fiducials.moved_mm_max,
        fiducials.moved_deg_max,
    ))
    .with("moved_mm", rounded(offset.mm))
    .with("moved_deg", rounded(offset.deg));
    match has_left_plane {
        true => reply.boxed(),
        false => reply.hint("`align` proposes the sheet's new place").boxed(),
    }
}
