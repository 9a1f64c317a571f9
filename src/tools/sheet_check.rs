//! Nothing moves over a sheet that a camera sees elsewhere than it was taught; and, where the scene
//! demands it, over none that no camera sees.

use std::sync::Arc;

use super::cameras::{CameraCapture, NO_CAMERA, SheetEvidence};
use super::reply::{Reply, refused};
use super::stroke::rounded;
use super::{AttachedArm, Node};
use base::wording::millimetres;
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
    let looks = node.capture(arm, Some(scene)).await;
    let (mut why_not, mut lies) = (Vec::new(), false);
    for (_, look) in &looks {
        match look.as_ref().map(|look| (look, look.evidence(fiducials))) {
            Err(why) => why_not.push(why.to_string()),
            Ok((_, SheetEvidence::Nothing(why))) => why_not.push(why),
            Ok((_, SheetEvidence::Lies)) => lies = true,
            Ok((look, SheetEvidence::Moved(moved))) => {
                return Err(has_moved(scene, fiducials, look, &moved).boxed());
            }
        }
    }
    if lies {
        return Ok(());
    }
    if !fiducials.required {
        why_not.iter().for_each(|why| tracing::info!("{why}"));
        return Ok(());
    }
    if looks.is_empty() {
        why_not.push(NO_CAMERA.to_owned());
    }
    Err(refused(
        "sheet_unseen",
        format!(
            "scene {} demands that a camera sees where its sheet lies, and none does: {}",
            scene.title(),
            why_not.join("; ")
        ),
    )
    .hint("sense shows what the cameras see")
    .boxed())
}

/// The first camera that proves that the sheet lies elsewhere, and how far.
pub(super) async fn moved_look(
    node: &Node,
    arm: &Arc<AttachedArm>,
    scene: &Arc<Scene>,
) -> Option<(CameraCapture, SheetOffset)> {
    let fiducials = scene.fiducials.as_ref()?;
    let looks = node.capture(arm, Some(scene)).await;
    looks.into_iter().find_map(|(_, look)| {
        let look = look.ok()?;
        match look.evidence(fiducials) {
            SheetEvidence::Moved(moved) => Some((look, moved)),
            SheetEvidence::Lies | SheetEvidence::Nothing(_) => None,
        }
    })
}

/// Describes an offset of the sheet in words.
pub(super) fn offset_text(moved: &SheetOffset) -> String {
    format!("{} and {:.2}°", millimetres(moved.mm, 2), moved.deg)
}

fn has_moved(
    scene: &Scene,
    fiducials: &SheetFiducials,
    look: &CameraCapture,
    moved: &SheetOffset,
) -> Reply {
    refused("sheet_moved", format!(
        "the sheet of scene {} lies {} from where it was taught, as camera {} sees it now; the scene allows {} mm and {} degrees: put it back, or call align, and an operator accepts what that proposes",
        scene.title(),
        offset_text(moved),
        look.camera,
        fiducials.moved_mm_max,
        fiducials.moved_deg_max,
    ))
    .with("moved_mm", rounded(moved.mm))
    .with("moved_deg", rounded(moved.deg))
    .hint("align proposes where the sheet lies now")
}
