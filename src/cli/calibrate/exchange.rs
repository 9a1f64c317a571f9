//! `calibrate import` and `export`: exchange zeros and ranges with LeRobot.

use std::path::Path;

use anyhow::anyhow;

use super::place::CalibrationFolders;
use crate::{ExitStatus, files, terminal_output};
use calib::{self, CalibrationRecord, lerobot, report};

impl CalibrationFolders {
    pub(super) fn import(
        &self,
        file: &Path,
        arm: &str,
        accept: bool,
        overridden: bool,
    ) -> anyhow::Result<ExitStatus> {
        let text = files::read(file)?;
        let parsed: lerobot::LeRobotFile = serde_json::from_str(&text).map_err(|error| {
            let position = if error.is_data() {
                String::new()
            } else {
                format!(" (line {}, column {}: no JSON)", error.line(), error.column())
            };
            anyhow!(
                "{} is not a LeRobot calibration{position}. A calibration lists each joint in whole counts: `{{\"shoulder_pan\": {{\"id\": 1, \"drive_mode\": 0, \"homing_offset\": -12, \"range_min\": 800, \"range_max\": 3200}}}}`",
                file.display()
            )
        })?;
        let arm = self.library.arm(arm)?;
        let imported = lerobot::import(&parsed, &arm)?;
        terminal_output::line(report::comparison(&imported.old, &imported.new).trim_end());
        let skipped = imported.skipped.iter();
        terminal_output::lines(skipped.map(|skipped| format!("not imported: {skipped}")));
        if !self.may_turn(
            &arm.file.name,
            &imported.new,
            imported.turn_deg(&arm),
            overridden,
        )? {
            return Ok(ExitStatus::Refused);
        }
        if !accept {
            return terminal_output::done("nothing was written. Next: add --accept to write it");
        }
        let lock = self.store.lock()?;
        let mut record = CalibrationRecord {
            reasons: imported.skipped,
            old: imported.old,
            new: imported.new,
            ..self.record_of_zeros(&arm.file, "LeRobot's file")
        };
        record.session.origin.unmeasured = !imported.missing.is_empty();
        self.write(&record, &lock)?;
        Ok(ExitStatus::Done)
    }

    pub(super) fn export(&self, arm: &str) -> anyhow::Result<ExitStatus> {
        let arm = self.library.arm(arm)?;
        let arm_state = self.arm(&arm.file.name);
        let homing = arm_state.map(|arm_state| arm_state.homing.iter().copied().collect());
        if homing.is_none() {
            terminal_output::note(
                "no node reads this arm, so the servos' homing offsets are unknown; 0 is written for them",
            );
        }
        let motors = lerobot::export(&arm, &homing.unwrap_or_default());
        terminal_output::json(&motors)?;
        Ok(ExitStatus::Done)
    }
}
