//! `calibrate camera`: where a camera stands, from a picture of a sheet's tags.

use anyhow::{Context, bail};

use super::arguments::CameraArgs;
use super::place::CalibrationFolders;
use crate::{ExitStatus, operator_client, terminal_output};
use calib::{FitVerdict, TagObservation, report};
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
        let told = operator_client::ask(at, &ask).await?;
        if !told.done {
            bail!("{}", told.text);
        }
        let glimpse: TagObservation = serde_json::from_str(&told.text)
            .with_context(|| format!("the node says: {}", told.text))?;
        let scene = self.library.scene(&args.scene, None)?;
        let (session, assessed) = self.desk(|desk| desk.propose_seen(&scene, glimpse))?;
        terminal_output::line(&report::assessment_text(&session, &assessed));
        Ok(ExitStatus::of(assessed.finding.verdict != FitVerdict::Redo))
    }
}
