//! The sheet before an arm as its camera sees it, from straight above: a layer on the page's paper.

use std::sync::Arc;

use serde::Serialize;

use super::camera_report;
use super::cameras::CameraCapture;
use super::{AttachedArm, Node};
use call::{Refusal, refusal};
use picture::photo_png;
use scene::Scene;
use vision::{ImageFrame, flat_sheet};

/// A sheet as a camera sees it.
#[derive(Clone, Debug, Serialize)]
pub struct SheetPhoto {
    /// The camera's name.
    pub camera: String,
    /// Time of the picture, in milliseconds since 1970.
    pub at_ms: u64,
    /// Width and height of the sheet.
    pub size_mm: [f64; 2],
    /// The whole sheet from straight above.
    #[serde(skip)]
    pub png: Vec<u8>,
}

impl Node {
    /// Returns whether a camera sees an arm's sheet.
    #[must_use]
    pub fn has_camera(&self, arm: &AttachedArm) -> bool {
        !self.cameras_of(arm).is_empty()
    }

    /// Takes a picture of an arm's sheet and turns it to be seen from straight above. Nothing moves.
    ///
    /// # Errors
    /// No camera sees the sheet, it has no tags, or they were not found.
    pub async fn sheet_photo(&self, arm: Option<&str>) -> Result<SheetPhoto, Refusal> {
        let arm = self
            .arm(arm)
            .ok_or_else(|| refusal!("there is no such arm"))?;
        let scene = camera_report::scene_of_sheet(self, arm, None);
        let scene = scene.ok_or_else(|| {
            refusal!("the node does not know which sheet lies there. Next: draw on it once")
        })?;
        let seen = self.flat_sheet(arm, &scene).await?;
        Ok(SheetPhoto {
            camera: seen.camera,
            at_ms: seen.at_ms,
            size_mm: scene.surface.size_mm(),
            png: photo_png(seen.flat.size_px(), seen.flat.rgb())?,
        })
    }

    /// Takes a picture of a scene's sheet before an arm, and turns it to be seen from straight above.
    pub(super) async fn flat_sheet(
        &self,
        arm: &Arc<AttachedArm>,
        scene: &Arc<Scene>,
    ) -> Result<FlatPicture, Refusal> {
        let mut why = refusal!("no camera sees the sheet of {}", arm.name);
        for (name, capture) in self.capture(arm, Some(scene)).await {
            match capture.and_then(|capture| flattened(capture, scene)) {
                Ok(picture) => return Ok(picture),
                Err(reason) => why = refusal!("camera {name}: {reason}"),
            }
        }
        Err(why)
    }
}

/// A sheet as a camera sees it, seen from straight above.
pub(super) struct FlatPicture {
    pub(super) camera: String,
    pub(super) at_ms: u64,
    pub(super) flat: ImageFrame,
}

fn flattened(capture: CameraCapture, scene: &Arc<Scene>) -> Result<FlatPicture, Refusal> {
    let observed = capture.sheet.ok_or_else(|| {
        refusal!(
            "the sheet of {} has no tags, or the camera has no `focal_px`",
            scene.name
        )
    })??;
    let size_mm = scene.surface.size_mm();
    let sheet = &observed.location.sheet;
    Ok(FlatPicture {
        camera: capture.camera,
        at_ms: capture.at_ms,
        flat: flat_sheet(&capture.frame, &observed.lens, sheet, size_mm)?,
    })
}
