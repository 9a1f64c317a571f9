//! `calibrate camera`: where a camera stands, from a picture of a sheet's tags.

use anyhow::bail;

use super::arguments::CameraArgs;
use super::place::CalibrationFolders;
use super::proposal::judged;
use crate::{ExitStatus, operator_client};
use calib::TagObservation;
use node::operator_verb::OperatorVerb;

impl CalibrationFolders {
    pub(super) async fn camera(&self, args: &CameraArgs) -> anyhow::Result<ExitStatus> {
        let Some(at) = &self.running else {
            bail!("the picture is a running node's: {}", self.absent);
        };
        let ask = OperatorVerb::Look {
            scene: args.scene.clone(),
            camera: args.camera.clone(),
        };
        let told = operator_client::ask_for(at, &ask).await?;
        let glimpse: TagObservation = operator_client::read_text(&told)?;
        let scene = self.library.scene(&args.scene, None)?;
        let (session, assessed) = self.desk(|desk| desk.propose_seen(&scene, glimpse))?;
        Ok(judged(&session, &assessed))
    }
}
