//! `calibrate camera`: where a camera stands, from a picture of a sheet's tags.

use anyhow::{Context, bail};

use super::arguments::CameraArgs;
use super::place::CalibrationFolders;
use crate::{ExitStatus, operator_client, terminal_output};
use calib::{self, CalibrationKind, CalibrationSession, FitVerdict, TagObservation, report};
use node::control_socket::OperatorVerb;
use scene::Scene;

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
        let session = self.seen(&scene, glimpse)?;
        let lock = self.store.lock()?;
        if let Some(there) = self
            .store
            .proposal()?
            .filter(|there| !there.is_of_same(&session))
        {
            bail!(
                "a calibration of the {} of scene {} is being made: `steadyhand calibrate accept` or `discard` first",
                there.kind.word(),
                there.scene
            );
        }
        let assessed = self.assess(&session)?;
        self.store.propose(&session, &lock)?;
        terminal_output::line(&report::assessment_text(&session, &assessed));
        Ok(match assessed.finding.verdict {
            FitVerdict::Redo => ExitStatus::Refused,
            _ => ExitStatus::Done,
        })
    }

    fn seen(&self, scene: &Scene, glimpse: TagObservation) -> anyhow::Result<CalibrationSession> {
        let pen = scene.pen(0).map(|pen| pen.name.clone()).unwrap_or_default();
        Ok(CalibrationSession {
            basis: calib::basis_of(CalibrationKind::Camera, scene, &pen)?,
            kind: CalibrationKind::Camera,
            scene: scene.name.clone(),
            pen,
            arm: scene.arm.file.name.clone(),
            name: glimpse.camera.clone(),
            probed: false,
            read_mm: None,
            seen: Some(glimpse),
            origin: self.origin(&scene.arm.file),
            touches: Vec::new(),
        })
    }
}
