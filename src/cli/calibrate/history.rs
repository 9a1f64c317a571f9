//! `calibrate history`, `diff` and `restore`: work with earlier accepted calibrations.

use anyhow::bail;

use super::place::CalibrationFolders;
use crate::{ExitStatus, terminal_output};
use base::clock;
use calib::{
    CalibrationKind, CalibrationOrigin, CalibrationRecord, CalibrationSession, FileValues,
    FitVerdict, report,
};

impl CalibrationFolders {
    pub(super) fn history(&self) -> anyhow::Result<ExitStatus> {
        let history = self.store.history()?;
        if history.is_empty() {
            terminal_output::line("there are no calibrations yet");
        }
        terminal_output::lines(history.iter().map(CalibrationRecord::line));
        Ok(ExitStatus::Done)
    }

    pub(super) fn diff(&self, number: u64, other: Option<u64>) -> anyhow::Result<ExitStatus> {
        let one = self.store.record(number)?;
        let Some(other) = other else {
            return terminal_output::done(&report::record(&one));
        };
        let other = self.store.record(other)?;
        if !one.session.is_of_same(&other.session) {
            let (kind, other_kind) = (one.session.kind.word(), other.session.kind.word());
            let other = other.number;
            bail!(
                "calibration {number} ({kind}) and calibration {other} ({other_kind}) cannot be compared"
            );
        }
        terminal_output::done(report::comparison(&one.new, &other.new).trim_end())
    }

    /// Writes the values of a calibration again or, with `is_before`, the file's values from before it. One that says no arm belongs
    /// to the named arm of its model from then on, or to the only one; so does one without the name of an arm of this node, where its
    /// model has several.
    pub(super) fn restore(
        self,
        number: u64,
        is_before: bool,
        arm: Option<&str>,
        overridden: bool,
    ) -> anyhow::Result<ExitStatus> {
        let mut target = self.store.record(number)?;
        if is_before {
            target = state_before(target)?;
        }
        let origin = &target.session.origin;
        let says_no_arm = origin.simulated.is_none() && !origin.unmeasured;
        let possible = self.possible_arms(&target.session);
        let lacks_name = !possible.is_empty();
        if lacks_name && arm.is_none_or(|arm| !possible.contains(&arm)) {
            bail!(
                "calibration {number} does not name an arm of this node. Nothing was written. Next: name its arm with --arm: {}",
                possible.join(", ")
            );
        }
        if !says_no_arm && !lacks_name && arm.is_some() {
            bail!(
                "calibration {number} already names its arm. Nothing was written. Next: leave --arm out"
            );
        }
        if !says_no_arm && !lacks_name {
            return self.write_again(target, is_before, overridden);
        }
        let folders = self.only(&target.session.arm, arm)?;
        let model = folders.library.arm(&target.session.arm)?;
        let named = folders.origin(&model.file);
        target.session.origin = match says_no_arm {
            true => named,
            false => CalibrationOrigin {
                arm_name: named.arm_name,
                among_several: named.among_several,
                ..target.session.origin
            },
        };
        folders.write_again(target, is_before, overridden)
    }

    fn write_again(
        &self,
        mut target: CalibrationRecord,
        is_before: bool,
        overridden: bool,
    ) -> anyhow::Result<ExitStatus> {
        let number = target.number;
        let lock = self.store.lock()?;
        let history = self.store.history()?;
        target.new.extend(values_added_since(&history, &target));
        if !self.keeps_signs(&target.session.arm, &target.new, overridden)? {
            return Ok(ExitStatus::Refused);
        }
        let is_same = |record: &&CalibrationRecord| record.session.is_of_same(&target.session);
        let newest = history.iter().rev().find(is_same);
        let old = newest.map_or_else(FileValues::new, |record| record.new.clone());
        terminal_output::line(report::comparison(&old, &target.new).trim_end());
        if old == target.new && !is_before {
            terminal_output::note(&format!(
                "this changes no value. `steadyhand calibrate restore {number} --before` writes the values from before calibration {number}"
            ));
        }
        let record = CalibrationRecord {
            number: self.store.next_number(),
            at_ms: clock::calendar_ms(),
            method: match is_before {
                true => format!("values from before calibration {number}"),
                false => format!("values of calibration {number}"),
            },
            old,
            ..target
        };
        self.write(&record, &lock)?;
        Ok(ExitStatus::Done)
    }
}

/// Returns the values that later calibrations of the same thing wrote beside those of this one, as they were before: a sheet's
/// correction, for example, means nothing on the sheet before it.
fn values_added_since(history: &[CalibrationRecord], target: &CalibrationRecord) -> FileValues {
    let later = history.iter().filter(|record| {
        record.number > target.number && record.session.is_of_same(&target.session)
    });
    let mut added = FileValues::new();
    for (key, before) in later.flat_map(|record| &record.old) {
        if !target.new.contains_key(key) {
            added.entry(key.clone()).or_insert_with(|| before.clone());
        }
    }
    added
}

/// Returns a record of the values that a file had before a calibration. Nobody measured them, so no arm is recorded, and for
/// an arm on a port they do not count as a calibration.
fn state_before(record: CalibrationRecord) -> anyhow::Result<CalibrationRecord> {
    let CalibrationRecord {
        number, old, new, ..
    } = &record;
    if record.session.kind == CalibrationKind::Camera {
        bail!(
            "the camera's pose from before that calibration is not stored. Next: find an earlier calibration with `steadyhand calibrate history`, then `steadyhand calibrate restore N`"
        );
    }
    let absent = new.keys().filter(|key| !old.contains_key(*key));
    let absent: Vec<&str> = absent.map(String::as_str).collect();
    if !absent.is_empty() {
        bail!(
            "before calibration {number} the file had no {0}. Nothing was written. Next: delete {0} from the file by hand",
            absent.join(", ")
        );
    }
    Ok(CalibrationRecord {
        verdict: FitVerdict::Usable,
        reasons: Vec::new(),
        residuals_mm: Vec::new(),
        new: old.clone(),
        session: CalibrationSession {
            probed: false,
            read_mm: None,
            seen: None,
            ink: None,
            origin: CalibrationOrigin {
                unmeasured: true,
                ..CalibrationOrigin::default()
            },
            touches: Vec::new(),
            ..record.session
        },
        ..record
    })
}
