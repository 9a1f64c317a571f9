//! `calibrate history`, `diff` and `restore`: what was accepted before.

use anyhow::bail;

use super::place::CalibrationFolders;
use crate::{ExitStatus, terminal_output};
use base::clock;
use calib::{CalibrationRecord, FileValues, report};

impl CalibrationFolders {
    pub(super) fn history(&self) -> anyhow::Result<ExitStatus> {
        let history = self.store.history()?;
        if history.is_empty() {
            terminal_output::line("nothing was calibrated yet");
        }
        history
            .iter()
            .for_each(|record| terminal_output::line(&record.line()));
        Ok(ExitStatus::Done)
    }

    pub(super) fn diff(&self, number: u64, other: Option<u64>) -> anyhow::Result<ExitStatus> {
        let one = self.store.record(number)?;
        let Some(other) = other else {
            terminal_output::line(&report::record(&one));
            return Ok(ExitStatus::Done);
        };
        let other = self.store.record(other)?;
        if !one.session.is_of_same(&other.session) {
            bail!(
                "calibration {number} is of {} and {} is of {}",
                one.session.kind.word(),
                other.number,
                other.session.kind.word()
            );
        }
        terminal_output::line(report::compared(&one.new, &other.new).trim_end());
        Ok(ExitStatus::Done)
    }

    pub(super) fn restore(&self, number: u64, overridden: bool) -> anyhow::Result<ExitStatus> {
        let lock = self.store.lock()?;
        let mut before = self.store.record(number)?;
        if before.session.origin.simulated.is_none() {
            // Who restores it beside an arm says that it is this one's.
            let arm = self.library.arm(&before.session.arm)?;
            before.session.origin = self.origin(&arm.file);
        }
        if !self.keeps_signs(&before.session.arm, &before.new, overridden)? {
            return Ok(ExitStatus::Refused);
        }
        let history = self.store.history()?;
        let newest = history
            .iter()
            .rev()
            .find(|r| r.session.is_of_same(&before.session));
        let old = newest.map_or_else(FileValues::new, |record| record.new.clone());
        terminal_output::line(report::compared(&old, &before.new).trim_end());
        let record = CalibrationRecord {
            number: self.store.next_number(),
            at_ms: clock::calendar_ms(),
            method: format!("restored from {number}"),
            old,
            ..before
        };
        self.write(&record, &lock)?;
        Ok(ExitStatus::Done)
    }
}
