//! `calibrate camera`: determines a camera's pose from a picture of a sheet's tags.

use anyhow::bail;

use super::arguments::CameraArgs;
use super::place::CalibrationFolders;
use super::proposal::print_result;
use crate::{ExitStatus, operator_client};
use calib::TagObservation;
use node::operator_verb::OperatorVerb;

impl CalibrationFolders {
    pub(super) async fn camera(&self, args: &CameraArgs) -> anyhow::Result<ExitStatus> {
        let Some(at) = &self.running else {
            bail!("the picture is a running node's: {}", self.absent);
        };
        let verb = OperatorVerb::Look {
            scene: args.scene.clone(),
            camera: args.camera.clone(),
        };
        let reply = operator_client::require(at, &verb).await?;
        let observation: TagObservation = operator_client::parse_text(&reply)?;
        let scene = self.library.scene(&args.scene, None)?;
        let (session, assessed) = self.desk(|desk| desk.propose_seen(&scene, observation))?;
        Ok(print_result(&session, &assessed))
    }
}
