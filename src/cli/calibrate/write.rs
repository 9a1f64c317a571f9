//! Writes accepted values into the scene's or the arm's file, and into the history.

use std::collections::BTreeMap;

use super::place::CalibrationFolders;
use crate::terminal_output;
use arm::ArmFile;
use base::clock;
use calib::{
    self, AcceptedCalibration, CalibrationChange, CalibrationKind, CalibrationRecord,
    CalibrationSession, FileValues, FitVerdict,
};

impl CalibrationFolders {
    /// Returns whether an arm's joints keep their signs, or a person overrides this. A flipped sign is reported on a line of its
    /// own either way.
    pub(super) fn keeps_signs(
        &self,
        arm: &str,
        new: &FileValues,
        overridden: bool,
    ) -> anyhow::Result<bool> {
        let arm = self.library.arm(arm)?;
        let flipped = calib::flipped_joints(&arm, new);
        if flipped.is_empty() {
            return Ok(true);
        }
        let outcome = if overridden {
            "written because of --override"
        } else {
            "not accepted. Next: add --override only if you saw that joint turn against the file's direction"
        };
        terminal_output::line(&format!(
            "!!! SIGN FLIP: {} would turn against the direction in the arm's file. All motions of this joint would be reversed; {outcome}",
            flipped.join(", ")
        ));
        Ok(overridden)
    }

    /// Returns whether an arm's zeros may be replaced, which turns a joint by at most `deg`; prints the reason if not.
    pub(super) fn may_turn(
        &self,
        arm: &str,
        new: &FileValues,
        deg: f64,
        overridden: bool,
    ) -> anyhow::Result<bool> {
        let change = CalibrationChange { mm: 0.0, deg };
        if let Some(reason) = change.override_reason().filter(|_| !overridden) {
            terminal_output::line(&format!("not accepted: {reason}"));
            return Ok(false);
        }
        self.keeps_signs(arm, new, overridden)
    }

    pub(super) fn write(
        &self,
        record: &CalibrationRecord,
        lock: &calib::CalibrationLock,
    ) -> anyhow::Result<()> {
        self.write_with(record, None, lock)
    }

    pub(super) fn write_with(
        &self,
        record: &CalibrationRecord,
        servos: Option<&BTreeMap<u8, String>>,
        lock: &calib::CalibrationLock,
    ) -> anyhow::Result<()> {
        let accepted = self.desk(|desk| desk.write(record, servos, lock))?;
        self.print_accepted(record.session.kind, &accepted);
        Ok(())
    }

    pub(super) fn print_accepted(&self, kind: CalibrationKind, accepted: &AcceptedCalibration) {
        let (number, path) = (accepted.number, accepted.path.display());
        terminal_output::line(&format!("accepted as calibration {number}: {path}"));
        if kind == CalibrationKind::Zeros && self.running.is_some() && !self.is_guided {
            terminal_output::line(calib::ZEROS_NEED_RESTART);
        }
        terminal_output::lines(&accepted.stale);
    }

    /// Returns a record without values, made on an arm and judged by no fit.
    pub(super) fn record(
        &self,
        arm: &ArmFile,
        method: &str,
        session: CalibrationSession,
    ) -> CalibrationRecord {
        CalibrationRecord {
            number: self.store.next_number(),
            at_ms: clock::calendar_ms(),
            method: method.to_owned(),
            servos: calib::servos(arm),
            verdict: FitVerdict::Usable,
            reasons: Vec::new(),
            residuals_mm: Vec::new(),
            old: FileValues::new(),
            new: FileValues::new(),
            session,
        }
    }

    /// Returns a record of an arm's zeros that were found without touches.
    pub(super) fn record_of_zeros(&self, arm: &ArmFile, method: &str) -> CalibrationRecord {
        let session = CalibrationSession {
            kind: CalibrationKind::Zeros,
            scene: String::new(),
            pen: String::new(),
            arm: arm.name.clone(),
            frame: arm.frame,
            name: String::new(),
            basis: String::new(),
            drawn_on: String::new(),
            probed: false,
            read_mm: None,
            seen: None,
            ink: None,
            origin: self.origin(arm),
            touches: Vec::new(),
        };
        self.record(arm, method, session)
    }
}
