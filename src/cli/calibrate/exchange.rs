//! `calibrate import` and `export`: zeros and ranges from and for LeRobot.

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
        let read: lerobot::LeRobotFile = serde_json::from_str(&text).map_err(|error| {
            let at = if error.is_data() {
                String::new()
            } else {
                format!(" (line {}, column {}: no JSON)", error.line(), error.column())
            };
            anyhow!(
                "{} is not a LeRobot calibration{at}: one names each joint with whole counts, such as {{\"shoulder_pan\": {{\"id\": 1, \"drive_mode\": 0, \"homing_offset\": -12, \"range_min\": 800, \"range_max\": 3200}}}}",
                file.display()
            )
        })?;
        let arm = self.library.arm(arm)?;
        let taken = lerobot::import(&read, &arm)?;
        terminal_output::line(report::compared(&taken.old, &taken.new).trim_end());
        let left = taken.left.iter();
        terminal_output::lines(left.map(|left| format!("not taken over: {left}")));
        if !self.may_turn(&arm.file.name, &taken.new, taken.turn_deg(&arm), overridden)? {
            return Ok(ExitStatus::Refused);
        }
        if !accept {
            return terminal_output::done("nothing was written; say --accept to write it");
        }
        let lock = self.store.lock()?;
        let record = CalibrationRecord {
            reasons: taken.left,
            old: taken.old,
            new: taken.new,
            ..self.record_of_zeros(&arm.file, "LeRobot's file")
        };
        self.write(&record, &lock)?;
        Ok(ExitStatus::Done)
    }

    pub(super) fn export(&self, arm: &str) -> anyhow::Result<ExitStatus> {
        let arm = self.library.arm(arm)?;
        let seen = self.arm(&arm.file.name);
        let homing = seen.map(|seen| seen.homing.iter().copied().collect());
        if homing.is_none() {
            terminal_output::note(
                "the servos' homing offsets are not known without a node on the arm: they are written as 0",
            );
        }
        let motors = lerobot::export(&arm, &homing.unwrap_or_default());
        terminal_output::json(&motors)?;
        Ok(ExitStatus::Done)
    }
}
