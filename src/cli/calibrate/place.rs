//! The folders that a calibration reads and writes, and the arms whose joints it may take.

use anyhow::bail;

use super::arguments::HereArgs;
use crate::{AtArgs, NodeOptions, operator_client, which_node};
use arm::ArmFile;
use calib::{
    self, CalibrationDesk, CalibrationOrigin, CalibrationSession, CalibrationStore, KnownArm,
    TouchAssessment,
};
use config::ArmEntry;
use node::measurements::{MeasuredArm, NodeMeasurements};
use node::operator_verb::OperatorVerb;
use node::{open, state_folder};
use scene::SceneLibrary;

/// The folders that a calibration reads and writes: the running node's, or else the named ones.
pub(super) struct CalibrationFolders {
    pub(super) store: CalibrationStore,
    pub(super) library: SceneLibrary,
    pub(super) arms: Vec<MeasuredArm>,
    /// The arms of a node file without a running node.
    pub(super) entries: Vec<ArmEntry>,
    /// Every arm of the node or of its file, those that are not read too.
    known: Vec<KnownArm>,
    /// The running node.
    pub(super) running: Option<AtArgs>,
    /// The options that address them again.
    pub(super) options: NodeOptions,
    /// Advice for the case that no arm can be read.
    pub(super) absent: String,
    /// True in a guide, which takes the next step itself.
    pub(super) is_guided: bool,
}

impl CalibrationFolders {
    pub(super) async fn find(node: &NodeOptions, at: &AtArgs) -> anyhow::Result<Self> {
        if let Some(url) = &at.node {
            bail!(
                "calibrations are stored on the node's own machine. Next: run this command there, without --node {url}"
            );
        }
        if let Some(at) = which_node::find(node, at).await? {
            let reply = operator_client::ask(&at, &OperatorVerb::Measured).await?;
            let measurements: NodeMeasurements = operator_client::parse_text(&reply)?;
            let mut library = SceneLibrary::new(measurements.scenes);
            for arm in &measurements.arms {
                library.let_stand_in(&*library.arm(&arm.model)?)?;
            }
            return Ok(Self {
                store: CalibrationStore::of_state(&measurements.state, &library),
                library,
                arms: measurements.arms,
                entries: Vec::new(),
                known: measurements.known,
                running: Some(at),
                options: node.clone(),
                absent: "the running node has no such arm".to_owned(),
                is_guided: false,
            });
        }
        let file = open::file(node)?;
        if state_folder::is_practice(node, &file) {
            bail!(
                "a calibration needs a node file. Next: `steadyhand init`, then the same command with `--config node.toml`"
            );
        }
        let library = open::library(node, &file)?;
        Ok(Self {
            known: tools::known_arms(&file.arms),
            store: CalibrationStore::of_state(&state_folder::folder(node, &file)?, &library),
            library,
            arms: Vec::new(),
            entries: file.arms,
            running: None,
            options: node.clone(),
            absent: which_node::absent(node),
            is_guided: false,
        })
    }

    /// Returns the folders for the joints of the named arm of a scene, or of the only one. Joints that are given need no name where
    /// they would be the same on every arm of the model.
    pub(super) async fn find_here(node: &NodeOptions, here: &HereArgs) -> anyhow::Result<Self> {
        let folders = Self::find(node, &here.at).await?;
        let scene = folders.library.scene(&here.scene, None)?;
        let file = &scene.arm.file;
        let named = here.arm.as_deref();
        if let Some(own) = scene.arm_name.as_deref() {
            if let Some(other) = named.filter(|name| *name != own) {
                bail!(
                    "scene {} is for the arm `{own}`, not `{other}`. Nothing was done. Next: leave --arm out",
                    here.scene
                );
            }
            return folders.only(&file.name, Some(own));
        }
        if here.joints.is_some() && named.is_none() && folders.are_alike(file) {
            return Ok(folders);
        }
        folders.only(&file.name, named)
    }

    /// Returns whether a calibration on any arm of a file applies to every other.
    fn are_alike(&self, file: &ArmFile) -> bool {
        let arms = self.arms_of(file);
        let known = self.names_of(&file.name);
        let first = self.origin(file);
        let is_like_first = |origin: &CalibrationOrigin| first.mismatch(origin).is_none();
        arms.len() == known.count() && arms.iter().all(is_like_first)
    }

    /// Returns the folders for the arm that a text names, by its name on the node or by its model; and that model.
    pub(super) fn named(self, arm: &str) -> anyhow::Result<(Self, String)> {
        let named = self.known.iter().find(|known| known.name == arm).cloned();
        let (name, model) = match named {
            Some(KnownArm { name, model, .. }) => (Some(name), model),
            None => (None, arm.to_owned()),
        };
        Ok((self.only(&model, name.as_deref())?, model))
    }

    /// Keeps the named arm of a model alone, or the only one.
    ///
    /// # Errors
    /// There are several and none is named, or there are some and the named one is none of them.
    pub(super) fn only(mut self, model: &str, name: Option<&str>) -> anyhow::Result<Self> {
        let names: Vec<&str> = self.names_of(model).collect();
        let valid = names.join(", ");
        match name {
            None if names.len() > 1 => bail!(
                "this node has several arms of model {model}. Nothing was done. Next: name one with --arm: {valid}"
            ),
            Some(name) if !names.is_empty() && !names.contains(&name) => bail!(
                "this node has no arm `{name}` of model {model}. Nothing was done. Valid: {valid}"
            ),
            None => {}
            Some(name) => {
                self.arms.retain(|arm| arm.name == name);
                self.entries.retain(|entry| entry.name == name);
            }
        }
        Ok(self)
    }

    /// Returns the names of every arm of a model.
    fn names_of(&self, model: &str) -> impl Iterator<Item = &str> {
        let arms = self.known.iter().filter(move |known| known.model == model);
        arms.map(|known| known.name.as_str())
    }

    /// Returns the arms that a calibration may be of where it was made on one of several, and has the name of none; else none.
    pub(super) fn possible_arms<'a>(&'a self, session: &'a CalibrationSession) -> Vec<&'a str> {
        let origin = &session.origin;
        let names = calib::names_alike(&self.known, &session.arm, origin.simulated);
        let mut names: Vec<&str> = names.collect();
        let among_several = origin.among_several || names.len() > 1;
        if !among_several || origin.unmeasured || names.contains(&&*origin.arm_name) {
            names.clear();
        }
        names
    }

    /// Returns whether the node has several arms, so that answers say which one they are about.
    pub(super) fn has_several_arms(&self) -> bool {
        self.known.len() > 1
    }

    /// Returns the running node's arm of a model: the first, unless one was chosen.
    pub(super) fn arm(&self, model: &str) -> Option<&MeasuredArm> {
        self.arms.iter().find(|arm| arm.model == model)
    }

    /// Describes the state in which an arm is left; empty if no running node has it.
    pub(super) fn torque_note(&self, model: &str) -> String {
        let arm = self.arm(model);
        arm.map_or_else(String::new, |arm| format!("; {}", torque(arm.energised)))
    }

    /// Returns the arm that is calibrated, where [`Self::only`] has left one: the running node's, or what the files know of it.
    pub(super) fn origin(&self, file: &ArmFile) -> CalibrationOrigin {
        let first = self.arms_of(file).into_iter().next();
        first.unwrap_or_else(|| self.origin_by_files(file, None))
    }

    /// Returns the origin of every arm of a file: the running node's, or what the files know of them.
    fn arms_of(&self, file: &ArmFile) -> Vec<CalibrationOrigin> {
        let measured = self.arms.iter().filter(|arm| arm.model == file.name);
        let measured = measured.map(|arm| arm.origin.clone());
        let entries = self.entries.iter().filter(|entry| entry.model == file.name);
        let entries = entries.map(|entry| self.origin_by_files(file, Some(entry)));
        measured.chain(entries).collect()
    }

    /// Returns what an arm's file and its entry in the node file say of it.
    fn origin_by_files(&self, file: &ArmFile, entry: Option<&ArmEntry>) -> CalibrationOrigin {
        let simulated = entry.map(ArmEntry::is_simulated);
        CalibrationOrigin {
            simulated,
            servos: calib::servos(file),
            unmeasured: false,
            arm_name: entry.map_or_else(String::new, |entry| entry.name.clone()),
            among_several: calib::names_alike(&self.known, &file.name, simulated).count() > 1,
        }
    }

    /// Fails if a running node measures with zeros that differ from the arm's file.
    pub(super) fn check_zeros(&self, arm: &ArmFile) -> anyhow::Result<()> {
        let measured = self.arm(&arm.name);
        if measured.is_some_and(|measured| measured.zeros != calib::zeros_of(arm)) {
            bail!(
                "the file of arm {0} has newer zeros than the node. Nothing was recorded. Next: restart the node, then touch again",
                arm.name
            );
        }
        Ok(())
    }

    /// Runs `work` on these folders.
    pub(super) fn desk<T>(&self, work: impl FnOnce(CalibrationDesk<'_>) -> T) -> T {
        work(CalibrationDesk {
            store: &self.store,
            library: &self.library,
            at_ms: base::clock::calendar_ms(),
            arms: &|file| self.arms_of(file),
        })
    }

    pub(super) fn proposal(&self) -> anyhow::Result<CalibrationSession> {
        Ok(self.desk(|desk| desk.proposal())?)
    }

    pub(super) fn assess(&self, session: &CalibrationSession) -> anyhow::Result<TouchAssessment> {
        Ok(self.desk(|desk| desk.assess(session))?)
    }
}

/// Describes what a person must know of the arm before leaving it.
pub(super) const fn torque(energised: bool) -> &'static str {
    match energised {
        true => "the arm stands with its torque on",
        false => "the arm is limp: it lies where your hands leave it",
    }
}
