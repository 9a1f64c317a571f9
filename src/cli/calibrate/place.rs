//! The folders that a calibration reads and writes, and the arms whose joints it may take.

use anyhow::bail;

use crate::{AtArgs, NodeOptions, operator_client, which_node};
use arm::ArmFile;
use calib::{
    self, CalibrationDesk, CalibrationOrigin, CalibrationSession, CalibrationStore, TouchAssessment,
};
use config::ArmEntry;
use node::measurements::{MeasuredArm, NodeMeasurements};
use node::operator_verb::OperatorVerb;
use node::{open, state_folder};
use scene::SceneLibrary;

/// The folders that a calibration reads and writes: the running node's, otherwise those named.
pub(super) struct CalibrationFolders {
    pub(super) store: CalibrationStore,
    pub(super) library: SceneLibrary,
    pub(super) arms: Vec<MeasuredArm>,
    /// The arms of a node file without a running node.
    pub(super) entries: Vec<ArmEntry>,
    /// The running node.
    pub(super) running: Option<AtArgs>,
    /// Words for what to do where no arm can be read.
    pub(super) absent: String,
}

impl CalibrationFolders {
    pub(super) async fn find(node: &NodeOptions, at: &AtArgs) -> anyhow::Result<Self> {
        if let Some(url) = &at.node {
            bail!(
                "a calibration is kept in the folders of the node's own machine: run this there, not for {url}"
            );
        }
        if let Some(at) = which_node::find(node, at).await? {
            let told = operator_client::ask(&at, &OperatorVerb::Measured).await?;
            let seen: NodeMeasurements = operator_client::read_text(&told)?;
            let mut library = SceneLibrary::new(seen.scenes);
            for arm in &seen.arms {
                library.let_stand_in(&*library.arm(&arm.model)?)?;
            }
            return Ok(Self {
                store: CalibrationStore::of_state(&seen.state),
                library,
                arms: seen.arms,
                entries: Vec::new(),
                running: Some(at),
                absent: "the node that runs has no such arm".to_owned(),
            });
        }
        let file = open::file(node)?;
        if state_folder::is_practice(node, &file) {
            bail!(
                "there is nowhere to keep a calibration without a node file: {}",
                which_node::absent(node)
            );
        }
        Ok(Self {
            store: CalibrationStore::of_state(&state_folder::folder(node, &file)?),
            library: open::library(node, &file)?,
            arms: Vec::new(),
            entries: file.arms,
            running: None,
            absent: which_node::absent(node),
        })
    }

    /// Returns the running node's arm of a model.
    pub(super) fn arm(&self, model: &str) -> Option<&MeasuredArm> {
        self.arms.iter().find(|arm| arm.model == model)
    }

    /// Says how an arm of this model is left; nothing of one that no running node has.
    pub(super) fn left(&self, model: &str) -> String {
        let arm = self.arm(model);
        arm.map_or_else(String::new, |arm| format!("; {}", torque(arm.energised)))
    }

    /// Returns the arm that a calibration is made on: the running node's, or as far as the files know it.
    pub(super) fn origin(&self, arm: &ArmFile) -> CalibrationOrigin {
        if let Some(seen) = self.arm(&arm.name) {
            return seen.origin.clone();
        }
        let entry = self.entries.iter().find(|entry| entry.model == arm.name);
        CalibrationOrigin {
            simulated: entry.map(ArmEntry::is_simulated),
            servos: calib::servos(arm),
        }
    }

    /// Refuses joints that a running node measures with other zeros than the arm's file has.
    pub(super) fn same_zeros(&self, arm: &ArmFile) -> anyhow::Result<()> {
        let seen = self.arm(&arm.name);
        if seen.is_some_and(|seen| seen.zeros != calib::zeros_of(arm)) {
            bail!(
                "the node measures arm {0} with other zeros than its file has; start the node again, then touch: nothing was recorded",
                arm.name
            );
        }
        Ok(())
    }

    /// Works with these folders.
    pub(super) fn desk<T>(&self, work: impl FnOnce(CalibrationDesk<'_>) -> T) -> T {
        work(CalibrationDesk {
            store: &self.store,
            library: &self.library,
            at_ms: base::clock::calendar_ms(),
            origin: &|arm| self.origin(arm),
        })
    }

    pub(super) fn proposal(&self) -> anyhow::Result<CalibrationSession> {
        Ok(self.desk(|desk| desk.proposal())?)
    }

    pub(super) fn assess(&self, session: &CalibrationSession) -> anyhow::Result<TouchAssessment> {
        Ok(self.desk(|desk| desk.assess(session))?)
    }
}

/// Says what a person at the arm must know of it before leaving.
pub(super) const fn torque(energised: bool) -> &'static str {
    match energised {
        true => "the arm holds with its torque on",
        false => {
            "the arm's torque is off: it lies where your hands leave it, and `steadyhand status` says so"
        }
    }
}
