//! `calibrate history`, `diff` and `restore`: what was accepted before.

use anyhow::bail;

use super::place::Place;
use crate::{Exit, show};
use base::clock;
use calib::{Record, Values, report};

impl Place {
    pub(super) fn history(&self) -> anyhow::Result<Exit> {
        let history = self.store.history()?;
        if history.is_empty() {
            show::line("nothing was calibrated yet");
        }
        history.iter().for_each(|record| show::line(&record.line()));
        Ok(Exit::Done)
    }

    pub(super) fn diff(&self, number: u64, other: Option<u64>) -> anyhow::Result<Exit> {
        let one = self.store.record(number)?;
        let Some(other) = other else {
            show::line(&report::record(&one));
            return Ok(Exit::Done);
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
        show::line(report::compared(&one.new, &other.new).trim_end());
        Ok(Exit::Done)
    }

    pub(super) fn restore(&self, number: u64, overridden: bool) -> anyhow::Result<Exit> {
        let lock = self.store.lock()?;
        let mut before = self.store.record(number)?;
        if before.session.origin.simulated.is_none() {
            // Who restores it beside an arm says that it is this one's.
            let arm = self.library.arm(&before.session.arm)?;
            before.session.origin = self.origin(&arm.file);
        }
        if !self.keeps_signs(&before.session.arm, &before.new, overridden)? {
            return Ok(Exit::Refused);
        }
        let history = self.store.history()?;
        let newest = history
            .iter()
            .rev()
            .find(|r| r.session.is_of_same(&before.session));
        let old = newest.map_or_else(Values::new, |record| record.new.clone());
        show::line(report::compared(&old, &before.new).trim_end());
        let record = Record {
            number: self.store.next_number(),
            at_ms: clock::calendar_ms(),
            method: format!("restored from {number}"),
            old,
            ..before
        };
        self.write(&record, &lock)?;
        Ok(Exit::Done)
    }
}
