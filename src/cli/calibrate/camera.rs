//! `calibrate camera`: where a camera stands, from a picture of a sheet's tags.

use anyhow::{Context, bail};

use super::arguments::CameraArgs;
use super::place::Place;
use crate::{Exit, operate, show};
use calib::{self, Glimpse, Kind, Session, Verdict, report};
use node::control_socket::Verb;
use scene::Scene;

impl Place {
    pub(super) async fn camera(&self, args: &CameraArgs) -> anyhow::Result<Exit> {
        if !self.runs {
            bail!(
                "the picture is a running node's: start it, and say this without --state and --config"
            );
        }
        let ask = Verb::Look {
            scene: args.scene.clone(),
            camera: args.camera.clone(),
        };
        let told = operate::ask(&args.at, &ask).await?;
        if !told.done {
            bail!("{}", told.text);
        }
        let glimpse: Glimpse = serde_json::from_str(&told.text)
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
        show::line(&report::words(&session, &assessed));
        Ok(match assessed.finding.verdict {
            Verdict::Redo => Exit::Refused,
            _ => Exit::Done,
        })
    }

    fn seen(&self, scene: &Scene, glimpse: Glimpse) -> anyhow::Result<Session> {
        let pen = scene.pen(0).map(|pen| pen.name.clone()).unwrap_or_default();
        Ok(Session {
            basis: calib::basis_of(Kind::Camera, scene, &pen)?,
            kind: Kind::Camera,
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
