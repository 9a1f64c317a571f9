//! `calibrate camera`: determines a camera's pose from a picture of a sheet's tags.

use anyhow::bail;

use super::arguments::CameraArgs;
use super::place::CalibrationFolders;
use crate::{ExitStatus, operator_client};
use calib::CalibrationDesk;
use node::measurements::MeasuredCamera;
use node::operator_verb::OperatorVerb;

impl CalibrationFolders {
    pub(super) async fn camera(&self, args: &CameraArgs) -> anyhow::Result<ExitStatus> {
        let Some(at) = &self.running else {
            bail!("only a running node can take the picture: {}", self.absent);
        };
        let verb = OperatorVerb::Look {
            scene: args.scene.clone(),
            camera: args.camera.clone(),
        };
        let reply = operator_client::require(at, &verb).await?;
        let seen: MeasuredCamera = operator_client::parse_text(&reply)?;
        let scene = self.library.scene(&args.scene, None)?;
        let propose =
            |desk: CalibrationDesk<'_>| desk.propose_seen(&scene, seen.observation, seen.origin);
        let (session, assessed) = self.desk(propose)?;
        Ok(self.print_result(&session, &assessed))
    }
}
