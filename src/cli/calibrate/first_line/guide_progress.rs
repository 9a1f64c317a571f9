//! The completed steps, kept with the node's state so that the guide can be resumed.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::guide_step::GuideStep;
use crate::files;

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ProgressFile {
    scene: String,
    /// The arm; absent in files of earlier versions, which knew one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arm: Option<String>,
    done: Vec<GuideStep>,
}

/// Completed steps of an arm in a scene.
#[derive(Debug)]
pub(super) struct GuideProgress {
    path: PathBuf,
    file: ProgressFile,
}

impl GuideProgress {
    /// Reads the completed steps of this arm in this scene; of the arm's steps in another scene, those of its joints count too.
    pub(super) fn open(state: &Path, scene: &str, arm: &str) -> anyhow::Result<Self> {
        let path = state.join("first_line.toml");
        let hint = || {
            format!(
                "another program changed {}. Next: move that file away",
                path.display()
            )
        };
        let mut file: ProgressFile = match files::read_if_there(&path)? {
            Some(text) => toml::from_str::<toml::Table>(&text)
                .and_then(toml::Table::try_into)
                .with_context(hint)?,
            None => ProgressFile::default(),
        };
        if file.arm.as_ref().is_some_and(|other| other != arm) {
            file.done.clear();
        }
        file.arm = Some(arm.to_owned());
        if file.scene != scene {
            let is_of_arm = |step: &GuideStep| matches!(step, GuideStep::Joints | GuideStep::Zeros);
            file.done.retain(is_of_arm);
            scene.clone_into(&mut file.scene);
        }
        Ok(Self { path, file })
    }

    pub(super) fn is_done(&self, step: GuideStep) -> bool {
        self.file.done.contains(&step)
    }

    /// Records on the disk that a step was done, and that the steps it outdates must be repeated.
    pub(super) fn keep(&mut self, step: GuideStep) -> anyhow::Result<()> {
        self.file.done.retain(|done| !step.outdates(*done));
        if !self.is_done(step) {
            self.file.done.push(step);
        }
        Ok(calib::put(&self.path, &toml::to_string(&self.file)?)?)
    }
}
